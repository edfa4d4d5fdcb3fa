"""States with representatives: what is saved comes back, version by version, and all commands speak of names unless they are asked not to."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evermat
from evermat import Materialisation
from evermat.language.terms import SAME_AS
from tests.support.commands import Evermat
from tests.support.environment import LONG
from tests.support.equality import naive
from tests.support.equality.checks import ALGORITHMS, assert_changed, assert_right
from tests.support.equality.programs import Sample, applied, random_sample, random_update
from tests.support.states import QUICK, rows_of
from tests.support.updates import facts_of

EXAMPLES = 60 if LONG else 2


class Kept:
    """What a state should hold, version by version."""

    def __init__(self, rng: Random, triples: bool) -> None:
        self.rng, self.sample = rng, random_sample(rng, triples=triples)
        self.explicit = self.sample.explicit
        self.versions = {1: naive.materialise(self.sample.program, self.explicit)}

    @property
    def newest(self) -> naive.Result:
        return self.versions[max(self.versions)]

    def step(self, m: Materialisation) -> None:
        """A random update."""
        delete, insert = random_update(self.rng, self.sample, self.explicit, self.newest.facts)
        before, self.explicit = self.newest, applied(self.explicit, delete, insert)
        after = naive.materialise(self.sample.program, self.explicit)
        change = m.update(insert=insert, delete=delete, algorithm=self.rng.choice(ALGORITHMS))
        assert_changed(change, before.facts, after.facts)
        assert m.version is not None
        self.versions[m.version] = after
        self.check(m)

    def check(self, m: Materialisation) -> None:
        """It is the version that it says to be."""
        assert_right(m, self.versions[m.version or 1], self.sample.terms)


@pytest.mark.slow
@pytest.mark.parametrize("triples", [False, True])
@settings(max_examples=EXAMPLES, deadline=None)
@given(rng=st.randoms(use_true_random=True))
def test_every_version_comes_back(triples: bool, rng: Random) -> None:
    kept = Kept(rng, triples)
    with TemporaryDirectory(dir=QUICK) as home:
        path = Path(home) / "state"
        with evermat.Program.parse(kept.sample.text, equality="rewrite").materialise(kept.sample.facts) as m:
            m.save(path)
            for _ in range(2):
                kept.step(m)
        for _ in range(2):
            with evermat.open(path, write=True) as m:
                kept.check(m)
                kept.step(m)
        for version in kept.versions:
            with evermat.open(path, version) as m:
                kept.check(m)
                old = {name: set(m.query(question(kept.sample, name))) for name in m if m[name].columns}
                assert old == {name: kept.versions[version].facts.get(name, set()) for name in old}
        changes = {name: {row[:-2]: row[-2:] for row in rows_of(t)} for name, t in evermat.changes(path, 3, 3).items()}
        before, after = kept.versions[2].facts, kept.versions[3].facts
        for name, rows in after.items():
            expected = dict.fromkeys(rows - before[name], ("+", 3)) | dict.fromkeys(before[name] - rows, ("-", 3))
            assert changes.get(name, {}) == expected


def question(sample: Sample, name: str) -> str:
    """All facts of a relation, as a query."""
    arity = next((len(r.types) for r in sample.relations if r.name == name), 3)
    return f"{name}({', '.join(f'x{i}' for i in range(arity))})"


def test_an_update_that_fails_is_no_version(tmp_path: Path) -> None:
    one, two = '"1"', '"2"'
    text = ".prefix e: <http://e/> y = z :- e:age(x, y), e:age(x, z)."
    with evermat.Program.parse(text).materialise({"<http://e/age>": [("<http://e/a>", one)]}) as m:
        m.save(tmp_path / "state")
        with pytest.raises(evermat.DataError):
            m.update(insert={"<http://e/age>": [("<http://e/a>", two)]})
        assert m.version == 1
        m.update(insert={"<http://e/age>": [("<http://e/b>", one)], SAME_AS: [("<http://e/a>", "<http://e/b>")]})
        assert m.version == 2
    with evermat.open(tmp_path / "state") as m:
        assert m.names("<http://e/b>") == ["<http://e/a>", "<http://e/b>"]
        assert set(m["<http://e/age>"]) == {("<http://e/a>", one), ("<http://e/b>", one)}
        assert list(m["<http://e/age>"].representatives) == [("<http://e/a>", one)]


# --- commands ----------------------------------------------------------------------------------------------

PROGRAM = """\
.prefix e: <http://e/>
.decl knows(x:term, y:term)
.input knows
.decl friends(x:term, n:number)
x = y :- e:email(x, z), e:email(y, z).
e:known(y) :- knows(_, y).
friends(x, n) :- knows(x, _), n = count : { knows(x, _) }.
.output knows, friends
.output e:known(filename="known.nt")
"""
A, B, C = (f"<http://e/{name}>" for name in "abc")
EMAIL = "<http://e/email>"
KNOWN = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/known>"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evermat_command: Evermat) -> Path:
    """A working folder with a state of one version: a and b have one address; a knows c, and c knows b."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.dl").write_text(PROGRAM)
    (tmp_path / "knows.facts").write_text(f"{A}\t{C}\n{C}\t{B}\n")
    (tmp_path / "mail.nt").write_text(f'{A} {EMAIL} "m" .\n{B} {EMAIL} "m" .\n')
    assert evermat_command("run", "p.dl", "--rdf", "mail.nt", "--state", "state") == (0, "", "")
    return tmp_path


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_outputs_are_in_names(folder: Path) -> None:
    assert lines(folder / "knows.csv") == [f"{A}\t{C}", f"{B}\t{C}", f"{C}\t{A}", f"{C}\t{B}"]
    assert lines(folder / "friends.csv") == [f"{A}\t1", f"{B}\t1", f"{C}\t2"]
    assert lines(folder / "known.nt") == [f"{x} {KNOWN} ." for x in (A, B, C)]


