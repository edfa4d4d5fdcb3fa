"""The generated universities have the published profile, hang together as they should, and fit their ontologies."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pyoxigraph
import pytest

import evermat
from bench import universities
from bench.universities import ONTOLOGIES, RDF_TYPE, UB, UO
from bench.universities import __main__ as command_line
from bench.universities.department import PUBLICATIONS, RANKS
from tests.support import environment

DATA = environment.DATA / "lubm"
Triple = tuple[str, str, str]
OWL = "http://www.w3.org/2002/07/owl#"

SHA = {  # of one university with two departments, seed 0: whatever changes the data changes what benchmarks have measured
    "lubm": "a301749df4f8082bbc8713f57aa31ccd47a21d789fd82bb8edd86a43b700f593",
    "uobm": "0703d7738eee42623cc9be398013c2783cf5c5a60f6e64513923bc23b3652057",
}


@cache
def written(kind: str, count: int = 1, **options: int) -> str:
    sink = io.BytesIO()
    triples = universities.write(kind, count, sink, **options)
    text = sink.getvalue().decode()
    assert triples == text.count("\n")
    return text


def triples_of(text: str) -> list[Triple]:
    """Lines taken apart; terms have no blanks in them here."""
    found = []
    for line in text.splitlines():
        subject, property_, value, end = line.split(" ")
        assert end == "."
        found.append((subject, property_, value))
    return found


def counted(triples: Iterable[Triple]) -> Counter[str]:
    """How many instances of each class and pairs of each property there are."""
    return Counter(value if property_ == RDF_TYPE else property_ for _, property_, value in triples)


@pytest.fixture(scope="module")
def lubm() -> list[Triple]:
    return triples_of(written("lubm"))


@pytest.fixture(scope="module")
def uobm() -> list[Triple]:
    return triples_of(written("uobm", 3, departments=3))


@pytest.mark.parametrize("kind", ONTOLOGIES)
def test_the_same_options_give_the_same_bytes(kind: str) -> None:
    text = written(kind, departments=2)
    assert text == written.__wrapped__(kind, departments=2)
    assert hashlib.sha256(text.encode()).hexdigest() == SHA[kind]
    assert text != written(kind, departments=2, seed=3)


@pytest.mark.slow
def test_a_university_depends_on_the_seed_and_its_number_alone() -> None:
    both, first, second = written("lubm", 2), written("lubm"), written("lubm", 1, first=1)
    assert both.startswith(first)
    together, alone = (
        [line for line in text.splitlines() if re.match(r"<http://www\.Department\d+\.University1\.edu", line)]
        for text in (both, second)
    )
    assert together == alone != []


@pytest.mark.parametrize("kind", ONTOLOGIES)
def test_it_is_n_triples_and_nothing_is_there_twice(kind: str) -> None:
    text = written(kind, 3, departments=3)
    parsed = {str(triple) for triple in pyoxigraph.parse(text, format=pyoxigraph.RdfFormat.N_TRIPLES)}
    assert len(parsed) == text.count("\n")


@pytest.mark.parametrize("kind", ONTOLOGIES)
def test_the_ontology_declares_all_classes_and_properties_of_the_data(kind: str) -> None:
    ontology = list(pyoxigraph.parse(ONTOLOGIES[kind](), format=pyoxigraph.RdfFormat.TURTLE))
    declared = {str(t.subject) for t in ontology if str(t.predicate) == RDF_TYPE and "owl#" in str(t.object)}
    used = set(counted(triples_of(written(kind, 3, departments=3))))
    assert used
    assert used <= declared


def test_departments_have_the_published_profile(lubm: list[Triple]) -> None:
    types = {subject: value[len(UB) + 1 : -1] for subject, property_, value in lubm if property_ == RDF_TYPE}
    assistants = {(s, v[len(UB) + 1 : -1]) for s, p, v in lubm if p == RDF_TYPE and v.endswith("Assistant>")}
    things = [*types.items(), *assistants]
    departments = {subject for subject, type_ in things if type_ == "Department"}
    assert 15 <= len(departments) <= 25
    sizes: dict[str, Counter[str]] = {department: Counter() for department in departments}
    for subject, type_ in things:
        if (department := subject.partition(".edu")[0] + ".edu>") in departments:
            sizes[department][type_.removesuffix("Assistant") if (subject, type_) in assistants else type_] += 1
    several: dict[tuple[str, str], int] = Counter(
        (s, p[len(UB) + 1 : -1]) for s, p, _ in lubm if p.startswith(f"<{UB}")
    )

    def within(what: str, low: float, high: float, of: dict[str, int]) -> None:
        assert low <= min(of.values()), what
        assert max(of.values()) <= high, what

    for size in sizes.values():
        faculty = sum(size[rank] for rank in RANKS)
        students = size["GraduateStudent"] + size["Teaching"] + size["Research"]
        for rank, (low, high) in RANKS.items():
            assert low <= size[rank] <= high
        assert size["UndergraduateStudent"] in {faculty * ratio for ratio in range(8, 15)}
        assert 10 <= size["ResearchGroup"] <= 20
        assert faculty <= size["Course"] <= 2 * faculty
        assert faculty <= size["GraduateCourse"] <= 2 * faculty
        assert students >= 3 * faculty
    taken = {s: n for (s, p), n in several.items() if p == "takesCourse"}
    within("courses of undergraduates", 2, 4, {s: n for s, n in taken.items() if "Undergraduate" in s})
    within("courses of graduates", 1, 3, {s: n for s, n in taken.items() if "Graduate" in s})
    within("courses taught", 2, 4, {s: n for (s, p), n in several.items() if p == "teacherOf"})
    papers: Counter[str] = Counter(s.partition("/Publication")[0] for s, t in types.items() if t == "Publication")
    for rank, (low, high) in PUBLICATIONS.items():
        within(rank, low, high, {s: n for s, n in papers.items() if f"/{rank}" in s})
    authored = Counter(v for _, p, v in lubm if p == f"<{UB}publicationAuthor>" and "GraduateStudent" in v)
    assert max(authored.values()) <= 5
    heads = Counter(v for s, p, v in lubm if p == f"<{UB}headOf>" and "/FullProfessor" in s)
    assert heads == dict.fromkeys(departments, 1)
    assert len({v for _, p, v in lubm if p == f"<{UB}researchInterest>"}) == 30


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="EVERMAT_DATA names no folder with data")
def test_there_is_as_much_of_everything_as_in_data_of_the_original_generator() -> None:
    """LUBM(1) has one university with 15 departments; so have ours.

    The numbers of students in a department vary by a fifth. So those of all departments, theirs and ours, by about a twentieth.
    """
    with gzip.open(DATA / "lubm1.nt.gz", "rt", encoding="utf-8") as file:
        theirs = counted(triples_of(file.read()))
    all_ours = [counted(triples_of(written("lubm", departments=15, first=number))) for number in range(8)]
    for name, count in theirs.items():
        shares = [ours[name] / count for ours in all_ours]
        assert abs(sum(shares) / len(shares) - 1) < 0.06, (name, shares)
        assert all(abs(share - 1) < 0.15 for share in shares), (name, shares)
    assert all(ours.keys() == theirs.keys() for ours in all_ours)
    assert abs(sum(ours.total() for ours in all_ours) / len(all_ours) / theirs.total() - 1) < 0.05


def test_friends_and_neighbours_are_people_that_are_there(uobm: list[Triple]) -> None:
    people = {subject for subject, property_, _ in uobm if property_ == f"<{UO}emailAddress>"}
    for name in ("isFriendOf", "hasSameHomeTownWith"):
        pairs = [(s, v) for s, p, v in uobm if p == f"<{UO}{name}>"]
        assert pairs
        assert all(one in people and other in people and one != other for one, other in pairs)
        host = [tuple(person.partition(".edu")[0].split(".")[1:] for person in pair) for pair in pairs]
        university = [(one[1], other[1]) for one, other in host]
        assert 0 < sum(one != other for one, other in university) < 0.2 * len(pairs)  # some are at another university
        assert 0 < sum(one != other for one, other in host) < 0.6 * len(pairs)


def test_towns_stay_small(uobm: list[Triple]) -> None:
    """All pairs of people of a town follow: nothing would be left to measure if there were one large town."""
    town: dict[str, str] = {}

    def find(person: str) -> str:
        while (above := town.setdefault(person, person)) != person:
            town[person] = person = town[above]
        return person

    for one, property_, other in uobm:
        if property_ == f"<{UO}hasSameHomeTownWith>":
            town[find(one)] = find(other)
    sizes = Counter(find(person) for person in town)
    assert max(sizes.values()) < 150
    assert sum(size**2 for size in sizes.values()) < 60 * len(town)


def test_the_women_s_college_is_for_women_and_nobody_is_said_to_be_both(uobm: list[Triple]) -> None:
    sexes = defaultdict(set)
    for subject, property_, value in uobm:
        if property_ == RDF_TYPE and value in {f"<{UO}Man>", f"<{UO}Woman>"}:
            sexes[subject].add(value)
    women = {s for s, p, v in uobm if p == RDF_TYPE and v == f"<{UO}WomanCollege>"}
    enrolled = {s for s, p, v in uobm if p == f"<{UO}enrollIn>" and v in women}
    assert len(women) == 3
    assert enrolled
    assert all(len(sex) == 1 for sex in sexes.values())
    assert not enrolled & sexes.keys()


@pytest.mark.slow
def test_the_data_is_consistent_and_what_goes_by_two_names_is_found_to_be_equal(tmp_path: Path) -> None:
    ontology, data = tmp_path / "ontology.ttl", tmp_path / "data.nt"
    ontology.write_text(ONTOLOGIES["uobm"](), encoding="utf-8")
    data.write_text(text := written("uobm", 1, departments=1), encoding="utf-8")
    triples = triples_of(text)
    program = evermat.Program.parse(f".prefix uo: <{UO}>\n.prefix owl: <{OWL}>", ontology=[ontology])
    m = program.materialise({}, rdf=[data])

    def related(name: str) -> list[tuple[str, str]]:
        return [(s, v) for s, p, v in triples if p == f"<{UO}{name}>"]

    women = {(student,) for student, college in related("enrollIn") if college.endswith("/College4>")}
    assert women
    assert women <= set(m.query("uo:Woman(x)"))
    same = set(m.query("owl:sameAs(x, y), x != y"))
    department = "http://www.Department0.University0.edu"
    ((head, _),) = [pair for pair in related("isHeadOf") if "Professor" in pair[0] and pair[1] == f"<{department}>"]
    expected = {(f"<{department}/Chair>", head), (f"<{UO}Maths>", f"<{UO}Mathematics>")}
    for _, alias in (*related("isTaughtBy"), *related("isTutoredBy")):
        if re.search("/(staff|tutors)/", alias):
            expected.add((alias, re.sub("/(staff|tutors)/", "/", alias)))
    assert {alias.split("/")[3] for alias, _ in expected if "/" in alias} >= {"staff", "tutors", "Chair>"}
    assert expected <= same
    names = {name for pair in expected for name in pair}
    assert {name for pair in same for name in pair} == names
    fans = {(s,) for s, v in related("isCrazyAbout") if v == f"<{UO}Tennis>"}
    assert fans <= set(m.query("uo:TennisFan(x)"))
    lovers = {(s,) for way in ("like", "love", "isCrazyAbout") for s, v in related(way) if v == f"<{UO}Tennis>"}
    assert lovers <= set(m.query("uo:TennisLover(x), uo:SportsLover(x), uo:like(x, _y)"))


def test_other_kinds_are_refused() -> None:
    with pytest.raises(ValueError, match="no kind `wine`"):
        written("wine")


@pytest.mark.slow
def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    data, ontology = tmp_path / "data.nt.gz", tmp_path / "ontology.ttl"
    options = ["--kind", "lubm", "--universities", "1", "--seed", "3", "--out", str(data), "--ontology", str(ontology)]
    monkeypatch.setattr(sys, "argv", ["universities", *options])
    command_line.main()
    text = written("lubm", seed=3)
    assert gzip.decompress(data.read_bytes()).decode() == text
    assert ontology.read_text(encoding="utf-8") == ONTOLOGIES["lubm"]()
    assert capsys.readouterr().err == f"{text.count(chr(10)):,} triples\n"
    once = data.read_bytes()
    command_line.main()
    assert data.read_bytes() == once
    for wrong in (["--kind", "lubm"], ["--universities", "0", "--out", str(data)]):
        monkeypatch.setattr(sys, "argv", ["universities", *wrong])
        with pytest.raises(SystemExit):
            command_line.main()
