"""A standalone cluster of Spark on this machine: processes as real as on many machines, which can be killed.

    with cluster(tmp_path, workers=2) as c:
        subprocess.run([sys.executable, "-m", "evermat", "run", "program.dl", "--master", c.master], env=c.environment)
        c.kill_worker(0)
        c.start_worker()

A worker stands for a machine with one core: its executors, and their Python processes, die with it. Nothing outlives the block,
however it ends, nor the process that is in it, even if that is killed.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.request import ProxyHandler, build_opener

from evermat.spark.launch.class_archive import Archive
from evermat.spark.launch.installation import spark_home, spark_version
from evermat.spark.launch.java import examine, java_home

T = TypeVar("T")

PATIENCE = 60.0  # seconds for anything that a test waits for, on a machine that is busy with other things

_GLANCE = 0.05
_QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")

# The shell leads a session of its own and ends its whole group when the program ends, or when its input does: the other end
# of that is in the process of the tests, which cannot end without closing it.
_LEADER = '{ "$@" </dev/null; kill -9 0; } & read -r _; kill -9 0'


class Daemon:
    """A process of the cluster, with all that it has started."""

    def __init__(self, name: str, command: list[str], environment: dict[str, str], folder: Path) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        with self.log.open("wb") as log:
            self._leader = subprocess.Popen(
                ["sh", "-c", _LEADER, "sh", *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=folder,
                start_new_session=True,
            )

    @property
    def alive(self) -> bool:
        return self._leader.poll() is None

    @property
    def said(self) -> str:
        return self.log.read_text("utf-8", errors="replace")

    @property
    def session(self) -> int:
        """The number that all its processes have in common: those of Python leave its process group, but not its session."""
        return self._leader.pid

    def kill(self) -> None:
        """Ends all of it at once, as a machine that loses its power; does nothing if that has happened already."""
        if self._leader.returncode is not None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self.session, signal.SIGKILL)
        # The leader is not waited for yet, so that its number remains that of the session alone.
        until = time.monotonic() + PATIENCE
        while left := processes_of(self.session):
            for process in left:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            assert time.monotonic() < until, f"{self.name} does not end: {left}"
            time.sleep(_GLANCE)
        assert self._leader.stdin is not None
        self._leader.stdin.close()
        self._leader.wait()


def processes_of(session: int) -> dict[int, str]:
    """What runs in a session: command lines by the numbers of processes."""
    listed = subprocess.run(["ps", "-A", "-ww", "-o", "pid=,stat=,args="], capture_output=True, text=True, check=True)
    found = {}
    for line in listed.stdout.splitlines():
        process, state, command = line.split(None, 2)
        with suppress(ProcessLookupError, PermissionError):
            if not state.startswith("Z") and os.getsid(int(process)) == session:
                found[int(process)] = command
    return found


class Cluster:
    """A master and its workers, which are counted from 0 in the order in which they started and keep their numbers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.daemons: list[Daemon] = []
        self.workers: list[Daemon] = []
        self.master = ""
        """The address for `--master`."""
        self._page = ""
        home = java_home(folder, spark_version(spark_home()))
        self._java = {} if home is None else {"JAVA_HOME": str(home)}
        self._java_options = " ".join([*_QUICK, *_archive(home)])
        self._own = {
            **self.environment,
            "SPARK_DAEMON_JAVA_OPTS": f"{self._java_options} -Dspark.master.rest.enabled=false",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_LAUNCHER_OPTS": " ".join(_QUICK),
        }

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs that uses the cluster: no settings but those of the tests, and this Python on the workers."""
        settings = {
            "spark.driver.extraJavaOptions": self._java_options,
            "spark.executor.extraJavaOptions": self._java_options,
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        }
        given = " ".join(shlex.join(["--conf", f"{name}={value}"]) for name, value in settings.items())
        return {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))} | {
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_SUBMIT_ARGS": f"--master {self.master} {given} pyspark-shell",
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "SPARK_HOME": str(spark_home()),
            "SPARK_LOCAL_DIRS": str(self._folder),
            "SPARK_LOCAL_IP": "127.0.0.1",
            **self._java,
        }

    def start(self, workers: int) -> None:
        """Starts the master and the workers, all of which are there when this returns."""
        where = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        master = self._launch("master", "org.apache.spark.deploy.master.Master", where)
        self.master = self._told(master, r"Starting Spark master at (spark://\S+)")
        port = self._told(master, r"Bound MasterWebUI to \S+ and started at http://\S+:(\d+)")
        self._page = f"http://127.0.0.1:{port}/json/"
        for _ in range(workers):
            self._new_worker()
        self._registered(range(workers))

    def start_worker(self) -> int:
        """Another worker; its number. It is there when this returns."""
        self._new_worker()
        number = len(self.workers) - 1
        self._registered([number])
        return number

    def kill_worker(self, number: int) -> None:
        """A worker goes at once, with its executors and what they have stored; the master has noticed when this returns."""
        worker = self._identity(number)
        self.workers[number].kill()
        self.wait_until(lambda: worker not in self.alive(), f"the master has noticed the end of {worker}")

    def alive(self) -> list[str]:
        """The workers that the master knows to be there, by the names that it gives them."""
        return [worker["id"] for worker in self.state()["workers"] if worker["state"] == "ALIVE"]

    def state(self) -> dict[str, Any]:
        """What the master says about itself: workers, applications that run and that have run, and more."""
        with build_opener(ProxyHandler({})).open(self._page, timeout=PATIENCE) as answer:
            state: dict[str, Any] = json.load(answer)
        return state

    def executors(self, number: int) -> list[int]:
        """The processes of the executors that a worker has."""
        found = processes_of(self.workers[number].session).items()
        return [process for process, command in found if "CoarseGrainedExecutorBackend" in command]

    def stop(self) -> None:
        """Ends everything."""
        for daemon in reversed(self.daemons):
            daemon.kill()

    def wait_until(self, holds: Callable[[], T], what: str) -> T:
        """Waits for something that is true in the end, and returns it. What the cluster has said is told where it is not."""
        until = time.monotonic() + PATIENCE
        while not (found := holds()):
            if time.monotonic() > until:
                raise TimeoutError(f"not in {PATIENCE:g} s: {what}\n{self._last_words()}")
            time.sleep(_GLANCE)
        return found

    def _launch(self, name: str, class_: str, arguments: list[str]) -> Daemon:
        program = str(spark_home() / "bin" / "spark-class")
        daemon = Daemon(name, [program, class_, *arguments], self._own, self._folder)
        self.daemons.append(daemon)
        return daemon

    def _new_worker(self) -> None:
        name = f"worker-{len(self.workers)}"
        where = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0", "--work-dir", str(self._folder / name)]
        what = ["--cores", "1", "--memory", "1g"]
        self.workers.append(self._launch(name, "org.apache.spark.deploy.worker.Worker", [*where, *what, self.master]))

    def _identity(self, number: int) -> str:
        """The name that the master gives a worker, which ends in its port."""
        port = self._told(self.workers[number], r"Starting Spark worker 127\.0\.0\.1:(\d+)")
        return next(worker for worker in self.alive() if worker.endswith(f"-{port}"))

    def _registered(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._told(self.workers[number], r"Successfully registered with (master)")

    def _told(self, daemon: Daemon, pattern: str) -> str:
        """What stands in a daemon's log, now or soon."""

        def found() -> str | None:
            told = re.search(pattern, daemon.said)
            if told is None and not daemon.alive:
                raise RuntimeError(f"the {daemon.name} has ended\n{self._last_words()}")
            return None if told is None else told[1]

        return self.wait_until(found, f"{daemon.name}: {pattern}") or ""

    def _last_words(self) -> str:
        return "\n".join(f"--- {daemon.name}\n{daemon.said[-2000:]}" for daemon in self.daemons)


@contextmanager
def cluster(folder: Path, *, workers: int = 2) -> Iterator[Cluster]:
    """A cluster for the block; its logs, and what its executors leave behind, are in a folder below this one."""
    place = folder / "cluster"
    place.mkdir()
    made = Cluster(place)
    try:
        made.start(workers)
        yield made
    finally:
        made.stop()


def _archive(home: Path | None) -> tuple[str, ...]:
    """The archive of Spark's classes that sessions make, if there is one: it saves every JVM a second or two."""
    program = home / "bin" / "java" if home is not None else Path(shutil.which("java") or "java")
    runtime = examine(program)
    archive = Archive(program, runtime.version if runtime is not None else 0, spark_home())
    return () if archive.missing else archive.options
