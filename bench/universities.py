"""Universities as RDF: ``python -m bench.universities --kind lubm|uobm --universities N --seed S --out FILE.nt[.gz] --ontology FILE.ttl``.

Two kinds of data, both any number of universities long, written department by department, so that memory does not grow with their number:

- `lubm`: the shape of the Lehigh University Benchmark (Guo, Pan, Heflin: *LUBM: A benchmark for OWL knowledge base systems*, 2005), in its
  vocabulary and with its names for things, so that its ontology and its 14 queries fit. The numbers are those of its published profile.
  A university depends on the seed and its number alone.
- `uobm`: the shape of the University Ontology Benchmark (Ma et al.: *Towards a complete OWL ontology benchmark*, 2006): the same departments, in
  which people have sexes, majors, hobbies, friends and home towns, of which some are at other universities, so that the data of universities hang together;
  and some things go by two names, which the ontology finds to be equal. A university depends on the seed, its number and the number of universities.

`--ontology` writes an ontology for the data, in Turtle. That for `lubm` says what univ-bench says; that for `uobm` stays within OWL 2 RL, but for
the other halves of definitions by existential restrictions.

All that is drawn comes from `numpy.random.default_rng` with the seed and the numbers of the university and the department: the same options give the same bytes.
No triple is written twice.
"""

from __future__ import annotations

import argparse
import gzip
import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Random = np.random.Generator

UB = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"
UO = "http://example.org/university-ontology#"
RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"

# --- the profile -------------------------------------------------------------------------------------------

Range = tuple[int, int]  # both ends are possible

DEPARTMENTS: Range = (15, 25)
RANKS: dict[str, Range] = {  # of each in a department
    "FullProfessor": (7, 10),
    "AssociateProfessor": (10, 14),
    "AssistantProfessor": (8, 11),
    "Lecturer": (5, 7),
}
PUBLICATIONS: dict[str, Range] = {
    "FullProfessor": (15, 20),
    "AssociateProfessor": (10, 18),
    "AssistantProfessor": (5, 10),
    "Lecturer": (0, 5),
}
PROFESSORS = ("FullProfessor", "AssociateProfessor", "AssistantProfessor")  # who advise, and are interested in research
UNDERGRADUATES: Range = (8, 14)  # for each of the faculty
GRADUATES: Range = (3, 4)
COURSES: Range = (1, 2)  # that each of the faculty teaches, of both kinds
UNDERGRADUATE_TAKES: Range = (2, 4)
GRADUATE_TAKES: Range = (1, 3)
GRADUATE_PUBLICATIONS: Range = (0, 5)  # of the faculty's, that a graduate is an author of
ADVISED = 5  # one of so many undergraduates
TEACHING_ASSISTANTS: Range = (4, 5)  # one of so many graduates
RESEARCH_ASSISTANTS: Range = (3, 4)
GROUPS: Range = (10, 20)
INTERESTS = 30
ALMA_MATERS = 1000  # universities that people have degrees from

SURE_FACULTY = sum(low for low, _ in RANKS.values())
SURE_UNDERGRADUATES = UNDERGRADUATES[0] * SURE_FACULTY  # the smallest department has so many


# --- a department ------------------------------------------------------------------------------------------


def draw(random: Random, of: Range, how_many: int | None = None) -> Any:
    """A number in a range, or several."""
    return (
        random.integers(of[0], of[1] + 1, how_many) if how_many is not None else int(random.integers(of[0], of[1] + 1))
    )


def distinct(random: Random, rows: int, bound: int, columns: int) -> Numbers:
    """In each row as many different numbers below the bound, all choices alike.

    The next number of a row counts only those that are not taken: each taken one that is not larger moves it up by one.
    """
    chosen = np.empty((rows, columns), np.int64)
    for column in range(columns):
        number = random.integers(0, bound - column, rows)
        for taken in np.sort(chosen[:, :column], axis=1).T:
            number += number >= taken
        chosen[:, column] = number
    return chosen


@dataclass(frozen=True)
class Department:
    """What is drawn for one department. People, courses and publications are numbers, from 0 up; courses of both kinds are counted apart."""

    base: str
    """How the IRIs of its members begin."""
    university: str
    ranks: list[str]
    """The rank of each of the faculty."""
    people: list[str]
    """What each of the faculty is called: its rank, and a number among those of the rank."""
    head: int
    degrees: list[list[int]]
    """The universities of each of the faculty: as undergraduate, of the master's degree, of the doctor's."""
    interests: list[int]
    teachers: list[int]
    graduate_teachers: list[int]
    publications: list[int]
    """How many each of the faculty has."""
    takes: list[list[int]]
    """The courses of each undergraduate."""
    advisors: list[int]
    """Of each undergraduate; -1 is nobody."""
    graduate_takes: list[list[int]]
    graduate_advisors: list[int]
    graduate_degrees: list[int]
    authors: list[list[int]]
    """The graduates who are authors of each publication; publications are counted through, the faculty one after the other."""
    assists: dict[int, int]
    """The courses that graduates assist in."""
    researchers: set[int]
    """Graduates who are research assistants."""
    groups: int


