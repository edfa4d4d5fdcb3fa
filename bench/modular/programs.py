"""The programs of all shapes."""

from __future__ import annotations

from bench.workloads import declarations

CLOSURE = "t(x, y) :- e(x, y). t(x, z) :- t(x, y), t(y, z)."
GRAPH = f".decl e, t(x:number, y:number) {CLOSURE}"

CLOSURE_OF_E = declarations({"E": 2}, "T", 2) + "T(x,y) :- E(x,y).\nT(x,z) :- T(x,y), T(y,z).\n"
NONLINEAR = {"w1": CLOSURE_OF_E, "w2": CLOSURE_OF_E, "w3": CLOSURE_OF_E + "T(y,x) :- T(x,y).\n"}

SKOS = """
.decl broader, narrower, related, broadMatch, narrowMatch, relatedMatch, closeMatch, exactMatch(x:number, y:number)
.decl broaderTransitive, narrowerTransitive, mappingRelation, semanticRelation(x:number, y:number)
.decl inScheme, topConceptOf, hasTopConcept(x:number, y:number)
.decl concept, conceptScheme(x:number)
narrower(x, y) :- broader(y, x).
broader(x, y) :- narrower(y, x).
broaderTransitive(x, y) :- broader(x, y).
narrowerTransitive(x, y) :- narrower(x, y).
broaderTransitive(x, z) :- broaderTransitive(x, y), broaderTransitive(y, z).
narrowerTransitive(x, z) :- narrowerTransitive(x, y), narrowerTransitive(y, z).
narrowerTransitive(x, y) :- broaderTransitive(y, x).
broaderTransitive(x, y) :- narrowerTransitive(y, x).
related(x, y) :- related(y, x).
broader(x, y) :- broadMatch(x, y).
narrower(x, y) :- narrowMatch(x, y).
related(x, y) :- relatedMatch(x, y).
closeMatch(x, y) :- exactMatch(x, y).
narrowMatch(x, y) :- broadMatch(y, x).
broadMatch(x, y) :- narrowMatch(y, x).
relatedMatch(x, y) :- relatedMatch(y, x).
closeMatch(x, y) :- closeMatch(y, x).
exactMatch(x, y) :- exactMatch(y, x).
exactMatch(x, z) :- exactMatch(x, y), exactMatch(y, z).
mappingRelation(x, y) :- broadMatch(x, y).
mappingRelation(x, y) :- narrowMatch(x, y).
mappingRelation(x, y) :- relatedMatch(x, y).
mappingRelation(x, y) :- closeMatch(x, y).
semanticRelation(x, y) :- broaderTransitive(x, y).
semanticRelation(x, y) :- narrowerTransitive(x, y).
semanticRelation(x, y) :- related(x, y).
semanticRelation(x, y) :- mappingRelation(x, y).
inScheme(x, y) :- topConceptOf(x, y).
hasTopConcept(x, y) :- topConceptOf(y, x).
topConceptOf(x, y) :- hasTopConcept(y, x).
conceptScheme(y) :- inScheme(_, y).
concept(x) :- inScheme(x, _).
concept(x) :- semanticRelation(x, _).
concept(y) :- semanticRelation(_, y).
"""

PLACES = """
.decl near, relatedPlaces, within, foundAt, foundNear, inRegion(x:number, y:number)
.decl place, lonely(x:number)
relatedPlaces(x, y) :- near(x, y).
relatedPlaces(y, x) :- relatedPlaces(x, y).
relatedPlaces(x, z) :- relatedPlaces(x, y), relatedPlaces(y, z).
place(x) :- near(x, _).
place(x) :- foundAt(_, x).
lonely(x) :- place(x), !relatedPlaces(x, _).
foundNear(object, y) :- foundAt(object, x), relatedPlaces(x, y).
inRegion(x, region) :- within(x, region).
inRegion(x, region) :- within(y, region), relatedPlaces(y, x).
"""

HARD_RULES = """
.decl worksWith0, worksWith, doctoralAdvisor, academicAncestor, academicRelative(x:number, y:number)
worksWith(x, y) :- worksWith0(x, y).
worksWith(y, x) :- worksWith(x, y).
worksWith(x, z) :- worksWith(x, y), worksWith(y, z).
academicAncestor(x, y) :- doctoralAdvisor(x, y).
academicAncestor(x, z) :- academicAncestor(x, y), academicAncestor(y, z).
academicRelative(x, z) :- graduate(x), advisor(x, y), academicAncestor(y, z).
"""
