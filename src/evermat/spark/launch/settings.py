"""The address of a cluster, memory and settings of Spark, checked before it is started.

Spark itself would retry an unreachable address for minutes, and report a wrong setting in a stack trace.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from evermat.core import Problem, ProgramError, ResourceError
from evermat.core import error_catalogue as errors

_MIB = 1 << 20
_SMALLEST_HEAP = 512 * _MIB  # Spark itself refuses less than 450 MiB
_LARGEST_HEAP = 4096 * _MIB

_CONNECTING = 5.0  # seconds for one host of a cluster to answer
_SHORT = 60  # characters of a folder that is short enough for sockets, whose names have some forty more

# Quick to start: compiled only once, and a collector without threads of its own.
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")

_SIZES = {f"spark.driver.memory{it}" for it in ("", "Overhead")} | {
    f"spark.executor.{it}" for it in ("memory", "memoryOverhead", "pyspark.memory")
}

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


def heap_share(memory: int) -> int:
    """The bytes of the heap of Spark's driver, of those that a command may use.

    Facts are in the columns of this process; the JVM reads and writes files, in batches.

    >>> heap_share(1 << 30) >> 20, heap_share(8 << 30) >> 20, heap_share(64 << 30) >> 20
    (512, 2048, 4096)
    """
    return max(_SMALLEST_HEAP, min(memory // 4, _LARGEST_HEAP))


def check_master(master: str | None) -> None:
    """Raises a `ProgramError` for an address that Spark would not understand.

    >>> check_master("spark://node:7077")
    >>> check_master("sparc://node:7077")
    Traceback (most recent call last):
    ...
    evermat.core.ProgramError: error[E200]: `sparc://node:7077` is not the address of a Spark cluster
      = help: known are local[*], local[N], spark://HOST:PORT, yarn, k8s://HOST:PORT and sc://HOST:PORT
    """
    if master is None or any(pattern.fullmatch(master) for pattern in _MASTERS):
        return
    known = "known are local[*], local[N], spark://HOST:PORT, yarn, k8s://HOST:PORT and sc://HOST:PORT"
    raise _wrong(f"`{master}` is not the address of a Spark cluster", known)


def check_settings(conf: Mapping[str, str]) -> None:
    """Raises a `ProgramError` for settings that cannot be settings of Spark."""
    for name, value in conf.items():
        if not re.fullmatch(r"spark\.\S+", name):
            raise _wrong(f"`{name}` is not a setting of Spark", "their names begin with `spark.`")
        if "\0" in value:
            raise _wrong(f"the value of `{name}` has a NUL character in it")
        if name in _SIZES and not _SIZE.fullmatch(value):
            raise _wrong(f"`{name}={value}` is not possible", "a size is written as in `2g` or `512m`")
        if name in {"spark.master", "spark.remote"}:
            raise _wrong(f"`{name}` is not set in this way", "use `--master`")


def _wrong(what: str, help_: str = "") -> ProgramError:
    return ProgramError(Problem(errors.COMMAND_LINE, {"what": what}, help=help_))


def reach(master: str) -> None:
    """Raises a `ResourceError` if no host of a cluster accepts a connection: Spark itself would retry for minutes."""
    why = ""
    for host, port in _addresses(master):
        try:
            socket.create_connection((host, port), timeout=_CONNECTING).close()
        except OSError as error:
            reason = "no answer" if isinstance(error, TimeoutError) else error.strerror or str(error)
            why = f"{reason} ({host}, port {port})"
        else:
            return
    if why:
        raise ResourceError(Problem(errors.NO_CLUSTER, {"master": master, "why": why}))


def _addresses(master: str) -> list[tuple[str, int]]:
    """The hosts and ports to try; none if the address does not name them.

    >>> _addresses("spark://a:1,b:2"), _addresses("k8s://host"), _addresses("yarn")
    ([('a', 1), ('b', 2)], [('host', 443)], [])
    """
    scheme, _, rest = master.partition("://")
    if scheme == "spark":
        found = [urlsplit(f"//{host}") for host in rest.split(",")]
        return [(url.hostname or "", url.port or 7077) for url in found]
    if scheme == "sc":
        url = urlsplit(f"//{rest.partition('/')[0].partition(';')[0]}")
        return [(url.hostname or "", url.port or 15002)]
    if scheme == "k8s":
        url = urlsplit(rest if "://" in rest else f"https://{rest}")
        return [(url.hostname or "", url.port or (80 if url.scheme == "http" else 443))]
    return []


def settings(
    master: str | None,
    memory: int,
    conf: Mapping[str, str],
    name: str,
    temporary: Path,
    java_options: Iterable[str] = (),
) -> dict[str, str]:
    """All settings for the start of Spark, those of the user last."""
    here = master is None or master.startswith("local")
    found = {
        "spark.master": master or "local[*]",
        "spark.app.name": name,
        "spark.driver.memory": f"{heap_share(memory) // _MIB}m",
        "spark.driver.defaultJavaOptions": " ".join(
            [
                *(QUICK if here else QUICK[2:]),
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
        # Tasks are many and small: over TCP each would wait for delayed acknowledgements.
        found["spark.python.unix.domain.socket.enabled"] = "true"
    if here:
        found |= {
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": str(min(max(4, 2 * _cores()), 64)),
            "spark.port.maxRetries": "100",
        }
    if master == "yarn":  # the default is a quarter of an hour
        found["spark.hadoop.yarn.resourcemanager.connect.max-wait.ms"] = "20000"
        found["spark.hadoop.yarn.resourcemanager.connect.retry-interval.ms"] = "2000"
    return {**found, **conf}


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _quoted(option: str) -> str:
    """An option of Java in double quotes, within which Spark does not split it at blanks."""
    escaped = option.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def try_settings(spark: Any, conf: Mapping[str, str]) -> None:
    """Sets modifiable settings while Spark runs: only then it checks their values."""
    for name, value in conf.items():
        if spark.conf.isModifiable(name):
            spark.conf.set(name, value)


def not_possible(conf: Mapping[str, str], why: str, text: str) -> ProgramError | None:
    """The error for the setting that a message of Spark mentions, or None."""
    for name, value in conf.items():
        if name in text:
            return _wrong(f"`{name}={value}` is not possible", why)
    return None
