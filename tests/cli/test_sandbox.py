"""`--sandbox` against every way in which a program, its data, an ontology or a state can name a file, and that all of them work without it."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path

import pytest

import evermat
from evermat.core import is_sandboxed
from tests.support.commands import Done, Evermat

SECRET = "http://x/secret"
TRIPLE = f"<{SECRET}> <http://x/p> <http://x/o> .\n"
IMPORT = "<http://x/o> a <http://www.w3.org/2002/07/owl#Ontology> ; <http://www.w3.org/2002/07/owl#imports> <{}> .\n"
CATALOG = '<catalog xmlns="urn:oasis:names:tc:entity:xmlns:xml:catalog"><uri name="http://x/other" uri="{}"/></catalog>'
URIS = [
    "http://127.0.0.1:9/s.nt",
    "https://127.0.0.1:9/s.nt",
    "file:///etc/hostname",
    "file:/etc/hostname",
    "s3a://b/s",
    "hdfs://h/s",
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiled_kernels: None) -> Path:
    """A working folder with a secret beside the folder of facts, and links to it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVERMAT_ENGINE", "memory")
    monkeypatch.setenv("SECRET", str(tmp_path / "outside" / "s.nt"))
    for name in ("facts/sub", "facts/s.parquet", "outside/deep", "out"):
        Path(name).mkdir(parents=True)
    for name in ("outside/s.nt", "outside/deep/s.nt", "outside/a.nt"):
        Path(name).write_text(TRIPLE)
    Path("outside/s.facts").write_text("<http://x/secret>\t<http://x/secret>\t<http://x/secret>\n")
    Path("outside/s.jsonl").write_text('["<http://x/secret>", "<http://x/secret>", "<http://x/secret>"]\n')
    Path("outside/s.nt.gz").write_bytes(gzip.compress(TRIPLE.encode()))
    Path("facts/good.nt").write_text("<http://x/a> <http://x/p> <http://x/b> .\n")
    m = evermat.Program.parse('.decl t(s:term, p:term, o:term)\n.output t(filename="s.parquet")').materialise(
        {"t": [("<x:a>", "<x:b>", "<x:c>")]}
    )
    m.write_outputs("outside")
    Path("facts/link.nt").symlink_to("../outside/s.nt")
    Path("facts/link.facts").symlink_to(tmp_path / "outside" / "s.facts")
    Path("facts/link.parquet").symlink_to("../outside/s.parquet")
    Path("facts/s.parquet/part.parquet").symlink_to("../../outside/s.parquet")
    Path("facts/linked").symlink_to("../outside")
    Path("facts/sub/linked").symlink_to(tmp_path / "outside" / "deep", target_is_directory=True)
    Path("facts/chain.nt").symlink_to("link.nt")
    Path("facts/inner.nt").symlink_to("good.nt")
    os.mkfifo("facts/pipe.nt")
    return tmp_path


@pytest.fixture
def run(folder: Path, evermat_command: Evermat) -> Evermat:
    def run(program: str, *options: object) -> Done:
        Path("p.dl").write_text(program)
        return evermat_command("run", "p.dl", "-F", "facts", "-D", "out", *options)

    return run


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"p.dl"}


INPUTS = [
    "../outside/s.nt",
    "sub/../../outside/s.nt",
    "./../outside/s.nt.gz",
    "../outside/s.facts",
    "../outside/s.jsonl",
    "../outside/s.parquet",
    "../outside",
    "..",
    "../outside/*.nt",
    "../*/s.nt",
    "../missing.nt",
    "/proc/self/environ",
    "/dev/stdin",
    "/proc/self/cwd/outside/s.nt",
    "link.nt",
    "link.facts",
    "link.parquet",
    "s.parquet",
    "chain.nt",
    "linked",
    "linked/s.nt",
    "linked/deep/s.nt",
    "linked/*.nt",
    "link*/s.nt",
    "sub/linked/s.nt",
    "sub/*/s.nt",
    "*.nt",
    "pipe.nt",
]