def draw_department(random: Random, university: int, department: int) -> Department:
    """One department, by the profile."""
    sizes = {rank: draw(random, of) for rank, of in RANKS.items()}
    ranks = [rank for rank, size in sizes.items() for _ in range(size)]
    faculty = len(ranks)
    ends = np.cumsum(list(sizes.values()))
    starts = ends - list(sizes.values())

    def advisors(how_many: int) -> Numbers:
        """A rank first, then one of that rank."""
        rank = random.integers(0, len(PROFESSORS), how_many)
        chosen: Numbers = starts[rank] + (random.random(how_many) * (ends - starts)[rank]).astype(np.int64)
        return chosen

    def some(how_many: int, bound: int, of: Range) -> list[list[int]]:
        """Different numbers below the bound for each, as many as the range allows."""
        lengths = draw(random, of, how_many).tolist()
        rows = distinct(random, how_many, bound, of[1]).tolist()
        return [row[:length] for row, length in zip(rows, lengths, strict=True)]

    teachers = np.repeat(np.arange(faculty), draw(random, COURSES, faculty))
    graduate_teachers = np.repeat(np.arange(faculty), draw(random, COURSES, faculty))
    publications = np.concatenate([draw(random, PUBLICATIONS[rank], size) for rank, size in sizes.items()])
    undergraduates, graduates = faculty * draw(random, UNDERGRADUATES), faculty * draw(random, GRADUATES)
    takes = some(undergraduates, len(teachers), UNDERGRADUATE_TAKES)
    advised = random.integers(0, ADVISED, undergraduates) == 0
    authors: list[list[int]] = [[] for _ in range(int(publications.sum()))]
    for graduate, own in enumerate(some(graduates, len(authors), GRADUATE_PUBLICATIONS)):
        for publication in own:
            authors[publication].append(graduate)
    teaching = graduates // draw(random, TEACHING_ASSISTANTS)
    researching = graduates // draw(random, RESEARCH_ASSISTANTS)
    assistants = distinct(random, 1, graduates, teaching + researching)[0].tolist()
    assisted = distinct(random, 1, len(teachers), min(teaching, len(teachers)))[0].tolist()
    return Department(
        base=f"http://www.Department{department}.University{university}.edu",
        university=f"http://www.University{university}.edu",
        ranks=ranks,
        people=[f"{rank}{number}" for rank, size in sizes.items() for number in range(size)],
        head=int(random.integers(0, sizes["FullProfessor"])),
        degrees=random.integers(0, ALMA_MATERS, (faculty, 3)).tolist(),
        interests=random.integers(0, INTERESTS, faculty).tolist(),
        teachers=teachers.tolist(),
        graduate_teachers=graduate_teachers.tolist(),
        publications=publications.tolist(),
        takes=takes,
        advisors=np.where(advised, advisors(undergraduates), -1).tolist(),
        graduate_takes=some(graduates, len(graduate_teachers), GRADUATE_TAKES),
        graduate_advisors=advisors(graduates).tolist(),
        graduate_degrees=random.integers(0, ALMA_MATERS, graduates).tolist(),
        authors=authors,
        assists=dict(zip(assistants[: len(assisted)], assisted, strict=True)),
        researchers=set(assistants[teaching:]),
        groups=draw(random, GROUPS),
    )


# --- its triples -------------------------------------------------------------------------------------------

OWN_WORDS = {  # what the two vocabularies call differently
    UB: {},
    UO: {
        "advisor": "isAdvisedBy",
        "memberOf": "isMemberOf",
        "headOf": "isHeadOf",
        "undergraduateDegreeFrom": "hasUndergraduateDegreeFrom",
        "mastersDegreeFrom": "hasMasterDegreeFrom",
        "doctoralDegreeFrom": "hasDoctoralDegreeFrom",
    },
}


