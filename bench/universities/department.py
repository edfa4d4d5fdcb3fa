"""A department: the published profile of LUBM, and what is drawn by it. Both kinds of data have the same departments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench.universities.drawing import Numbers, Random, Range, distinct, draw, seeded

# --- the profile -------------------------------------------------------------------------------------------

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


def number_of_departments(university: int, seed: int, given: int | None) -> int:
    """Of a university, unless it is given."""
    return draw(seeded(seed, university), DEPARTMENTS) if given is None else given