@pytest.mark.parametrize("name", [*INPUTS, *URIS, "{absolute}"])
def test_inputs(name: str, run: Evermat, folder: Path) -> None:
    name = name.format(absolute=folder / "outside" / "s.nt")
    program = f'.decl t(s:term, p:term, o:term)\n.input t(filename="{name}")\n.output t\n'
    done = run(program, "--sandbox")
    head, place, *_ = done.err.splitlines()
    assert (done.code, done.out) == (2, ""), done.err
    assert head.startswith("error[E295]: the sandbox does not let `"), done.err
    assert place == " --> p.dl:2:8"
    assert "secret" not in done.err
    assert not list(Path("out").iterdir())


def test_the_exact_text(run: Evermat, folder: Path) -> None:
    done = run('.decl a(x:symbol)\n.input a(filename="link.facts")\n', "--sandbox")
    assert done == (
        2,
        "",
        "error[E295]: the sandbox does not let `facts/link.facts` be read: a symbolic link leads elsewhere\n"
        " --> p.dl:2:8\n"
        "  |\n"
        '2 | .input a(filename="link.facts")\n'
        "  |        ^\n"
        f"  = note: in a sandbox, files are read only below `{folder / 'facts'}`\n",
    )


@pytest.mark.parametrize(
    "how",
    [
        "IO=stdin",
        "IO=table, name=t",
        'IO=jdbc, url="jdbc:x", dbtable=t',
        "IO=spark, format=csv, path=s",
        "IO=spark, format=rate",
    ],
)
def test_inputs_that_are_no_files(how: str, run: Evermat) -> None:
    done = run(f".decl a(x:symbol)\n.input a({how})\n", "--sandbox")
    assert (done.code, done.err[:11]) == (2, "error[E295]"), done.err


@pytest.mark.parametrize("name", ["good.nt", "inner.nt", "sub/../good.nt", "go*.nt"])
def test_inputs_below_the_folder(name: str, run: Evermat) -> None:
    program = f'.decl t(s:term, p:term, o:term)\n.input t(filename="{name}")\n.output t\n'
    assert run(program, "--sandbox") == (0, "", "")
    assert "x/a" in Path("out/t.csv").read_text()


@pytest.mark.parametrize("name", ["$SECRET", "${SECRET}", "~/s.nt", "%SECRET%", "-"])
def test_names_are_not_expanded(name: str, run: Evermat) -> None:
    done = run(f'.decl t(s:term, p:term, o:term)\n.input t(filename="{name}")\n', "--sandbox")
    assert (done.code, done.err[:11]) == (3, "error[E300]"), done.err


@pytest.mark.parametrize("name", ["../outside/x.csv", "{absolute}/x.csv", "linked/x.csv", "linked/new/x.csv", "link.csv",
                                  "../out2/x.csv", "..", "sub/../../x.csv", "pipe", "/dev/null", "../outside/x.parquet", "../outside/x.nt",
                                  *URIS])  # fmt: skip
def test_outputs(name: str, run: Evermat, folder: Path) -> None:
    Path("out/linked").symlink_to("../outside")
    Path("out/link.csv").symlink_to("../outside/s.facts")
    os.mkfifo("out/pipe")
    before = tree(folder / "outside"), names(folder)
    name = name.format(absolute=folder / "outside")
    program = f'.decl t(s:term, p:term, o:term)\nt("<http://x/a>", "<b:b>", "<c:c>").\n.output t(filename="{name}")\n'
    done = run(program, "--sandbox")
    error = done.err[done.err.index("error") :]
    assert (done.code, done.out) == (2, "")
    assert error.startswith("error[E295]: the sandbox does not let `"), done.err
    assert error.splitlines()[1] == " --> p.dl:3:9"
    assert (tree(folder / "outside"), names(folder)) == before


def test_outputs_below_the_folder(run: Evermat) -> None:
    Path("out/there").mkdir()
    Path("out/inner").symlink_to("there")
    program = '.decl a(x:number)\na(1).\n.output a(filename="inner/new/a.csv")\n.output a(filename="b/c/a.csv")\n.output a(IO=stdout)'
    assert run(program, "--sandbox", "--stats", "out/s.json").code == 0
    assert Path("out/there/new/a.csv").read_text() == Path("out/b/c/a.csv").read_text() == "1\n"
    assert Path("out/s.json").exists()