def describe(department: Department, space: str) -> Iterator[str]:
    """The triples that both kinds share, some lines at a time. Universities that people have degrees from are typed elsewhere."""
    base, words = department.base, OWN_WORDS[space]

    def word(name: str) -> str:
        return f"<{space}{words.get(name, name)}>"

    def types(name: str) -> str:
        return f"{RDF_TYPE} {word(name)} .\n"

    name, email, phone = word("name"), word("emailAddress"), f'{word("telephone")} "xxx-xxx-xxxx" .\n'
    member, works, part = word("memberOf"), word("worksFor"), word("subOrganizationOf")
    bachelor, master, doctor = (word(f"{which}DegreeFrom") for which in ("undergraduate", "masters", "doctoral"))
    interest, teaches, takes, advisor = (word(w) for w in ("researchInterest", "teacherOf", "takesCourse", "advisor"))
    author, assists = word("publicationAuthor"), word("teachingAssistantOf")
    host = base.removeprefix("http://www.")
    here = f"<{base}> .\n"

    subject = f"<{base}>"
    yield (
        f"{subject} {types('Department')}"
        f'{subject} {name} "{host.partition(".")[0]}" .\n'
        f"{subject} {part} <{department.university}> .\n"
    )
    in_department, group_type = f"{part} {here}", types("ResearchGroup")
    for number in range(department.groups):
        subject = f"<{base}/ResearchGroup{number}>"
        yield f"{subject} {group_type}{subject} {in_department}"

    for kind, teachers in (("Course", department.teachers), ("GraduateCourse", department.graduate_teachers)):
        type_ = types(kind)
        for number, teacher in enumerate(teachers):
            subject = f"<{base}/{kind}{number}>"
            yield (
                f'{subject} {type_}{subject} {name} "{kind}{number}" .\n'
                f"<{base}/{department.people[teacher]}> {teaches} {subject} .\n"
            )

    subject = f"<{base}/{department.people[department.head]}>"
    yield f"{subject} {word('headOf')} {here}"
    works_here, publication_type = f"{works} {here}", types("Publication")
    rank_types = {rank: types(rank) for rank in RANKS}
    authors = iter(department.authors)
    for person, called in enumerate(department.people):
        subject = f"<{base}/{called}>"
        first, second, third = department.degrees[person]
        rank = department.ranks[person]
        yield (
            f"{subject} {rank_types[rank]}"
            f'{subject} {name} "{called}" .\n'
            f"{subject} {works_here}"
            f"{subject} {bachelor} <http://www.University{first}.edu> .\n"
            f"{subject} {master} <http://www.University{second}.edu> .\n"
            f"{subject} {doctor} <http://www.University{third}.edu> .\n"
            f'{subject} {email} "{called}@{host}" .\n'
            f"{subject} {phone}"
        )
        if rank in PROFESSORS:
            yield f'{subject} {interest} "Research{department.interests[person]}" .\n'
        for number in range(department.publications[person]):
            paper = f"<{base}/{called}/Publication{number}>"
            yield (f'{paper} {publication_type}{paper} {name} "Publication{number}" .\n{paper} {author} {subject} .\n')
            for graduate in next(authors):
                yield f"{paper} {author} <{base}/GraduateStudent{graduate}> .\n"

    member_here, student_type = f"{member} {here}", types("UndergraduateStudent")
    courses = [f"{takes} <{base}/Course{number}> .\n" for number in range(len(department.teachers))]
    advisors = [f"{advisor} <{base}/{called}> .\n" for called in department.people]
    for number, taken in enumerate(department.takes):
        called = f"UndergraduateStudent{number}"
        subject = f"<{base}/{called}> "
        yield (
            f"{subject}{student_type}"
            f'{subject}{name} "{called}" .\n'
            f"{subject}{member_here}"
            f'{subject}{email} "{called}@{host}" .\n'
            f"{subject}{phone}"
        )
        yield subject + subject.join([courses[course] for course in taken])
        if department.advisors[number] >= 0:
            yield subject + advisors[department.advisors[number]]

    student_type, teaching_type, research_type = map(
        types, ("GraduateStudent", "TeachingAssistant", "ResearchAssistant")
    )
    courses = [f"{takes} <{base}/GraduateCourse{number}> .\n" for number in range(len(department.graduate_teachers))]
    for number, taken in enumerate(department.graduate_takes):
        called = f"GraduateStudent{number}"
        subject = f"<{base}/{called}> "
        yield (
            f"{subject}{student_type}"
            f'{subject}{name} "{called}" .\n'
            f"{subject}{member_here}"
            f"{subject}{bachelor} <http://www.University{department.graduate_degrees[number]}.edu> .\n"
            f'{subject}{email} "{called}@{host}" .\n'
            f"{subject}{phone}"
        )
        yield subject + subject.join([courses[course] for course in taken])
        yield subject + advisors[department.graduate_advisors[number]]
        if number in department.assists:
            yield f"{subject}{teaching_type}{subject}{assists} <{base}/Course{department.assists[number]}> .\n"
        if number in department.researchers:
            yield subject + research_type


