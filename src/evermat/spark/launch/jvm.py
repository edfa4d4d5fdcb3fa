"""The JVM of the command line: launched, watched and ended by this process.

It is started here rather than through PySpark's own launcher: its output goes to a file, of which errors quote the
relevant line, and its process is known from the start, so that a signal at any time leaves no process behind.
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
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evermat.core import EvermatError, Problem, ResourceError, uninterrupted
from evermat.core import error_catalogue as errors
from evermat.spark.jobs import essential
from evermat.spark.launch import installation, java
from evermat.spark.launch.class_archive import Archive
from evermat.spark.launch.jvm_log import LOGGING, essential_of_log
from evermat.spark.launch.settings import QUICK, not_possible, settings, try_settings
from evermat.spark.scratch import temporary_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LAUNCHING = 120.0  # seconds for the JVM to start, on a busy machine
_REGISTERING = 30.0  # seconds for a cluster to accept the application; Spark would try for a minute
_UNPACKING = 240.0  # seconds more if the driver first copies and unpacks archives for executors
_STOPPING = 5.0  # seconds for Spark to stop of its own accord
_GLANCE = 0.02


class Running:
    """The JVM, its folder, and the session. `close` may be called at any time, also during the start."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.spark: Any = None
        self.gateway: Any = None
        self.archive: Archive | None = None
        self._path = list(sys.path)
        self._environment: dict[str, str | None] = {}
        self.folder = temporary_folder("evermat-spark-")
        logging.getLogger().addFilter(_not_of_py4j)

    @property
    def log(self) -> Path:
        """The file of the JVM's output."""
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
        spark_home = installation.spark_home()
        java_home = java.java_home(self.folder, installation.spark_version(spark_home))
        if master is None or master.startswith("local["):
            program = java_home / "bin" / "java" if java_home is not None else Path(shutil.which("java") or "java")
            runtime = java.examine(program)
            self.archive = Archive(program, runtime.version if runtime else 0, spark_home)
        given = settings(master, memory, conf, name, self.folder, self.archive.options if self.archive else ())
        (self.folder / "log4j2.properties").write_text(LOGGING, "utf-8")
        self._unset_connect()
        if "spark.pyspark.python" in conf:
            self.set("PYSPARK_PYTHON", conf["spark.pyspark.python"])  # PySpark reads only this variable
        elif given["spark.master"].startswith("local") and "PYSPARK_PYTHON" not in os.environ:
            self.set("PYSPARK_PYTHON", sys.executable)
        port, secret = self._launch(given, java_home, spark_home)

        def make() -> Any:
            from pyspark import SparkConf, SparkContext  # noqa: PLC0415
            from pyspark.java_gateway import launch_gateway  # noqa: PLC0415

            self.set("PYSPARK_GATEWAY_PORT", str(port))
            self.set("PYSPARK_GATEWAY_SECRET", secret)
            try:
                self.gateway = launch_gateway()  # which only connects to the JVM that these variables name
            finally:
                self.set("PYSPARK_GATEWAY_PORT", None)
                self.set("PYSPARK_GATEWAY_SECRET", None)
            made = SparkConf(loadDefaults=False).setAll(list(given.items()))
            return SparkContext(conf=made, gateway=self.gateway)

        patience = _REGISTERING if given["spark.master"].startswith("spark:") else None
        if patience is not None and given.get("spark.archives"):
            patience += _UNPACKING
        try:
            context = self._patiently(make, patience)
            from pyspark.sql import SparkSession  # noqa: PLC0415

            self.spark = SparkSession(context, options=given)  # in this thread, whose active session it becomes
            try_settings(self.spark, conf)
        except TimeoutError as error:
            why = "it does not accept the application"
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
            _ = made.version  # the first request to the server
            return made

        self._unset_connect()
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

    def _unset_connect(self) -> None:
        """Unsets variables that would turn every session into one of Spark Connect."""
        for variable in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_LOCAL_REMOTE"):
            self.set(variable, None)

    def _launch(self, given: Mapping[str, str], java_home: Path | None, home: Path) -> tuple[int, str]:
        """Starts the JVM and returns its port, and the secret that it requires from clients."""
        answer = self.folder / "gateway"
        environment = dict(os.environ) | {
            "SPARK_HOME": str(home),  # another version of Spark would not understand this PySpark
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
            # In a process session of its own it does not get this process's Ctrl-C. It ends when its input does:
            # even if this process is killed, the JVM ends.
            self.process = subprocess.Popen(  # noqa: S603
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        import_module("pyspark.sql")  # takes as long as Java takes to start
        until = time.monotonic() + _LAUNCHING
        while not answer.exists():
            if self.process.poll() is not None or time.monotonic() > until:
                why = essential_of_log(self._output()) or "Java does not start"
                raise self._not_started(given["spark.master"], {}, why, self._output())
            time.sleep(_GLANCE)
        content = answer.read_bytes()  # the JVM renames the file to this once it is complete
        port, length = struct.unpack(">ii", content[:8])
        return port, content[8 : 8 + length].decode("utf-8")

    def _patiently(self, make: Callable[[], Any], patience: float | None) -> Any:
        """Returns the result of `make`, in a thread, so that this one can be interrupted and kill the JVM.

        Outside the main thread PySpark also does not replace our signal handlers.
        """
        made: Future[Any] = Future()

        def run() -> None:
            try:
                made.set_result(make())
            except BaseException as error:  # noqa: BLE001  # the waiting thread raises it
                made.set_exception(error)

        threading.Thread(target=run, name="evermat-spark-start", daemon=True).start()
        until = None if patience is None else time.monotonic() + patience
        while not wait([made], _GLANCE).done:
            if until is not None and time.monotonic() > until:
                raise TimeoutError
        return made.result()

    def _not_started(self, master: str | None, conf: Mapping[str, str], why: str, text: str) -> EvermatError:
        """The error for a session that could not be started."""
        wrong = not_possible(conf, why, text)
        if wrong is not None:
            return wrong
        if master is not None and not master.startswith("local"):
            if self.process is not None and self.process.poll() is not None:
                why = essential_of_log(self._output()) or why
            return ResourceError(Problem(errors.NO_CLUSTER, {"master": master, "why": why}))
        return ResourceError(Problem(errors.SPARK_FAILED, {"what": "start", "why": why}))

    def _output(self) -> str:
        try:
            return self.log.read_text("utf-8", errors="replace")
        except OSError:
            return ""

    def last_words(self) -> str | None:
        """The reason why the JVM has ended, or None if it runs."""
        if self.process is None:
            return None
        with suppress(subprocess.TimeoutExpired):  # the connection breaks a moment before
            self.process.wait(0.2)
        code = self.process.poll()
        if code is None:
            return None
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return essential_of_log(self._output()) or how

    def close(self, *, well: bool) -> None:
        """Stops everything; never raises."""
        try:
            # A cluster must be notified; a local Spark may be killed.
            if self.archive is None:
                with suppress(Exception):  # if Spark takes too long, its broken connection is nothing to report
                    self.spark.sparkContext._accumulatorServer.handle_error = lambda *_: None  # noqa: SLF001
                stopping = threading.Thread(target=self._stop, name="evermat-spark-stop", daemon=True)
                stopping.start()
                stopping.join(_STOPPING)
            else:
                self._stop_listening()
                if well and self.process is not None:
                    self.archive.make(self.process)
            if self.process is not None:
                # All files that the JVM would delete are in our folder.
                self.process.kill()
                self.process.wait()
                if self.process.stdin is not None:
                    self.process.stdin.close()
            _forget()
        finally:
            for name, value in self._environment.items():
                self.set(name, value)
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
        """Ends the servers of this process that the JVM calls, in the background: that takes half a second.

        From now on they do not report that a connection breaks.
        """
        with suppress(Exception):
            if self.spark is not None:
                server = self.spark.sparkContext._accumulatorServer  # noqa: SLF001
                server.handle_error = lambda *_: None
                threading.Thread(target=server.shutdown, name="evermat-spark-stop", daemon=True).start()
        with suppress(Exception):
            if self.gateway is not None:
                self.gateway.shutdown()


def _forget() -> None:
    """Has PySpark forget a JVM that has ended, so that the next session starts another one."""
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
    """Deletes a folder in which a worker may still be writing."""
    for _ in range(20):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.05)


def _not_of_py4j(record: logging.LogRecord) -> bool:
    """Whether a record is not from Py4J, which logs a traceback for a broken connection beside raising an exception."""
    return f"{os.sep}py4j{os.sep}" not in record.pathname
