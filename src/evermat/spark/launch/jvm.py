"""The JVM of the command line: launched, watched and ended by this process.

It is started here rather than through PySpark's own launcher: what it says goes to a file, of which errors quote the
line that matters, and it is known from its first moment, so that a signal at any time leaves no process behind.
"""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evermat.core import EvermatError, Problem, ResourceError, uninterrupted
from evermat.core import error_catalogue as errors
from evermat.spark.jobs import essential
from evermat.spark.launch import java
from evermat.spark.launch.class_archive import Archive
from evermat.spark.launch.jvm_log import LOGGING, essential_of_log
from evermat.spark.launch.settings import QUICK, not_possible, settings, try_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LAUNCHING = 120.0  # seconds for the JVM to come up, on a machine that is busy with other things
_REGISTERING = 30.0  # seconds for a cluster to take us in; Spark would try for a minute
_STOPPING = 5.0  # seconds for Spark to stop of its own accord
_GLANCE = 0.02


class Running:
    """The JVM, its folder, and the session. `close` may be called at any moment, also while something starts."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.spark: Any = None
        self.gateway: Any = None
        self.archive: Archive | None = None
        self._path = list(sys.path)
        self._environment: dict[str, str | None] = {}
        try:
            self.folder = Path(tempfile.mkdtemp(prefix="evermat-spark-")).resolve()
        except OSError as error:
            details = {"path": tempfile.gettempdir(), "why": error.strerror or str(error), "rest": ""}
            raise ResourceError(Problem(errors.CANNOT_WRITE, details)) from error
        logging.getLogger().addFilter(_not_of_py4j)

    @property
    def log(self) -> Path:
        """Whatever the JVM says."""
        return self.folder / "log.txt"

    def set(self, name: str, value: str | None) -> None:
        """Changes a variable of this process's environment until the end of the session."""
        self._environment.setdefault(name, os.environ.get(name))
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value

    def start(self, master: str | None, memory: int, conf: Mapping[str, str], name: str) -> SparkSession:
        """A session of a new JVM."""
        java_home = java.java_home(self.folder)
        spark_home = _spark_home()
        if master is None or master.startswith("local["):
            program = java_home / "bin" / "java" if java_home is not None else Path(shutil.which("java") or "java")
            runtime = java.examine(program)
            self.archive = Archive(program, runtime.version if runtime else 0, spark_home)
        given = settings(master, memory, conf, name, self.folder, self.archive.options if self.archive else ())
        (self.folder / "log4j2.properties").write_text(LOGGING, "utf-8")
        for variable in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_LOCAL_REMOTE"):
            self.set(variable, None)  # they would turn every session into one of Spark Connect
        if "spark.pyspark.python" in conf:
            self.set("PYSPARK_PYTHON", conf["spark.pyspark.python"])  # PySpark looks only there
        elif given["spark.master"].startswith("local") and "PYSPARK_PYTHON" not in os.environ:
            self.set("PYSPARK_PYTHON", sys.executable)
        port, secret = self._launch(given, java_home, spark_home)

        def make() -> Any:
            from pyspark import SparkConf, SparkContext  # noqa: PLC0415
            from pyspark.java_gateway import launch_gateway  # noqa: PLC0415

            self.set("PYSPARK_GATEWAY_PORT", str(port))
            self.set("PYSPARK_GATEWAY_SECRET", secret)
            try:
                self.gateway = launch_gateway()  # which only connects to the JVM that is named there
            finally:
                self.set("PYSPARK_GATEWAY_PORT", None)
                self.set("PYSPARK_GATEWAY_SECRET", None)
            made = SparkConf(loadDefaults=False).setAll(list(given.items()))
            return SparkContext(conf=made, gateway=self.gateway)

        patience = _REGISTERING if given["spark.master"].startswith("spark:") else None
        try:
            context = self._patiently(make, patience)
            self.spark = _session_of(context, given)  # in this thread, whose active session it becomes
            try_settings(self.spark, conf)
        except TimeoutError as error:
            why = "it does not take us in"
            raise ResourceError(Problem(errors.NO_CLUSTER, {"master": master, "why": why})) from error
        except Exception as error:
            raise self._not_started(master, conf, essential(error), str(error)) from error
        return self.spark

    def connect(self, master: str, conf: Mapping[str, str], name: str) -> SparkSession:
        """A session of a Spark that runs elsewhere."""

        def make() -> Any:
            from pyspark.sql import SparkSession  # noqa: PLC0415

            builder = SparkSession.builder.remote(master).appName(name).config("spark.sql.session.timeZone", "UTC")
            for key, value in conf.items():
                builder = builder.config(key, value)
            made = builder.getOrCreate()
            _ = made.version  # asks the server, for the first time
            return made

        for variable in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_LOCAL_REMOTE"):
            self.set(variable, None)
        try:
            self.spark = self._patiently(make, _REGISTERING)
        except TimeoutError as error:
            why = "it accepts connections but does not answer as a Spark Connect server"
            raise ResourceError(Problem(errors.NO_CLUSTER, {"master": master, "why": why})) from error
        except ImportError as error:
            why = f"Spark Connect needs more packages: {essential(error)}"
            raise ResourceError(
                Problem(errors.NO_CLUSTER, {"master": master, "why": why}, help="install `pyspark[connect]`")
            ) from error
        except Exception as error:
            raise self._not_started(master, conf, essential(error), str(error)) from error
        return self.spark

    def _launch(self, given: Mapping[str, str], java_home: Path | None, home: Path) -> tuple[int, str]:
        """Starts the JVM; its port, and the secret without which it listens to nobody."""
        answer = self.folder / "gateway"
        environment = dict(os.environ) | {
            "SPARK_HOME": str(home),  # another version of Spark would not understand ours
            "SPARK_CONNECT_MODE": "0",
            "SPARK_LAUNCHER_OPTS": " ".join(QUICK),
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(answer),
        }
        environment.pop("JAVA_HOME", None)
        if java_home is not None:
            environment["JAVA_HOME"] = str(java_home)
        if given["spark.master"].startswith("local"):
            environment["SPARK_LOCAL_IP"] = "127.0.0.1"
        if "SPARK_HOME" in os.environ:
            environment.setdefault("SPARK_CONF_DIR", str(Path(os.environ["SPARK_HOME"]) / "conf"))
        if "spark.local.dir" not in given:
            environment.setdefault("SPARK_LOCAL_DIRS", str(self.folder))
        command = [str(home / "bin" / "spark-submit")]
        for name, value in given.items():
            command += ["--conf", f"{name}={value}"]
        command += shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
        with self.log.open("wb") as log, uninterrupted():
            # In a session of its own it does not get the Ctrl-C that is meant for us. It ends when its input does:
            # even if this process is killed, the JVM does not stay.
            self.process = subprocess.Popen(  # noqa: S603
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        import_module("pyspark.sql")  # takes as long as Java does to come up
        until = time.monotonic() + _LAUNCHING
        while not answer.exists():
            if self.process.poll() is not None or time.monotonic() > until:
                why = essential_of_log(self._said()) or "Java does not come up"
                raise self._not_started(given["spark.master"], {}, why, self._said())
            time.sleep(_GLANCE)
        content = answer.read_bytes()  # the JVM gives the file its name once it is complete
        port, length = struct.unpack(">ii", content[:8])
        return port, content[8 : 8 + length].decode("utf-8")

    def _patiently(self, make: Callable[[], Any], patience: float | None) -> Any:
        """Runs `make` in a thread, so that this one can be interrupted and the JVM be killed under it.

        A thread that is not the main one has another good: PySpark puts no handler of signals in the place of ours.
        """
        results: list[Any] = []
        raised: list[BaseException] = []

        def run() -> None:
            try:
                results.append(make())
            except BaseException as error:  # noqa: BLE001  # it goes on in the thread that waits
                raised.append(error)

        thread = threading.Thread(target=run, name="evermat-spark-start", daemon=True)
        thread.start()
        until = None if patience is None else time.monotonic() + patience
        while thread.is_alive():
            thread.join(_GLANCE)
            if until is not None and time.monotonic() > until:
                raise TimeoutError
        if raised:
            raise raised[0]
        return results[0]

    def _not_started(self, master: str | None, conf: Mapping[str, str], why: str, text: str) -> EvermatError:
        """The error for a session that could not be made."""
        wrong = not_possible(conf, why, text)
        if wrong is not None:
            return wrong
        if master is not None and not master.startswith("local"):
            if self.process is not None and self.process.poll() is not None:
                why = essential_of_log(self._said()) or why
            return ResourceError(Problem(errors.NO_CLUSTER, {"master": master, "why": why}))
        return ResourceError(Problem(errors.SPARK_FAILED, {"what": "start", "why": why}))

    def _said(self) -> str:
        try:
            return self.log.read_text("utf-8", errors="replace")
        except OSError:
            return ""

    def last_words(self) -> str | None:
        """Why the JVM has ended, or None if it lives."""
        if self.process is None:
            return None
        with suppress(subprocess.TimeoutExpired):  # the connection breaks a moment before
            self.process.wait(0.2)
        code = self.process.poll()
        if code is None:
            return None
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return essential_of_log(self._said()) or how

    def close(self, *, well: bool) -> None:
        """Stops everything; never raises."""
        try:
            # Whoever else is in it must be told; a Spark that is only ours may be cut off.
            if self.archive is None:
                stopping = threading.Thread(target=self._stop, name="evermat-spark-stop", daemon=True)
                stopping.start()
                stopping.join(_STOPPING)
            else:
                self._stop_listening()
                if well and self.process is not None:
                    self.archive.make(self.process)
            if self.process is not None:
                # What the JVM would yet tidy up lies in our folder.
                self.process.kill()
                self.process.wait()
                if self.process.stdin is not None:
                    self.process.stdin.close()
            _forget()
        finally:
            for name, value in self._environment.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
            sys.path[:] = self._path
            logging.getLogger().removeFilter(_not_of_py4j)
            _remove(self.folder)

    def _stop(self) -> None:
        with suppress(Exception):
            if self.spark is not None:
                self.spark.stop()
        with suppress(Exception):
            if self.gateway is not None:
                self.gateway.shutdown()

    def _stop_listening(self) -> None:
        """Ends what this process has for the JVM to call, which says nothing of a connection that breaks now.

        It takes half a second, for which nobody waits.
        """
        with suppress(Exception):
            if self.spark is not None:
                server = self.spark.sparkContext._accumulatorServer  # noqa: SLF001
                server.handle_error = lambda *_: None
                threading.Thread(target=server.shutdown, name="evermat-spark-stop", daemon=True).start()
        with suppress(Exception):
            if self.gateway is not None:
                self.gateway.shutdown()


def _spark_home() -> Path:
    """Where Spark lies, which is known without loading PySpark."""
    found = find_spec("pyspark")
    assert found is not None, "pyspark is a dependency"
    assert found.origin is not None, "pyspark is a package in files"
    return Path(found.origin).parent


def _session_of(context: Any, given: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession  # noqa: PLC0415

    return SparkSession(context, options=dict(given))


def _forget() -> None:
    """Has PySpark forget a JVM that is gone, so that the next session starts one of its own."""
    if "pyspark" not in sys.modules:
        return
    from pyspark import SparkContext  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    SparkContext._active_spark_context = None  # noqa: SLF001
    SparkContext._gateway = None  # noqa: SLF001
    SparkContext._jvm = None  # noqa: SLF001
    SparkSession._instantiatedSession = None  # noqa: SLF001
    SparkSession._activeSession = None  # noqa: SLF001


def _remove(folder: Path) -> None:
    """Removes a folder, in which a worker may still be about to write its last."""
    for _ in range(20):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.05)


def _not_of_py4j(record: logging.LogRecord) -> bool:
    """Py4J logs a traceback for a connection that breaks, and raises besides: the exception is enough."""
    return f"{os.sep}py4j{os.sep}" not in record.pathname