# --- what UOBM has more ------------------------------------------------------------------------------------

COLLEGES = 5  # of a university; the last one is for women
SPORTS = ("Swimming", "Tennis", "Basketball", "Baseball", "Chess", "Rowing")
PASTIMES = ("ClassicalMusic", "Jazz", "Reading", "Travelling", "Cooking", "Painting")
SUBJECTS = {
    "Science": ("Mathematics", "Physics", "Chemistry", "Biology", "Statistics", "Geology"),
    "Engineering": ("ElectricalEngineering", "CivilEngineering", "ComputerEngineering", "ChemicalEngineering"),
    "FineArts": ("Architecture", "Drama", "Music", "Sculpture"),
    "HumanitiesAndSocial": ("History", "Linguistics", "Economics", "Psychology", "Anthropology", "Religion"),
}
TWO_NAMES = ("Mathematics", "Maths")
ALL_SUBJECTS = tuple(subject for subjects in SUBJECTS.values() for subject in subjects)
TOWN = 8  # people of a department who are of one town, on average
FAR_TOWNS = 0.15  # of the towns have somebody far away
FRIENDS: Range = (0, 8)
NEAR, NEARER = 0.5, 0.8  # friends within the department, and within the university
HOBBIES: Range = (1, 4)
LIKING = ("like", "love", "isCrazyAbout")
ALIASED = 20  # one of so many teachers, undergraduates and students of a subject with two names goes by two


def enrich(
    department: Department, random: Random, university: int, universities: int, departments: int
) -> Iterator[str]:
    """Sexes, majors, colleges, hobbies, friends, towns and second names. No fact contradicts the ontology.

    Somebody far away is found by a name that every university has, however small: nothing needs to be known of it but that it has so many departments.
    """
    base = department.base
    students = [f"UndergraduateStudent{number}" for number in range(len(department.takes))]
    first_graduate = len(students)
    students += [f"GraduateStudent{number}" for number in range(len(department.graduate_takes))]
    everybody = [f"<{base}/{called}>" for called in (*students, *department.people)]
    count = len(everybody)

    colleges = random.integers(0, COLLEGES, first_graduate).tolist()
    women = random.integers(0, 2, count).tolist()
    majors = random.integers(0, len(ALL_SUBJECTS), len(students)).tolist()
    second_name = (random.integers(0, ALIASED, len(students)) == 0).tolist()
    sexes = [f"{RDF_TYPE} <{UO}{sex}> .\n" for sex in ("Man", "Woman")]
    studies = [f"<{UO}hasMajor> <{UO}{subject}> .\n" for subject in ALL_SUBJECTS]
    enrolled = [f"<{UO}enrollIn> <{department.university}/College{number}> .\n" for number in range(COLLEGES)]
    student_of = f"<{UO}isStudentOf> <{base}> .\n"
    for number, subject in enumerate(everybody):
        college = colleges[number] if number < first_graduate else None
        if college != COLLEGES - 1:  # of the women's college it follows
            yield f"{subject} {sexes[women[number]]}"
        if number < len(students):
            yield f"{subject} {student_of}{subject} {studies[majors[number]]}"
            if second_name[number] and ALL_SUBJECTS[majors[number]] == TWO_NAMES[0]:
                yield f"{subject} <{UO}hasMajor> <{UO}{TWO_NAMES[1]}> .\n"
        if college is not None:
            yield f"{subject} {enrolled[college]}"

    hobbies = (*SPORTS, *PASTIMES)
    lengths = draw(random, HOBBIES, count).tolist()
    chosen = distinct(random, count, len(hobbies), HOBBIES[1]).tolist()
    ways = random.integers(0, len(LIKING), (count, HOBBIES[1])).tolist()
    liking = [[f"<{UO}{way}> <{UO}{hobby}> .\n" for hobby in hobbies] for way in LIKING]
    for subject, length, own, how in zip(everybody, lengths, chosen, ways, strict=True):
        for hobby, way in zip(own[:length], how, strict=False):
            yield f"{subject} {liking[way][hobby]}"

    def far(how_many: int, same_university: NDArray[np.bool_]) -> list[str]:
        """People of other departments: undergraduates that any department has."""
        where = np.where(same_university, university, random.integers(0, universities, how_many)).tolist()
        which = random.integers(0, departments, how_many).tolist()
        who = random.integers(0, SURE_UNDERGRADUATES, how_many).tolist()
        return [
            f"<http://www.Department{d}.University{u}.edu/UndergraduateStudent{s}>"
            for u, d, s in zip(where, which, who, strict=True)
        ]

    person = np.repeat(np.arange(count), draw(random, FRIENDS, count))
    distance = random.random(len(person))
    near = random.integers(0, count, len(person)).tolist()
    afar = far(len(person), distance < NEARER)
    pairs: dict[tuple[str, str], None] = {}
    for one, is_near, other, away in zip(person.tolist(), (distance < NEAR).tolist(), near, afar, strict=True):
        pairs[everybody[one], everybody[other] if is_near else away] = None
    yield "".join([f"{one} <{UO}isFriendOf> {other} .\n" for one, other in pairs if one != other])

    towns = count // TOWN
    home = random.integers(0, towns, count).tolist()
    last: dict[int, str] = {}
    for subject, town in zip(everybody, home, strict=True):
        if town in last:
            yield f"{subject} <{UO}hasSameHomeTownWith> {last[town]} .\n"
        last[town] = subject
    moved = (random.random(towns) < FAR_TOWNS).tolist()
    afar = far(towns, random.random(towns) < NEAR)
    for town in range(towns):
        if moved[town] and town in last and last[town] != afar[town]:
            yield f"{last[town]} <{UO}hasSameHomeTownWith> {afar[town]} .\n"

    yield f"<{base}/Chair> <{UO}isHeadOf> <{base}> .\n"  # only one person can be
    aliased = (random.integers(0, ALIASED, len(department.teachers)) == 0).tolist()
    for course, (teacher, alias) in enumerate(zip(department.teachers, aliased, strict=True)):
        if alias:  # a course is taught by one person
            yield f"<{base}/Course{course}> <{UO}isTaughtBy> <{base}/staff/{department.people[teacher]}> .\n"
    idle = (random.integers(0, ALIASED, first_graduate) == 0).tolist()
    for number, taken in enumerate(department.takes):
        if idle[number] and len(taken) == UNDERGRADUATE_TAKES[0]:  # who is at leisure has one tutor
            subject, tutor = everybody[number], department.teachers[taken[0]]
            yield (
                f"{subject} {RDF_TYPE} <{UO}LeisureStudent> .\n"
                f"{subject} <{UO}isTutoredBy> <{base}/{department.people[tutor]}> .\n"
                f"{subject} <{UO}isTutoredBy> <{base}/tutors/{department.people[tutor]}> .\n"
            )


