"""The SparkSession of the command line: started quickly and quietly, and gone without a trace in the end.

Who calls Evermat from Python brings a session. The command line starts a JVM here rather than through PySpark's own
launcher: what the JVM says goes to a file, of which errors quote the line that matters, and the JVM is known from its
first moment, so that a signal at any time leaves no process behind.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from evermat import errors
from evermat.errors import EvermatError, Problem, ProgramError, ResourceError
from evermat.interrupts import uninterrupted
from evermat.spark import java
from evermat.spark.classes import Archive
from evermat.spark.jobs import essential

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MIB = 1 << 20
_SMALLEST_HEAP = 512 * _MIB  # Spark itself refuses less than 450 MiB
_LARGEST_HEAP = 4096 * _MIB

_CONNECTING = 5.0  # seconds for one host of a cluster to answer
_LAUNCHING = 120.0  # seconds for the JVM to come up, on a machine that is busy with other things
_REGISTERING = 30.0  # seconds for a cluster to take us in; Spark would try for a minute
_STOPPING = 5.0  # seconds for Spark to stop of its own accord
_GLANCE = 0.02
_SHORT = 60  # characters of a folder in which the system allows for sockets, whose names have some forty more

# Quick to start: compiled only once, and a collector without threads of its own.
_QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")

_LOGGING = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
"""