@pytest.mark.slow
def test_updates_tell_what_changed_in_names(folder: Path, evermat_command: Evermat) -> None:
    (folder / "one.del.nt").write_text(f'{B} {EMAIL} "m" .\n')
    (folder / "two.txt").write_text(f"+\tknows\t{B}\t{B}\n+\t{EMAIL}\t{B}\t{quoted('m')}\n")
    update = ("update", "--state", "state")
    assert evermat_command(*update, "one.del.nt", "--changes-out", "out.txt").code == 0
    gone = [
        f"-\t{EMAIL}\t{B}\t{quoted('m')}",
        f"-\t<http://e/known>\t{A}",
        *(f"-\t{SAME_AS}\t{x}\t{y}" for x in (A, B) for y in (A, B)),
        f"-\tknows\t{B}\t{C}",
        f"-\tknows\t{C}\t{A}",
        f"-\tfriends\t{B}\t1",
        f"-\tfriends\t{C}\t2",
    ]
    # Each address is its own, so that x = x follows by the rule.
    gone.remove(f"-\t{SAME_AS}\t{A}\t{A}")
    assert sorted(lines(folder / "out.txt")) == sorted([*gone, f"+\tfriends\t{C}\t1"])
    assert evermat_command(*update, "two.txt", "--changes-out", "-", "--algorithm", "bf-eq").code == 0
    with evermat.open("state") as m:
        assert set(m["friends"]) == {(A, 3), (B, 3), (C, 2)}
        assert sorted(m["friends"].representatives) == [(A, 3), (C, 2)]
    with evermat.open("state", 2) as m:
        assert m.names(A) == [A]
    with evermat.open("state", 1) as m:
        assert m.names(A) == [A, B]


def quoted(text: str) -> str:
    return f'"{text}"'


