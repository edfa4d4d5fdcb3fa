"""Universities in the shape of UOBM, as lines of N-Triples: those of LUBM in other words, and what UOBM has more."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bench.universities.department import (
    DEPARTMENTS,
    SURE_UNDERGRADUATES,
    UNDERGRADUATE_TAKES,
    Department,
    draw_department,
    number_of_departments,
)
from bench.universities.drawing import Random, Range, distinct, draw, seeded
from bench.universities.lubm import describe
from bench.universities.vocabulary import RDF_TYPE, UO

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


def uobm(
    university: int, seed: int, departments: int | None = None, *, universities: int
) -> Iterator[tuple[str, Department | None]]:
    """The same for UOBM; friends and people of the same town may be at any of so many universities."""
    host = f"http://www.University{university}.edu"
    sure = DEPARTMENTS[0] if departments is None else departments
    yield f'<{host}> <{UO}name> "University{university}" .\n{colleges(host)}', None
    for number in range(number_of_departments(university, seed, departments)):
        department = draw_department(seeded(seed, university, number), university, number)
        more = enrich(department, seeded(seed, university, number, 1), university, universities, sure)
        yield "".join((*describe(department, UO), *more)), department


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