def heap_share(memory: int) -> int:
    """How many of the bytes that a command may use are the heap of Spark's driver.

    Facts live in the columns of this process; the JVM reads and writes files, in batches.

    >>> heap_share(1 << 30) >> 20, heap_share(8 << 30) >> 20, heap_share(64 << 30) >> 20
    (512, 2048, 4096)
    """
    return max(_SMALLEST_HEAP, min(memory // 4, _LARGEST_HEAP))


# Where exceptions are from whose texts are asked from the JVM, again and again: they cannot outlive it.
_SPOKEN_BY_JAVA = ("py4j.", "pyspark.errors.exceptions.captured")


@contextmanager
def session(
    *, master: str | None, memory: int, conf: Mapping[str, str], name: str = "evermat"
) -> Iterator[SparkSession]:
    """A SparkSession for the block; see `open_session`. After the block, nothing of it is left.

    Raises:
        ResourceError: as `open_session`, or Spark has failed during the block in a way that nobody has dealt with.
    """
    before = _running
    spark = open_session(master=master, memory=memory, conf=conf, name=name)
    well = False
    try:
        yield spark
        well = True
    except EvermatError:
        raise
    except Exception as error:
        ended = _last_words()
        if ended is not None:
            raise ResourceError(Problem(errors.SPARK_ENDED, {"why": ended})) from error
        if type(error).__module__.startswith(_SPOKEN_BY_JAVA):
            details = {"what": "do its work", "why": essential(error)}
            raise ResourceError(Problem(errors.SPARK_FAILED, details)) from None
        raise
    finally:
        if _running is not before:
            close_session(well=well)


def open_session(*, master: str | None, memory: int, conf: Mapping[str, str], name: str = "evermat") -> SparkSession:
    """Starts Spark and returns a session, which `close_session` or the end of the process stops.

    A process has one Spark: if there is one already, the session is a new one of that, and that goes on afterwards. In a process that
    `spark-submit` has started, Spark is the one that was submitted to, with its settings.

    Args:
        master: the cluster as Spark names it, or `sc://host:port` for Spark Connect; None is this machine alone.
        memory: bytes that the whole command may use.
        conf: settings of Spark; they count more than ours.
        name: what the application is called in Spark's user interface.

    Raises:
        ProgramError: the master or a setting is not spelled as it must be.
        ResourceError: Spark cannot be started, or there is no cluster at that address.
    """
    global _running  # noqa: PLW0603
    check_master(master)
    check_settings(conf)
    if _running is not None or _active() is not None:
        return _another(conf)
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return _submitted()
    if master is not None:
        reach(master)
    with uninterrupted():
        running = _running = _Running()  # from here on `close_session` finds it
    atexit.register(close_session)
    try:
        with _without_warnings():
            if master is not None and master.startswith("sc://"):
                return running.connect(master, conf, name)
            return running.start(master, memory, conf, name)
    except BaseException:
        close_session()
        raise


def stores_classes() -> bool:
    """Whether closing the session takes longer, this once, so that later ones start faster."""
    return _running is not None and _running.archive is not None and _running.archive.missing


def close_session(*, well: bool = False) -> None:
    """Stops what `open_session` has started, and removes its files; does nothing if there is nothing.

    If all went well there may be time to store Spark's classes.
    """
    global _running  # noqa: PLW0603
    running = _running
    if running is None:
        return
    with uninterrupted(), _without_warnings():
        running.close(well=well)
        _running = None
    atexit.unregister(close_session)


# --- what is asked for -----------------------------------------------------------------------------------------

_HOST = r"(?:\[[0-9A-Fa-f:.]+\]|[\w.-]+)"
_MASTERS = tuple(
    re.compile(pattern)
    for pattern in (
        r"local(?:\[(?:\*|[1-9]\d*)(?:,\s*[1-9]\d*)?\])?",
        r"local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]",
        rf"spark://{_HOST}:\d+(?:,{_HOST}:\d+)*",
        r"yarn",
        rf"k8s://(?:https?://)?{_HOST}(?::\d+)?/?",
        rf"sc://{_HOST}(?::\d+)?/?(?:;.*)?",
    )
)
_SIZE = re.compile(r"\d+\s*(?:[kmgtp]b?|b)?", re.IGNORECASE)


def check_master(master: str | None) -> None:
    """Refuses an address that Spark would not understand, before anything is started.

    >>> check_master("spark://node:7077")
    >>> check_master("sparc://node:7077")
    Traceback (most recent call last):
    ...
    evermat.errors.ProgramError: error[E200]: `sparc://node:7077` is not the address of a Spark cluster
      = help: known are local[*], local[N], spark://HOST:PORT, yarn, k8s://HOST:PORT and sc://HOST:PORT
    """
    if master is None or any(pattern.fullmatch(master) for pattern in _MASTERS):
        return
    known = "known are local[*], local[N], spark://HOST:PORT, yarn, k8s://HOST:PORT and sc://HOST:PORT"
    raise _wrong(f"`{master}` is not the address of a Spark cluster", known)


def check_settings(conf: Mapping[str, str]) -> None:
    """Refuses settings that cannot be settings of Spark, before anything is started."""
    for name, value in conf.items():
        if not re.fullmatch(r"spark\.\S+", name):
            raise _wrong(f"`{name}` is not a setting of Spark", "their names begin with `spark.`")
        if "\0" in value:
            raise _wrong(f"the value of `{name}` has a NUL character in it")
        if name in {"spark.driver.memory", "spark.executor.memory"} and not _SIZE.fullmatch(value):
            raise _wrong(f"`{name}={value}` is not possible", "a size is written as in `2g` or `512m`")
        if name in {"spark.master", "spark.remote"}:
            raise _wrong(f"`{name}` is not set in this way", "use `--master`")


def _wrong(what: str, help_: str = "") -> ProgramError:
    return ProgramError(Problem(errors.COMMAND_LINE, {"what": what}, help=help_))


def reach(master: str) -> None:
    """Refuses a cluster whose hosts do not answer: Spark itself would go on trying for minutes.

    Raises:
        ResourceError: no host of the cluster accepts a connection.
    """
    why = ""
    for host, port in _addresses(master):
        try:
            socket.create_connection((host, port), timeout=_CONNECTING).close()
        except OSError as error:
            said = "no answer" if isinstance(error, TimeoutError) else error.strerror or str(error)
            why = f"{said} ({host}, port {port})"
        else:
            return
    if why:
        raise ResourceError(Problem(errors.NO_CLUSTER, {"master": master, "why": why}))


def _addresses(master: str) -> list[tuple[str, int]]:
    """The hosts and ports that are worth a try; none where the address does not name them.

    >>> _addresses("spark://a:1,b:2"), _addresses("k8s://host"), _addresses("yarn")
    ([('a', 1), ('b', 2)], [('host', 443)], [])
    """
    scheme, _, rest = master.partition("://")
    if scheme == "spark":
        found = [urlsplit(f"//{place}") for place in rest.split(",")]
        return [(place.hostname or "", place.port or 7077) for place in found]
    if scheme == "sc":
        place = urlsplit(f"//{rest.partition('/')[0].partition(';')[0]}")
        return [(place.hostname or "", place.port or 15002)]
    if scheme == "k8s":
        place = urlsplit(rest if "://" in rest else f"https://{rest}")
        return [(place.hostname or "", place.port or (80 if place.scheme == "http" else 443))]
    return []


def settings(
    master: str | None,
    memory: int,
    conf: Mapping[str, str],
    name: str,
    temporary: Path,
    java_options: Iterable[str] = (),
) -> dict[str, str]:
    """Every setting that Spark is started with, those of the user last."""
    here = master is None or master.startswith("local")
    found = {
        "spark.master": master or "local[*]",
        "spark.app.name": name,
        "spark.driver.memory": f"{heap_share(memory) // _MIB}m",
        "spark.driver.defaultJavaOptions": " ".join(
            [
                *(_QUICK if here else _QUICK[2:]),
                *map(_quoted, java_options),
                _quoted(f"-Dlog4j2.configurationFile={(temporary / 'log4j2.properties').as_uri()}"),
                _quoted(f"-Djava.io.tmpdir={temporary}"),
                _quoted(f"-Dderby.system.home={temporary}"),  # of tables that Hive would know
            ]
        ),
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": (temporary / "warehouse").as_uri(),
    }
    if len(str(temporary)) <= _SHORT:
        # Tasks are many and small: through TCP each would wait for acknowledgements that come late.
        found["spark.python.unix.domain.socket.enabled"] = "true"
    if here:
        found |= {
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": str(_partitions()),
            "spark.port.maxRetries": "100",
        }
    if master == "yarn":  # the default is a quarter of an hour
        found["spark.hadoop.yarn.resourcemanager.connect.max-wait.ms"] = "20000"
        found["spark.hadoop.yarn.resourcemanager.connect.retry-interval.ms"] = "2000"
    return {**found, **conf}


def _partitions() -> int:
    """Two for each core, so that none waits for long; neither very few nor very many."""
    return min(max(4, 2 * _cores()), 64)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _quoted(option: str) -> str:
    """An option of Java as Spark splits them: between double quotes, blanks do not separate."""
    escaped = option.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


# --- what runs -------------------------------------------------------------------------------------------------


class _Running:
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
        (self.folder / "log4j2.properties").write_text(_LOGGING, "utf-8")
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
            _try_settings(self.spark, conf)
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
            "SPARK_LAUNCHER_OPTS": " ".join(_QUICK),
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
                why = _essential_of_log(self._said()) or "Java does not come up"
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
        wrong = _not_possible(conf, why, text)
        if wrong is not None:
            return wrong
        if master is not None and not master.startswith("local"):
            if self.process is not None and self.process.poll() is not None:
                why = _essential_of_log(self._said()) or why
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
        return _essential_of_log(self._said()) or how

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


_running: _Running | None = None


def _spark_home() -> Path:
    """Where Spark lies, which is known without loading PySpark."""
    found = find_spec("pyspark")
    assert found is not None, "pyspark is a dependency"
    assert found.origin is not None, "pyspark is a package in files"
    return Path(found.origin).parent


def _last_words() -> str | None:
    return None if _running is None else _running.last_words()


def _active() -> Any:
    """The SparkSession that this process has already, or None; PySpark is not loaded for that."""
    module = sys.modules.get("pyspark.sql")
    return None if module is None else module.SparkSession._instantiatedSession  # noqa: SLF001


def _session_of(context: Any, given: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession  # noqa: PLC0415

    return SparkSession(context, options=dict(given))


def _another(conf: Mapping[str, str]) -> SparkSession:
    found = _running.spark if _running is not None else _active()
    made = found.newSession()
    made.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        _try_settings(made, conf)
    except Exception as error:
        wrong = _not_possible(conf, essential(error), str(error))
        if wrong is None:
            raise
        raise wrong from None
    return made


def _submitted() -> SparkSession:
    from pyspark.sql import SparkSession  # noqa: PLC0415

    made = SparkSession.builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


def _try_settings(spark: Any, conf: Mapping[str, str]) -> None:
    """Sets what can be set while Spark runs: only then it looks whether a value is possible."""
    for name, value in conf.items():
        if spark.conf.isModifiable(name):
            spark.conf.set(name, value)


def _not_possible(conf: Mapping[str, str], why: str, text: str) -> ProgramError | None:
    """The error for the setting that a text of Spark complains about, or None."""
    for name, value in conf.items():
        if name in text:
            return _wrong(f"`{name}={value}` is not possible", why)
    return None


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


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Keeps warnings of PySpark, which are for those who program with it, from the users of the command line."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# Remarks around what matters.
_REMARKS = (
    "Error: Could not create the Java Virtual Machine",
    "Error: A fatal exception has occurred",
    "Error occurred during initialization of",
    "OpenJDK 64-Bit Server VM warning",
    "WARNING",
    "NOTE:",
    "Picked up",
    "at ",
    "... ",
    "Run with --help",
    "#",
)


def _essential_of_log(text: str) -> str:
    """The line that says why a JVM did not start or did not go on; nothing if it said nothing.

    >>> _essential_of_log("Error occurred during initialization of VM" + chr(10) + "Too small maximum heap" + chr(10))
    'Too small maximum heap'
    """
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith(_REMARKS)]
    telling = [line for line in lines if line.startswith("Caused by:")] or [
        line for line in lines if re.search(r"\b\w*(?:Error|Exception)\b", line)
    ]
    line = telling[-1] if telling and telling[-1].startswith("Caused by:") else (telling or lines or [""])[0]
    line = re.sub(r"^(?:\d\d:\d\d:\d\d ERROR \w+: |Caused by: |Exception in thread \"[^\"]*\" |Error: )+", "", line)
    return re.sub(r"^(?:[a-z_]\w*\.)+([A-Z]\w*): ", "", line)
