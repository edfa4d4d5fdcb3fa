"""States at `s3://`, against an S3 service on this machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import evermat
from evermat.core import ArgumentError, EvermatError, ResourceError, SandboxError, StateError
from evermat.store import bucket as buckets
from evermat.store.location import ObjectPath
from tests.support.commands import Evermat
from tests.support.s3 import Service, serving

PROGRAM = """.decl edge(x:symbol, y:symbol)
.decl path(x:symbol, y:symbol)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
EDGES = [("a", "b"), ("b", "c")]


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with serving() as found:
        yield found


@pytest.fixture
def uri(service: Service, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in service.settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(buckets, "RETRIES", {"max_retries": 1})
    monkeypatch.setattr(buckets, "_buckets", {})
    return service.new_folder()


def saved(uri: str) -> evermat.Materialisation:
    m = evermat.Program.parse(PROGRAM).materialise({"edge": EDGES}, counters="both")
    m.save(uri)
    return m


def paths(uri: str, version: int | None = None) -> set[tuple]:
    return set(evermat.query(uri, "path(x, y)", version))


FIRST = {("a", "b"), ("b", "c"), ("a", "c")}


def test_a_life(uri: str) -> None:
    with saved(uri) as m, evermat.open(uri) as reader, evermat.open(uri, live=True) as live:
        assert paths(uri) == FIRST
        m.update(insert={"edge": [("c", "d")]}, delete={"edge": [("a", "b")]})
        later = {("b", "c"), ("c", "d"), ("b", "d")}
        assert (paths(uri), paths(uri, 1)) == (later, FIRST)
        assert set(reader["path"]) == FIRST
        assert (reader.refresh(), reader.refresh()) == (True, False)
        assert set(reader["path"]) == set(live["path"]) == later
        assert [version.number for version in evermat.versions(uri)] == [1, 2]
        changed = evermat.changes(uri, 2)["path"].to_pylist()
        assert {(row["x"], row["y"], row["_op"]) for row in changed} == {
            ("a", "b", "-"), ("a", "c", "-"), ("c", "d", "+"), ("b", "d", "+"),
        }  # fmt: skip
        m.save(uri)  # it is there already
        assert m.version == 2
    with evermat.open(uri, write=True, keep=2) as m:
        m.update(insert={"edge": [("d", "e")]}, position=("stream", "5"))
        m.update(insert={"edge": [("e", "f")]})
        assert m.positions == {"stream": "5"}
    assert [version.number for version in evermat.versions(uri)] == [3, 4]
    assert evermat.vacuum(uri, 1)[0] > 0
    with pytest.raises(StateError, match="E506"):
        paths(uri, 2)
    with evermat.Program.parse(PROGRAM).materialise({"edge": [("x", "y")]}) as other:
        with pytest.raises(StateError, match="E511"):
            other.save(uri)
        other.save(uri + "/", positions="keep")
        assert other.version == 5
    assert paths(uri) == {("x", "y")}
    with evermat.open(uri, version=4) as old:
        assert ("e", "f") in old["edge"]
    assert evermat.migrate(uri) == 2


def test_other_programs_read_it(uri: str, service: Service) -> None:
    deltalake, duckdb, pl = (pytest.importorskip(name) for name in ("deltalake", "duckdb", "polars"))
    with saved(uri) as m:
        m.update(delete={"edge": [("a", "b")]}, insert={"edge": [("b", "e")]})
        right = sorted(m["path"])
    options = service.settings
    newest = pl.read_delta(f"{uri}/commits", storage_options=options)["version"].max()
    facts = (
        pl.scan_delta(f"{uri}/relations/path", storage_options=options)
        .filter(pl.col("_version") <= newest)
        .sort("_version")
        .group_by("x", "y")
        .last()
        .filter(pl.col("_op") != "-")
        .select("x", "y")
        .collect()
    )
    assert sorted(facts.rows()) == right
    connection = duckdb.connect()
    for name, folder in (("path", "relations/path"), ("commits", "commits")):
        table = deltalake.DeltaTable(f"{uri}/{folder}", storage_options=options)
        connection.register(name, table.to_pyarrow_table())
    query = evermat.store.CURRENT_FACTS.format(relation="path", commits="commits", columns="x, y")
    assert sorted(row[:2] for row in connection.execute(query).fetchall()) == right


def test_the_command_line(uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evermat_command: Evermat) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.dl").write_text(PROGRAM + 'edge("a", "b").\n')
    Path("changes").mkdir()
    Path("changes/1.tsv").write_text("+\tedge\tb\tc\n")
    assert evermat_command("run", "p.dl", "--state", uri).code == 0
    assert evermat_command("update", "--state", uri, "changes/1.tsv").err == (
        "version 2: changes/1.tsv: 1 fact inserted, 0 deleted\n".replace("1 fact inserted", "3 facts inserted")
    )
    done = evermat_command("query", "--state", uri, 'path("a", x)', "--format", "csv")
    assert done == (0, "x\nb\nc\n", "")
    assert evermat_command("stream", "--state", uri, "--source", "changes", "--once").code == 0
    assert len(evermat_command("log", "--state", uri).out.splitlines()) == 4
    assert evermat_command("run", "p.dl", "--state", uri).code == 5  # a stream has a position
    assert evermat_command("run", "p.dl", "--state", uri, "--reset-positions").code == 0
    assert evermat_command("vacuum", "--state", uri, "--keep", "1").code == 0
    assert paths(uri) == {("a", "b")}
    refused = f"error[E295]: the sandbox does not let `{uri}` be read: it is a URI\n"
    done = evermat_command("query", "--state", uri, "path(x, y)", "--sandbox")
    assert (done.code, done.err[: len(refused)]) == (2, refused)
    with pytest.raises(SandboxError, match="E295"):
        evermat.open(uri, sandbox=True)
    assert {path.name for path in tmp_path.iterdir()} == {"p.dl", "changes"}


RACER = """
import sys, evermat
for line in sys.stdin:
    with evermat.open(sys.argv[1], write=True) as m:
        print("ready", flush=True)
        sys.stdin.readline()
        try:
            m.update(insert={"edge": [(sys.argv[2], line.strip())]})
            print("won", flush=True)
        except evermat.EvermatError as error:
            print(str(error)[:11], flush=True)
"""


def test_races_of_two_processes(uri: str, service: Service) -> None:
    """Fifteen times two writers update the same version: each time exactly one does."""
    saved(uri).close()
    command = [sys.executable, "-c", RACER, uri]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    racers = [subprocess.Popen([*command, name], text=True, **pipes) for name in ("one", "two")]
    try:
        for number in range(15):
            for expected in (["ready", "ready"], ["error[E504]", "won"]):
                for racer in racers:
                    racer.stdin.write(f"{number}\n")
                    racer.stdin.flush()
                assert sorted(racer.stdout.readline().strip() for racer in racers) == expected, number
    finally:
        for racer in racers:
            racer.stdin.close()
            racer.wait()
            racer.stdout.close()
    assert len([path for path in paths(uri) if path[0] in ("one", "two")]) == 15


def test_a_killed_writer(uri: str) -> None:
    """A writer that is killed while it updates leaves the last version, which can be updated."""
    with saved(uri):
        pass
    script = 'import evermat, sys\nm = evermat.open(sys.argv[1])\nfor i in range(10**6):\n    m.update(insert={"edge": [("k", str(i))]})\n    print(i, flush=True)\n'
    with subprocess.Popen([sys.executable, "-c", script, uri], stdout=subprocess.PIPE, text=True) as writer:
        done = [int(writer.stdout.readline()) for _ in range(3)][-1]
        os.kill(writer.pid, signal.SIGKILL)
        rest = writer.stdout.read().split()
    done = int(rest[-1]) if rest else done
    newest = evermat.versions(uri)[-1].number
    assert newest in (done + 2, done + 3)
    with evermat.open(uri, write=True) as m:
        assert m.version in (newest, newest + 1)
        m.update(insert={"edge": [("after", "that")]})
    assert ("after", "that") in paths(uri)
    evermat.vacuum(uri, 1)
    assert ("k", str(done)) in paths(uri)


def test_a_forked_process(uri: str) -> None:
    """It gets an error instead of waiting for threads that it has not got."""
    saved(uri).close()
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads and forks: that is what this is about
        child = os.fork()
    if not child:
        try:
            paths(uri)
        except BaseException as error:
            os.write(write, str(error).encode())
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read, encoding="utf-8") as said:
        assert "this process was forked from one that used a bucket: start processes by `spawn`" in said.read()