@pytest.mark.parametrize("option", ["--rdf", "--ontology"])
@pytest.mark.parametrize("file", ["outside/s.nt", "facts/link.nt", "facts/../outside/s.nt", "facts/linked/s.nt", *URIS])
def test_data_and_ontologies(option: str, file: str, run: Evermat) -> None:
    done = run(".decl a(x:number)", option, file, "--sandbox")
    assert (done.code, done.err[:11]) == (2, "error[E295]"), done.err


@pytest.mark.parametrize("option", ["--export", "--stats"])
@pytest.mark.parametrize("file", ["outside/x.nt", "out/../outside/x.nt", "out/linked/x.nt", "facts/x.nt"])
def test_exports_and_statistics(option: str, file: str, run: Evermat, folder: Path) -> None:
    Path("out/linked").symlink_to("../outside")
    before = tree(folder / "outside")
    done = run(".decl a(x:number)", option, file, "--sandbox")
    assert (done.code, done.err[:11]) == (2, "error[E295]"), done.err
    assert tree(folder / "outside") == before


PLACES = ["../outside/s.nt", "{absolute}/outside/s.nt", "file://{absolute}/outside/s.nt", "linked/s.nt", "link.nt"]


@pytest.mark.parametrize("place", PLACES)
def test_catalogues(place: str, run: Evermat, folder: Path) -> None:
    Path("facts/o.ttl").write_text(IMPORT.format("http://x/other"))
    Path("facts/catalog-v001.xml").write_text(CATALOG.format(place.format(absolute=folder)))
    options = [".decl a(x:number)", "--ontology", "facts/o.ttl", "--export", "out/all.nt"]
    done = run(*options, "--sandbox")
    assert (done.code, done.err[:11]) == (2, "error[E295]"), done.err
    assert done.err.splitlines()[1] == " --> facts/o.ttl"
    assert not Path("out/all.nt").exists()
    assert run(*options).code == 0
    assert SECRET in Path("out/all.nt").read_text()


@pytest.mark.parametrize("iri", ["http://x/link.nt", "http://x/catalogue"])
def test_imports_beside_that_are_links(iri: str, run: Evermat) -> None:
    Path("facts/o.ttl").write_text(IMPORT.format(iri))
    Path("outside/catalog.xml").write_text(CATALOG.format("../facts/good.nt"))
    Path("facts/catalog-v001.xml").symlink_to("../outside/catalog.xml")
    done = run(".decl a(x:number)", "--ontology", "facts/o.ttl", "--sandbox")
    assert (done.code, done.err[:11]) == (2, "error[E295]"), done.err


@pytest.mark.parametrize("iri", ["http://127.0.0.1:9/other.ttl", "file:///etc/hostname", "../outside/s.nt"])
def test_imports_from_elsewhere(iri: str, run: Evermat) -> None:
    """They are missing, as they are without a sandbox."""
    Path("facts/o.ttl").write_text(IMPORT.format(iri))
    done = run(".decl a(x:number)", "--ontology", "facts/o.ttl", "--base", "http://x/", "--sandbox")
    assert (done.code, done.err[:11]) == (3, "error[E352]"), done.err


def test_entities_are_not_read(run: Evermat, folder: Path) -> None:
    text = (
        f'<!DOCTYPE rdf:RDF [<!ENTITY e SYSTEM "file://{folder}/outside/s.nt">]>'
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="http://x/">'
        '<rdf:Description rdf:about="http://x/a"><x:p>&e;</x:p></rdf:Description></rdf:RDF>'
    )
    Path("facts/d.rdf").write_text(text)
    done = run(".decl a(x:number)", "--rdf", "facts/d.rdf", "--export", "out/all.nt", "--sandbox")
    assert done.code == 3
    assert "secret" not in done.err


def test_spark_is_refused(run: Evermat) -> None:
    for options in (["--engine", "spark"], ["--engine", "spark", "--master", "local[1]"]):
        assert run(".decl a(x:number)", "--sandbox", *options) == (
            2,
            "",
            "error[E200]: `--sandbox` needs `--engine memory`: Spark opens network connections, and its tasks read any file\n",
        )