def colleges(university: str) -> str:
    """The colleges of a university, of which the last one is for women."""
    lines = []
    for number in range(COLLEGES):
        subject = f"<{university}/College{number}>"
        kind = "WomanCollege" if number == COLLEGES - 1 else "College"
        lines.append(
            f"{subject} {RDF_TYPE} <{UO}{kind}> .\n{subject} <{UO}subOrganizationOf> <{university}> .\n"
            f"<{university}/Dean{number}> <{UO}isHeadOf> {subject} .\n<{university}/Dean{number}> {RDF_TYPE} <{UO}FullProfessor> .\n"
        )
    return "".join(lines)


# --- universities ------------------------------------------------------------------------------------------


def lubm(university: int, seed: int, departments: int | None = None) -> Iterator[tuple[str, Department | None]]:
    """A university's triples, and the departments that have been drawn for them."""
    yield f'<http://www.University{university}.edu> <{UB}name> "University{university}" .\n', None
    for number in range(_departments(university, seed, departments)):
        department = draw_department(_random(seed, university, number), university, number)
        yield "".join(describe(department, UB)), department


def uobm(
    university: int, seed: int, departments: int | None = None, *, universities: int
) -> Iterator[tuple[str, Department | None]]:
    """The same for UOBM; friends and people of the same town may be at any of so many universities."""
    host = f"http://www.University{university}.edu"
    sure = DEPARTMENTS[0] if departments is None else departments
    yield f'<{host}> <{UO}name> "University{university}" .\n{colleges(host)}', None
    for number in range(_departments(university, seed, departments)):
        department = draw_department(_random(seed, university, number), university, number)
        more = enrich(department, _random(seed, university, number, 1), university, universities, sure)
        yield "".join((*describe(department, UO), *more)), department


def _random(*numbers: int) -> Random:
    return np.random.default_rng(numbers)


def _departments(university: int, seed: int, given: int | None) -> int:
    return draw(_random(seed, university), DEPARTMENTS) if given is None else given


