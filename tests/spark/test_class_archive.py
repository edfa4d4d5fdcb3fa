"""The archive of Spark's classes is made once, or given up once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from evermat.spark.launch.class_archive import Archive


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("evermat.spark.launch.class_archive.cache_folder", lambda: tmp_path)
    return tmp_path


def ending(code: str) -> subprocess.Popen[bytes]:
    """Something that does what a JVM does when its input ends."""
    return subprocess.Popen([sys.executable, "-c", f"import sys, pathlib, time; sys.stdin.read(); {code}"], stdin=-1)


@pytest.mark.parametrize(
    ("version", "made", "used"), [(17, "ArchiveClassesAtExit", "SharedArchiveFile"), (25, "AOTCacheOutput", "AOTCache")]
)
def test_it_is_made_once(place: Path, version: int, made: str, used: str) -> None:
    archive = Archive(Path(sys.executable), version, place)
    assert archive.missing and archive.options[0].startswith(f"-XX:{made}=")
    part = archive.options[0].partition("=")[2]
    archive.make(ending(f"pathlib.Path({part!r}).write_text('classes')"))
    (file,) = place.glob("*.jsa")
    again = Archive(Path(sys.executable), version, place)
    assert not again.missing and again.options[0] == f"-XX:{used}={file}"
    assert file.read_text() == "classes"


@pytest.mark.parametrize("code", ["pass", "sys.exit(3)", "time.sleep(60)"])
def test_it_is_given_up_once(place: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setattr("evermat.spark.launch.class_archive._MAKING", 0.5 if "sleep" in code else 30)
    process = ending(code)
    Archive(Path(sys.executable), 17, place).make(process)
    process.kill()
    process.wait()
    again = Archive(Path(sys.executable), 17, place)
    assert not again.missing and again.options == ()
    assert [path.name for path in place.glob(".*")] == []


def test_nowhere_to_keep_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evermat.spark.launch.class_archive.cache_folder", lambda: None)
    archive = Archive(Path(sys.executable), 17, Path())
    assert (archive.missing, archive.options) == (False, ())
