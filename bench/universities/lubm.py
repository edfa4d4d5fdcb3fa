"""Universities in the shape of LUBM, as lines of N-Triples."""

from __future__ import annotations

from collections.abc import Iterator

from bench.universities.department import PROFESSORS, RANKS, Department, draw_department, number_of_departments
from bench.universities.drawing import seeded
from bench.universities.vocabulary import OWN_WORDS, RDF_TYPE, UB


def lubm(university: int, seed: int, departments: int | None = None) -> Iterator[tuple[str, Department | None]]:
    """A university's triples, and the departments that have been drawn for them."""
    yield f'<http://www.University{university}.edu> <{UB}name> "University{university}" .\n', None
    for number in range(number_of_departments(university, seed, departments)):
        department = draw_department(seeded(seed, university, number), university, number)
        yield "".join(describe(department, UB)), department


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