def write(
    kind: str, universities: int, sink: BinaryIO, *, seed: int = 0, departments: int | None = None, first: int = 0
) -> int:
    """Universities as N-Triples, from a first one on; the number of triples. `departments` sets their number for all universities."""
    if kind not in ONTOLOGIES:
        raise ValueError(f"there is no kind `{kind}` of universities")
    space, generate = (UB, lubm) if kind == "lubm" else (UO, partial(uobm, universities=first + universities))
    triples = 0
    typed = np.zeros(
        max(ALMA_MATERS, first + universities), bool
    )  # the only thing that grows, by a byte for each university
    for university in range(first, first + universities):
        named = np.zeros(len(typed), bool)
        named[university] = True
        for text, department in generate(university, seed, departments):
            sink.write(text.encode())
            triples += text.count("\n")
            if department is not None:
                named[np.concatenate([np.ravel(department.degrees), department.graduate_degrees])] = True
        new = np.flatnonzero(named & ~typed)
        typed |= named
        text = "".join([f"<http://www.University{u}.edu> {RDF_TYPE} <{space}University> .\n" for u in new.tolist()])
        sink.write(text.encode())
        triples += len(new)
    return triples


# --- ontologies --------------------------------------------------------------------------------------------

PREFIXES = """\
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""


def outline(text: str, type_: str, below: str) -> str:
    """Turtle from a hierarchy: a line may name several, and what stands deeper is below the last one of them."""
    above: list[tuple[int, str]] = []
    lines = []
    for line in filter(str.strip, text.splitlines()):
        depth = len(line) - len(line.lstrip())
        while above and above[-1][0] >= depth:
            above.pop()
        for name in line.split():
            lines.append(f":{name} a {type_}" + (f" ; {below} :{above[-1][1]}" if above else "") + " .")
        above.append((depth, line.split()[-1]))
    return "\n".join(lines) + "\n"


UNIVERSITY_CLASSES = """
Organization
  College Department Institute Program ResearchGroup University
Person
  Employee
    AdministrativeStaff
      ClericalStaff SystemsStaff
    Faculty
      Lecturer PostDoc Professor
        AssistantProfessor AssociateProfessor FullProfessor VisitingProfessor Chair Dean
  Director TeachingAssistant
  Student
    UndergraduateStudent ResearchAssistant
  GraduateStudent
Publication
  Book Manual Software Specification UnofficialPublication Article
    ConferencePaper JournalArticle TechnicalReport
Schedule
Work
  Course
    GraduateCourse
  Research
"""


def defined(name: str, property_: str, filler: str) -> str:
    """A class of all people that have a certain thing."""
    return (
        f":{name} owl:equivalentClass [ a owl:Class ; owl:intersectionOf\n"
        f"  ( :Person [ a owl:Restriction ; owl:onProperty :{property_} ; owl:someValuesFrom :{filler} ] ) ] .\n"
    )


def properties(text: str) -> str:
    """Turtle from lines `name domain range type…`; `-` is none."""
    lines = []
    for line in filter(str.strip, text.splitlines()):
        name, domain, range_, *types = line.split()
        parts = ["a " + ", ".join(f"owl:{type_}" for type_ in types)]
        parts += [f"rdfs:domain :{domain}"] if domain != "-" else []
        parts += [f"rdfs:range :{range_}"] if range_ != "-" else []
        lines.append(f":{name} " + " ; ".join(parts) + " .")
    return "\n".join(lines) + "\n"


LUBM_ONTOLOGY = (
    f"@prefix : <{UB}> .\n{PREFIXES}\n"
    f"<{UB[:-1]}> a owl:Ontology .\n\n"
    + outline(UNIVERSITY_CLASSES, "owl:Class", "rdfs:subClassOf")
    + "".join(
        [
            defined("Chair", "headOf", "Department"),
            defined("Dean", "headOf", "College"),
            defined("Director", "headOf", "Program"),
            defined("Employee", "worksFor", "Organization"),
            defined("Student", "takesCourse", "Course"),
            defined("TeachingAssistant", "teachingAssistantOf", "Course"),
        ]
    )
    + """
:GraduateStudent rdfs:subClassOf
  [ a owl:Restriction ; owl:onProperty :takesCourse ; owl:someValuesFrom :GraduateCourse ] .
:ResearchAssistant rdfs:subClassOf
  [ a owl:Restriction ; owl:onProperty :worksFor ; owl:someValuesFrom :ResearchGroup ] .

"""
    + properties(
        """
