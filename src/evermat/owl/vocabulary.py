"""The names of RDF, RDFS and OWL, as terms in their N-Triples form."""

from __future__ import annotations

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
OWL = "http://www.w3.org/2002/07/owl#"
XSD = "http://www.w3.org/2001/XMLSchema#"
SWRL = "http://www.w3.org/2003/11/swrl#"
BUILT_IN = (RDF, RDFS, OWL, XSD, SWRL)
PREFIXES = {"rdf": RDF, "rdfs": RDFS, "owl": OWL, "xsd": XSD}

# A name in a namespace, as a term: `owl("Thing")`.
rdf, rdfs, owl, xsd, swrl = (f"<{namespace}{{}}>".format for namespace in BUILT_IN)

TYPE, FIRST, REST, NIL = rdf("type"), rdf("first"), rdf("rest"), rdf("nil")
SUB_CLASS, SUB_PROPERTY, DOMAIN, RANGE = rdfs("subClassOf"), rdfs("subPropertyOf"), rdfs("domain"), rdfs("range")
RESOURCE, LITERAL = rdfs("Resource"), rdfs("Literal")
THING, NOTHING = owl("Thing"), owl("Nothing")
SAME, DIFFERENT = owl("sameAs"), owl("differentFrom")
INVERSE, EQUIVALENT_CLASS, EQUIVALENT_PROPERTY = owl("inverseOf"), owl("equivalentClass"), owl("equivalentProperty")
ALL_DISJOINT_CLASSES, ALL_DISJOINT_PROPERTIES = owl("AllDisjointClasses"), owl("AllDisjointProperties")
ALL_DIFFERENT, NEGATIVE_ASSERTION = owl("AllDifferent"), owl("NegativePropertyAssertion")
RULE = swrl("Imp")
TOP = frozenset({owl("topObjectProperty"), owl("topDataProperty")})
BOTTOM = frozenset({owl("bottomObjectProperty"), owl("bottomDataProperty")})
EVERYTHING = frozenset({THING, RESOURCE})  # the classes that everything belongs to

CLASS_TYPES = frozenset({owl("Class"), rdfs("Class"), owl("DeprecatedClass")})
DATATYPE_TYPES = frozenset({rdfs("Datatype"), owl("DataRange")})
CHARACTERISTICS = {
    owl(f"{name}Property"): name
    for name in ("Functional", "InverseFunctional", "Symmetric", "Asymmetric", "Transitive", "Reflexive", "Irreflexive")
}
# What only a property between individuals can be.
OBJECT_TYPES = frozenset(
    {owl("ObjectProperty")} | {iri for iri, name in CHARACTERISTICS.items() if name != "Functional"}
)
PROPERTY_TYPES = OBJECT_TYPES | {rdf("Property")}
PROPERTY_TYPES |= {owl(f"{kind}Property") for kind in ("Datatype", "Annotation", "Functional", "Deprecated")}


def is_iri(term: str) -> bool:
    """Whether a term is an IRI."""
    return term.startswith("<")


def is_blank(term: str) -> bool:
    """Whether a term is a blank node."""
    return term.startswith("_:")


def is_literal(term: str) -> bool:
    """Whether a term is a literal."""
    return term.startswith('"')


def is_built_in(term: str) -> bool:
    """Whether a term is a name of RDF, RDFS, OWL or XML Schema."""
    return term.startswith(_BUILT_IN)


_BUILT_IN = tuple(f"<{namespace}" for namespace in BUILT_IN)