@pytest.mark.parametrize("uri", ["s3a://b/f", "file:///tmp", "http://127.0.0.1:9/"])
def test_a_folder_of_facts_that_is_a_uri(uri: str, folder: Path, evermat_command: Evermat) -> None:
    Path("p.dl").write_text(".decl a(x:number)\n.input a\n")
    assert evermat_command("run", "p.dl", "-F", uri, "--sandbox") == (
        2,
        "",
        f"error[E295]: the sandbox does not let `{uri}` be read: it is a URI\n  = note: a sandbox is a folder of this machine\n",
    )


# --- states and changes ------------------------------------------------------------------------------------------
@pytest.fixture
def state(run: Evermat) -> Path:
    assert run(".decl a(x:number)\na(1).\n", "--state", "s", "--sandbox").code == 0
    return Path("s")


COMMANDS = [
    ["query", "--state", "s", "a(x)"],
    ["log", "--state", "s"],
    ["update", "--state", "s", "c.tsv"],
    ["vacuum", "--state", "s", "--keep", "1"],
    ["migrate", "--state", "s"],
    ["export", "--state", "s", "out/x.nt"],
    ["stream", "--state", "s", "--source", "c", "--once"],
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: arguments[0])
def test_states(arguments: list[str], state: Path, evermat_command: Evermat) -> None:
    Path("c.tsv").write_text("+\ta\t2\n")
    Path("c").mkdir()
    assert evermat_command(*arguments, "--sandbox").code == 0
    shutil.move("s/relations", "elsewhere")
    Path("s/relations").symlink_to("../elsewhere")
    before = tree(Path("elsewhere"))
    done = evermat_command(*arguments, "--sandbox")
    text = "s/relations` be read: it is a symbolic link\n  = note: a state consists of files and folders of its own, without links\n"
    assert (done.code, done.err.endswith(text)) == (2, True), done.err
    assert tree(Path("elsewhere")) == before


def test_a_hard_link_in_a_state(state: Path, evermat_command: Evermat) -> None:
    file = next(path for path in state.rglob("*") if path.name.endswith(".json"))
    os.link(file, "outside/other")
    done = evermat_command("query", "--state", "s", "a(x)", "--sandbox")
    assert (done.code, done.err[:11]) == (2, "error[E295]"), done.err


def test_changes(state: Path, evermat_command: Evermat) -> None:
    Path("c.parquet").mkdir()
    Path("c.parquet/x.parquet").symlink_to("../outside/s.parquet")
    done = evermat_command("update", "--state", "s", "c.parquet", "--sandbox")
    assert (done.code, done.err[:11]) == (2, "error[E295]"), done.err
    Path("c").mkdir()
    Path("c/1.tsv").symlink_to("../outside/s.facts")
    done = evermat_command("stream", "--state", "s", "--source", "c", "--once", "--sandbox")
    assert (done.code, done.err[:11]) == (2, "error[E295]"), done.err
    assert [v.number for v in evermat.versions("s")] == [1]


# --- commands without `-F` ------------------------------------------------------------------------------------
@pytest.mark.parametrize("command", ["translate", "check"])
def test_what_ontologies_import(command: str, folder: Path, evermat_command: Evermat) -> None:
    Path("facts/o.ttl").write_text(IMPORT.format("http://x/other"))
    Path("facts/catalog-v001.xml").write_text(CATALOG.format("../outside/s.nt"))
    arguments = [command, *(["--ontology"] if command == "check" else []), "facts/o.ttl"]
    done = evermat_command(*arguments, "--sandbox")
    assert (done.code, done.err[:11]) == (2, "error[E295]"), done.err
    Path("facts/catalog-v001.xml").write_text(CATALOG.format("good.nt"))
    assert evermat_command(*arguments, "--sandbox").code == 0