advisor Person Professor ObjectProperty
affiliateOf Organization Person ObjectProperty
affiliatedOrganizationOf Organization Organization ObjectProperty
degreeFrom Person University ObjectProperty
doctoralDegreeFrom Person University ObjectProperty
mastersDegreeFrom Person University ObjectProperty
undergraduateDegreeFrom Person University ObjectProperty
hasAlumnus University Person ObjectProperty
member Organization Person ObjectProperty
memberOf - - ObjectProperty
worksFor - - ObjectProperty
headOf - - ObjectProperty
listedCourse Schedule Course ObjectProperty
orgPublication Organization Publication ObjectProperty
publicationAuthor Publication Person ObjectProperty
publicationDate Publication - ObjectProperty
publicationResearch Publication Research ObjectProperty
researchProject ResearchGroup Research ObjectProperty
softwareDocumentation Software Publication ObjectProperty
softwareVersion Software - ObjectProperty
subOrganizationOf Organization Organization ObjectProperty TransitiveProperty
takesCourse - - ObjectProperty
teacherOf Faculty Course ObjectProperty
teachingAssistantOf TeachingAssistant Course ObjectProperty
tenured Professor - ObjectProperty
age Person - DatatypeProperty
emailAddress Person - DatatypeProperty
name - - DatatypeProperty
officeNumber - - DatatypeProperty
researchInterest - - DatatypeProperty
telephone Person - DatatypeProperty
title Person - DatatypeProperty
"""
    )
    + """
:doctoralDegreeFrom rdfs:subPropertyOf :degreeFrom .
:mastersDegreeFrom rdfs:subPropertyOf :degreeFrom .
:undergraduateDegreeFrom rdfs:subPropertyOf :degreeFrom .
:hasAlumnus owl:inverseOf :degreeFrom .
:headOf rdfs:subPropertyOf :worksFor .
:worksFor rdfs:subPropertyOf :memberOf .
:memberOf owl:inverseOf :member .
"""
)

UOBM_CLASSES = """
Person
  Man Woman SportsLover SportsFan PeopleWithHobby
  Student
    ScienceStudent LeisureStudent
College
  WomanCollege
Interest
  Sports Pastime
AcademicSubject
  Science Engineering FineArts HumanitiesAndSocial
"""


def uobm_ontology() -> str:
    """The ontology for `uobm`, in Turtle."""
    individuals = [f":{sport} a :Sports ." for sport in SPORTS] + [f":{pastime} a :Pastime ." for pastime in PASTIMES]
    individuals += [f":{subject} a :{field} ." for field, subjects in SUBJECTS.items() for subject in subjects]
    fans = [
        f":{sport}{kind} a owl:Class ; rdfs:subClassOf :{wider} ; "
        f"owl:equivalentClass [ a owl:Restriction ; owl:onProperty :{way} ; owl:hasValue :{sport} ] ."
        for sport in SPORTS
        for kind, wider, way in (("Lover", "SportsLover", "like"), ("Fan", "SportsFan", "isCrazyAbout"))
    ]
    return "".join(
        [
            f"@prefix : <{UO}> .\n{PREFIXES}\n<{UO[:-1]}> a owl:Ontology .\n\n",
            outline(UNIVERSITY_CLASSES, "owl:Class", "rdfs:subClassOf"),
            outline(UOBM_CLASSES, "owl:Class", "rdfs:subClassOf"),
            defined("Chair", "isHeadOf", "Department"),
            defined("Dean", "isHeadOf", "College"),
            defined("Director", "isHeadOf", "Program"),
            defined("Employee", "worksFor", "Organization"),
            defined("Student", "takesCourse", "Course"),
            defined("TeachingAssistant", "teachingAssistantOf", "Course"),
            defined("SportsLover", "like", "Sports"),
            defined("SportsFan", "isCrazyAbout", "Sports"),
            defined("ScienceStudent", "hasMajor", "Science"),
            "\n".join(fans),
            UOBM_AXIOMS,
            properties(UOBM_PROPERTIES),
            UOBM_HIERARCHY,
            "\n".join(individuals),
            f"\n:Sports owl:equivalentClass [ a owl:Class ; owl:oneOf ( {' '.join(f':{sport}' for sport in SPORTS)} ) ] .\n",
            f"[] a owl:AllDifferent ; owl:distinctMembers ( {' '.join(f':{sport}' for sport in SPORTS)} ) .\n",
        ]
    )


UOBM_AXIOMS = """
[] a owl:Restriction ; owl:onProperty :like ; owl:someValuesFrom owl:Thing ; rdfs:subClassOf :PeopleWithHobby .
:GraduateStudent rdfs:subClassOf [ a owl:Restriction ; owl:onProperty :takesCourse ; owl:allValuesFrom :GraduateCourse ] .
:WomanCollege rdfs:subClassOf [ a owl:Restriction ; owl:onProperty :hasStudent ; owl:allValuesFrom :Woman ] .
:LeisureStudent rdfs:subClassOf
  [ a owl:Restriction ; owl:onProperty :isTutoredBy ; owl:maxCardinality "1"^^xsd:nonNegativeInteger ] .
:Man owl:disjointWith :Woman .
:Person owl:disjointWith :Organization , :Publication , :Work .
:UndergraduateStudent owl:disjointWith :GraduateStudent .
[] a owl:AllDisjointClasses ; owl:members ( :FullProfessor :AssociateProfessor :AssistantProfessor ) .
[] a owl:AllDisjointClasses ; owl:members ( :Science :Engineering :FineArts :HumanitiesAndSocial ) .

