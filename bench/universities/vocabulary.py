"""The names of classes and properties: `UB` begins those of LUBM, `UO` those of UOBM."""

from __future__ import annotations

UB = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"
UO = "http://example.org/university-ontology#"
RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"

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