def test_changes_can_be_applied_elsewhere(folder: Path, evermat_command: Evermat) -> None:
    """Who keeps a copy in names of all relations can follow the changes."""
    with evermat.open("state") as m:
        copy = facts_of(m)
    (folder / "c.txt").write_text(f"+\tknows\t{C}\t{C}\n-\tknows\t{A}\t{C}\n-\t{EMAIL}\t{A}\t{quoted('m')}\n")
    assert evermat_command("update", "--state", "state", "c.txt", "--changes-out", "o.jsonl").code == 0
    for line in lines(folder / "o.jsonl"):
        change = json.loads(line)
        row = tuple(change["values"])
        assert (row in copy[change["relation"]]) == (change["op"] == "-")
        (copy[change["relation"]].add if change["op"] == "+" else copy[change["relation"]].remove)(row)
    with evermat.open("state") as m:
        assert facts_of(m) == copy


@pytest.mark.parametrize("algorithm", ["bf-eq", "remat-eq", "bf-c", "remat", "auto"])
def test_algorithms_and_stats(folder: Path, evermat_command: Evermat, algorithm: str) -> None:
    (folder / "c.txt").write_text(f"-\t{EMAIL}\t{B}\t{quoted('m')}\n")
    command = ("update", "--state", "state", "c.txt", "--algorithm", algorithm, "--stats", "stats.json")
    assert evermat_command(*command).code == 0
    stats = json.loads((folder / "stats.json").read_text())
    assert stats["algorithm"] == algorithm
    used = {stratum["algorithm"] for stratum in stats["strata"] if SAME_AS in stratum["relations"]}
    possible = {"remat-eq"} if algorithm.startswith("remat") else {"bf-eq"}
    assert used in ([{"bf-eq"}, {"remat-eq"}] if algorithm == "auto" else [possible])
    with evermat.open("state") as m:
        assert set(m["friends"]) == {(A, 1), (C, 1)}


@pytest.mark.slow
def test_queries(folder: Path, evermat_command: Evermat) -> None:
    ask = ("query", "--state", "state", "--format", "csv")
    assert evermat_command(*ask, "knows(x, y)").out == f"x,y\n{A},{C}\n{B},{C}\n{C},{A}\n{C},{B}\n"
    assert evermat_command(*ask, "knows(x, y)", "--representatives").out == f"x,y\n{A},{C}\n{C},{A}\n"
    assert evermat_command(*ask, f"knows({B}, y)").out == f"y\n{C}\n"
    assert evermat_command(*ask, f"knows({B}, y)", "--representatives").out == f"y\n{C}\n"
    assert evermat_command(*ask, "knows(x, _), x != e:a").out == f"x\n{B}\n{C}\n"
    assert evermat_command(*ask, "n = count : { knows(_, _) }").out == "n\n4\n"
    assert evermat_command(*ask, "knows(e:c, e:b)").out == "answer\ntrue\n"
    (folder / "c.txt").write_text(f"-\t{EMAIL}\t{B}\t{quoted('m')}\n")
    assert evermat_command("update", "--state", "state", "c.txt").code == 0
    assert evermat_command(*ask, "knows(x, y)").out == f"x,y\n{A},{C}\n{C},{B}\n"
    assert evermat_command(*ask, "knows(x, y)", "--version", 1).out.count("\n") == 5
    assert evermat_command(*ask, "knows(x, y)", "--version", 1, "--representatives").out.count("\n") == 3