def test_missing_buckets_and_folders(uri: str) -> None:
    missing = "s3://there-is-no-such-bucket/state"
    for call in (lambda: saved(missing), lambda: evermat.open(missing), lambda: evermat.vacuum(missing, 1)):
        with pytest.raises(EvermatError) as error:
            call()
        assert "there is no bucket `there-is-no-such-bucket`" in str(error.value)
        assert f"`{missing}" in str(error.value)
        assert error.value.exit_code in (5, 6)
    with pytest.raises(StateError) as error:
        evermat.open(uri)
    assert (
        str(error.value) == f"error[E500]: `{uri}` is not a state of evermat\n  = note: it has no file `evermat.json`"
    )
    bucket, _, _ = uri.removeprefix("s3://").partition("/")
    buckets.bucket_of(ObjectPath(bucket, "")).put("mine/file.txt", b"mine")
    with pytest.raises(StateError, match="E500"):
        saved(f"s3://{bucket}/mine")
    with pytest.raises(ArgumentError, match="it names no folder in the bucket"):
        evermat.open(f"s3://{bucket}/")


def test_no_service(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with saved(uri) as m:
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        monkeypatch.setattr(buckets, "_buckets", {})
        with pytest.raises((ResourceError, StateError)) as error:
            m.update(insert={"edge": [("x", "y")]})
        assert "the service cannot be reached" in str(error.value)
        assert f"`{uri}" in str(error.value)
        assert "test-secret" not in str(error.value)
        assert set(m["path"]) == FIRST
        with pytest.raises(StateError, match="the service cannot be reached"):
            evermat.open(uri)
        monkeypatch.undo()


def test_a_silent_service(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes connections and says nothing: that is noticed soon, and all that a call asks costs that time once."""
    monkeypatch.setattr(buckets, "FIRST_CLIENT", {"timeout": "1s"})
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        begun = time.monotonic()
        for call in (lambda: evermat.open(uri), lambda: saved(uri), lambda: evermat.vacuum(uri, 1)):
            with pytest.raises(StateError, match="the service cannot be reached") as error:
                call()
            assert f"`{uri}" in str(error.value)
        assert time.monotonic() - begun < 30


def test_refused_credentials(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the service says when it refuses a key."""
    from http.server import BaseHTTPRequestHandler, HTTPServer
    from threading import Thread

    class Refusing(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = b"<Error><Code>InvalidAccessKeyId</Code><Message>test-key test-secret</Message></Error>"
            self.send_response(403)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = answer

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Refusing)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
        for call in (lambda: saved(uri), lambda: evermat.open(uri), lambda: evermat.versions(uri)):
            with pytest.raises(EvermatError) as error:
                call()
            assert f"cannot read `{uri}" in str(error.value)
            assert "the service refuses it" in str(error.value)
            assert "test-" not in str(error.value)
            assert error.value.exit_code == 5
    finally:
        server.shutdown()
        server.server_close()


def test_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "find_spec", lambda _: None)
    with pytest.raises(ArgumentError) as error:
        evermat.open("s3://bucket/state")
    assert str(error.value) == (
        "error[E297]: a state at `s3://` needs the package `obstore`, which is not installed\n"
        "  = note: install it with `pip install 'evermat[s3]'`"
    )


@pytest.mark.parametrize(
    ("uri", "why"),
    [
        ("s3://B/state", "it has no valid name of a bucket"),
        ("s3://b/state", "it has no valid name of a bucket"),
        ("s3://bucket", None),
        ("s3://bucket/a b", "its folders must be named by letters, digits and `!_.*'()-`"),
        ("s3://bucket/a/../b", "its folders must be named by letters, digits and `!_.*'()-`"),
        ("s3://bucket/a?versionId=1", "its folders must be named by letters, digits and `!_.*'()-`"),
    ],
)
def test_uris_that_cannot_be(uri: str, why: str | None) -> None:
    with pytest.raises(ArgumentError, match="E296") as error:
        evermat.open(uri)
    assert (why or "it names no folder in the bucket") in str(error.value)


def test_what_is_loaded() -> None:
    """The library for buckets is loaded for states in buckets only."""
    script = "import sys, evermat.store.store, evermat.store.formats.format_2; print('obstore' in sys.modules, 'evermat.store.bucket' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