"""

UOBM_PROPERTIES = """
hasDegreeFrom Person University ObjectProperty
hasDoctoralDegreeFrom Person University ObjectProperty
hasMasterDegreeFrom Person University ObjectProperty
hasUndergraduateDegreeFrom Person University ObjectProperty
hasAlumnus University Person ObjectProperty
hasMember Organization Person ObjectProperty
isMemberOf Person Organization ObjectProperty
worksFor - - ObjectProperty
isHeadOf - - ObjectProperty InverseFunctionalProperty
hasHead - - ObjectProperty FunctionalProperty
isStudentOf Student Organization ObjectProperty
hasStudent Organization Student ObjectProperty
enrollIn Student College ObjectProperty
isAdvisedBy Person Professor ObjectProperty
isTutoredBy Student Faculty ObjectProperty
hasMajor Student AcademicSubject ObjectProperty FunctionalProperty
isFriendOf Person Person ObjectProperty SymmetricProperty
hasSameHomeTownWith Person Person ObjectProperty SymmetricProperty TransitiveProperty
like Person Interest ObjectProperty
love Person Interest ObjectProperty
isCrazyAbout Person Interest ObjectProperty
publicationAuthor Publication Person ObjectProperty
subOrganizationOf Organization Organization ObjectProperty TransitiveProperty
takesCourse Student Course ObjectProperty
teacherOf Faculty Course ObjectProperty
isTaughtBy Course Faculty ObjectProperty FunctionalProperty
teachingAssistantOf TeachingAssistant Course ObjectProperty
emailAddress Person - DatatypeProperty
name - - DatatypeProperty
researchInterest - - DatatypeProperty
telephone Person - DatatypeProperty
"""

UOBM_HIERARCHY = """
:hasDoctoralDegreeFrom rdfs:subPropertyOf :hasDegreeFrom .
:hasMasterDegreeFrom rdfs:subPropertyOf :hasDegreeFrom .
:hasUndergraduateDegreeFrom rdfs:subPropertyOf :hasDegreeFrom .
:hasAlumnus owl:inverseOf :hasDegreeFrom .
:hasHead owl:inverseOf :isHeadOf .
:isHeadOf rdfs:subPropertyOf :worksFor .
:worksFor rdfs:subPropertyOf :isMemberOf .
:enrollIn rdfs:subPropertyOf :isStudentOf .
:isStudentOf rdfs:subPropertyOf :isMemberOf .
:hasStudent owl:inverseOf :isStudentOf .
:isMemberOf owl:inverseOf :hasMember .
:isTaughtBy owl:inverseOf :teacherOf .
:isCrazyAbout rdfs:subPropertyOf :like .
:love owl:equivalentProperty :like .
:telephone rdfs:range xsd:string .

"""

ONTOLOGIES: dict[str, Callable[[], str]] = {"lubm": lambda: LUBM_ONTOLOGY, "uobm": uobm_ontology}


# --- the command -------------------------------------------------------------------------------------------


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A file to write, compressed if its name says so, with the same bytes each time; `-` is the standard output."""
    if str(path) == "-":
        yield sys.stdout.buffer
        return
    with path.open("wb") as file:
        if path.suffix != ".gz":
            yield file
            return
        with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed, io.BufferedWriter(packed, 1 << 20) as buffered:
            yield buffered


def generate(kind: str, universities: int, path: Path, *, seed: int = 0) -> int:
    """Universities as a file of N-Triples; the number of triples."""
    with opened(path) as sink:
        return write(kind, universities, sink, seed=seed)


def main() -> None:
    """Writes what is asked for."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--kind", choices=list(ONTOLOGIES), default="lubm")
    options.add_argument("--universities", type=int, default=1)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--out", type=Path, help="a file of N-Triples, .nt or .nt.gz; - is the standard output")
    options.add_argument("--ontology", type=Path, help="a file for the ontology, in Turtle")
    chosen = options.parse_args()
    if chosen.universities < 1 or chosen.seed < 0:
        options.error("there is at least one university, and no seed below 0")
    if chosen.out is None and chosen.ontology is None:
        options.error("--out or --ontology says what to write")
    if chosen.ontology is not None:
        chosen.ontology.write_text(ONTOLOGIES[chosen.kind](), encoding="utf-8")
    if chosen.out is not None:
        triples = generate(chosen.kind, chosen.universities, chosen.out, seed=chosen.seed)
        print(f"{triples:,} triples", file=sys.stderr)


if __name__ == "__main__":
    main()