def test_exports(folder: Path, evermat_command: Evermat) -> None:
    export = ("export", "--state", "state")
    assert evermat_command(*export, "all.nt").code == 0
    expected = [f'{x} {EMAIL} "m" .' for x in (A, B)]
    expected += [f"{x} {SAME_AS} {y} ." for x in (A, B) for y in (A, B)]
    expected += [f"{x} {KNOWN} ." for x in (A, B, C)]
    assert lines(folder / "all.nt") == sorted(expected)
    assert evermat_command(*export, "few.nt", "--representatives").code == 0
    assert lines(folder / "few.nt") == sorted(
        [f'{A} {EMAIL} "m" .', f"{A} {SAME_AS} {A} .", *(f"{x} {KNOWN} ." for x in (A, C))]
    )
    assert evermat_command(*export, "said.nt", "--facts", "asserted").code == 0
    assert lines(folder / "said.nt") == [f'{x} {EMAIL} "m" .' for x in (A, B)]
    assert evermat_command(*export, "more.nt", "--facts", "inferred").code == 0
    assert sorted(lines(folder / "more.nt") + lines(folder / "said.nt")) == lines(folder / "all.nt")


def test_the_same_from_python(folder: Path) -> None:
    with evermat.open("state") as m:
        everything = {tuple(row.values()) for table in m.triples() for row in table.to_pylist()}
        few = {tuple(row.values()) for table in m.triples(representatives=True) for row in table.to_pylist()}
        m.export("all.nt")
        m.export("few.nt", representatives=True)
        assert m["knows"].to_arrow().num_rows == len(m["knows"]) == 4
        assert m["knows"].representatives.to_arrow().num_rows == 2
        assert sum(batch.num_rows for batch in m["knows"].batches()) == 4
        assert len(m["knows"].to_pandas()) == 4
        assert m["knows"].columns == m["knows"].representatives.columns == ["x", "y"]
    assert len(everything) == 9
    assert len(few) == 4
    assert lines(folder / "all.nt") == [f"{s} {p} {o} ." for s, p, o in sorted(everything)]
    assert lines(folder / "few.nt") == [f"{s} {p} {o} ." for s, p, o in sorted(few)]


def test_how_equality_is_chosen(folder: Path, evermat_command: Evermat) -> None:
    run = ("run", "p.dl", "--rdf", "mail.nt", "-D")
    for equality in ("rewrite", "axiomatise", "off"):
        assert evermat_command(*run, equality, "--equality", equality).code == 0
    names = ("knows.csv", "friends.csv", "known.nt")
    found = {e: [lines(folder / e / name) for name in names] for e in ("rewrite", "axiomatise", "off", ".")}
    assert found["rewrite"] == found["axiomatise"] == found["."]
    assert found["off"][1] == [f"{A}\t1", f"{C}\t1"]
    code, _, err = evermat_command(*run, "x", "--equality", "sometimes")
    assert code == 2
    assert "rewrite" in err


def test_parquet_outputs(folder: Path, evermat_command: Evermat) -> None:
    text = PROGRAM.replace(".output knows, friends", '.output knows(filename="knows.parquet")')
    (folder / "q.dl").write_text(text + ".printsize knows\n")
    done = evermat_command("run", "q.dl", "--rdf", "mail.nt", "-D", "out")
    assert done == (0, "knows\t4\n", "")
    assert pq.read_table(folder / "out" / "knows.parquet").num_rows == 4


def test_runs_over_a_state_and_rules_that_change(folder: Path, evermat_command: Evermat) -> None:
    (folder / "knows.facts").write_text(f"{B}\t{C}\n")
    assert evermat_command("run", "p.dl", "--rdf", "mail.nt", "--state", "state").code == 0
    with evermat.open("state", write=True) as m:
        assert (m.version, set(m["knows"])) == (2, {(A, C), (B, C)})
        change = m.update(
            add_rules=".decl e:alike(x:term, y:term) e:alike(x, y) :- owl:sameAs(x, y), x != y.".replace(
                "owl:sameAs", SAME_AS
            )
        )
        assert set(change.inserted["<http://e/alike>"]) == {(x, y) for x in (A, B) for y in (A, B)}
        m.update(remove_rules="x = y :- e:email(x, z), e:email(y, z).")
        assert set(m["knows"]) == {(B, C)}
        assert len(m[SAME_AS]) == len(m["<http://e/alike>"]) == 0
        assert m.names(A) == [A]
