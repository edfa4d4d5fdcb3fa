"""The ontologies of both kinds of data, in Turtle."""

from __future__ import annotations

from collections.abc import Callable

from bench.universities.turtle import PREFIXES, defined, outline, properties
from bench.universities.uobm import PASTIMES, SPORTS, SUBJECTS
from bench.universities.vocabulary import UB, UO

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