def test_what_commands_write(state: Path, evermat_command: Evermat) -> None:
    Path("c").mkdir()
    Path("c/1.tsv").write_text("+\ta\t2\n")
    Path("linked").symlink_to("out")
    for arguments in (
        ["translate", "facts/good.nt", "-o", "out/rules.dl"],
        ["export", "--state", "s", "out/x.nt"],
        ["update", "--state", "s", "c/1.tsv", "--changes-out", "out/changes.tsv", "--stats", "out/u.json"],
        ["update", "--state", "s", "c/1.tsv", "--changes-out", "-"],
        ["stream", "--state", "s", "--source", "c", "--once", "--changes-out", "linked/feed", "--stats", "out/s.jsonl"],
    ):
        assert evermat_command(*arguments, "--sandbox").code == 0
    assert names(Path("out")) == {"rules.dl", "x.nt", "changes.tsv", "u.json", "feed", "s.jsonl"}


def test_a_state_is_no_folder_of_facts(state: Path, run: Evermat) -> None:
    done = run('.decl a(x:symbol)\n.input a(filename="../s/evermat.json")\n', "--state", "s", "--sandbox")
    assert (done.code, done.err[:11]) == (2, "error[E295]"), done.err
    done = run('.decl a(x:symbol)\n.output a(filename="../s/a.csv")\n', "--state", "s", "--sandbox")
    assert (done.code, "error[E295]" in done.err) == (2, True), done.err


def test_nothing_holds_afterwards(run: Evermat) -> None:
    assert run(".decl a(x:number)", "--sandbox").code == 0
    assert not is_sandboxed()
    done = run(
        '.decl t(s:term, p:term, o:term)\n.input t(filename="../outside/s.nt")\n.output t(filename="../outside/x.csv")\n'
    )
    assert done.code == 0
    assert "warning[W283]: the name `../outside/x.csv` of this output contains `..`" in done.err
    assert SECRET in Path("outside/x.csv").read_text()


# --- in Python --------------------------------------------------------------------------------------------------
def test_in_python(folder: Path) -> None:
    text = '.decl t(s:term, p:term, o:term)\n.input t(filename="link.nt")\n'
    with pytest.raises(evermat.SandboxError):
        evermat.Program.parse(text, sandbox=True).materialise(inputs="facts")
    assert len(evermat.Program.parse(text).materialise(inputs="facts")["t"]) == 1
    with pytest.raises(evermat.SandboxError):
        evermat.Program.parse(sandbox=True).materialise(inputs="facts", rdf="outside/s.nt")
    m = evermat.Program.parse('.decl a(x:number)\na(1).\n.output a(filename="../a.csv")', sandbox=True).materialise()
    for readable in (m, m.snapshot()):
        with pytest.raises(evermat.SandboxError):
            readable.write_outputs("out")
    assert not Path("a.csv").exists()
    m.save("state")
    m.close()
    with evermat.open("state", sandbox=True, write=True) as opened, pytest.raises(evermat.SandboxError):
        opened.write_outputs("out")
    Path("state/relations/x").symlink_to("../../outside")
    for function in (evermat.open, evermat.versions, evermat.changes, evermat.migrate):
        with pytest.raises(evermat.SandboxError):
            function("state", sandbox=True)
    with pytest.raises(evermat.SandboxError):
        evermat.query("state", "a(x)", sandbox=True)
    with pytest.raises(evermat.SandboxError):
        evermat.vacuum("state", 1, sandbox=True)
    Path("facts/o.ttl").write_text(IMPORT.format("http://x/other"))
    Path("facts/catalog-v001.xml").write_text(CATALOG.format("../outside/s.nt"))
    with pytest.raises(evermat.SandboxError):
        evermat.translate("facts/o.ttl", sandbox=True)
    with pytest.raises(evermat.SandboxError):
        evermat.Program.parse(ontology="facts/o.ttl", sandbox=True)


def test_folder_streams_in_python(folder: Path) -> None:
    Path("c").mkdir()
    Path("c/1.tsv").symlink_to("../outside/s.facts")
    m = evermat.Program.parse(".decl a(x:number)").materialise()
    with pytest.raises(evermat.SandboxError):
        list(m.stream(evermat.FolderStream("c", m, once=True, sandbox=True)))
