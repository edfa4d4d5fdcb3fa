"""Text to a typed, stratified program. No numpy, and pyarrow only for its regular expressions.

`read_source` and `compile_program` make a `Program` of a text; `Queries` compile questions to it; `revise` adds and removes
rules. `Relation`, `Rule` and the literals are what a program consists of, `Stratum` what is computed together. `Closure`,
`Union` and the names about equality are patterns in its rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.core import lazy_face

if TYPE_CHECKING:
    from evermat.language.analysis.strata import Stratum
    from evermat.language.builtins import (
        AGGREGATES,
        INTEGERS,
        MAX_NUMBER,
        MAX_UNSIGNED,
        MIN_NUMBER,
        NEGATION,
        RANGES,
        Type,
        evaluate,
        fault_of_pattern,
        format_float,
        holds,
        parse_float,
        parse_integer,
    )
    from evermat.language.compile import compile_program, read_source
    from evermat.language.literal_values import NAME_REST, NAME_START, is_well_formed, literal_value
    from evermat.language.model import (
        Apply,
        Atom,
        Column,
        Constant,
        Expression,
        Io,
        Literal,
        Negation,
        Program,
        Relation,
        Row,
        Rule,
        Test,
        Variable,
        Wildcard,
        changed_rules,
        name_wildcards,
        partial_expressions,
        shared_relations,
        variables_of,
    )
    from evermat.language.number_values import INTEGER_RANGES
    from evermat.language.patterns.closures import Closure, Copy, Member, find_copies
    from evermat.language.patterns.equality import (
        AXIOMATISE,
        EQUALITY_AUTO,
        EQUALITY_CLASSES,
        EQUALITY_OFF,
        EQUALITY_PRAGMA,
        TERM_NAMES,
        equality_of,
        normal_rule,
        possible_rule,
        rewritten_columns,
        terms_of,
    )
    from evermat.language.patterns.triples import OTHER_TRIPLE, TRIPLE
    from evermat.language.patterns.unions import Union, find_unions
    from evermat.language.prefixes import (
        RelationNames,
        declared_prefixes,
        full_names,
        relation_names,
        suggestion,
    )
    from evermat.language.query import Queries, Query, body_variables, named_throughout
    from evermat.language.revision import revise
    from evermat.language.syntax.ast import Declaration
    from evermat.language.syntax.parser import parse
    from evermat.language.term_syntax import (
        DIRECTION,
        HELD_TERM,
        NOT_HELD,
        PLAIN_BLANK,
        PLAIN_IRI,
        PLAIN_LANGUAGE,
        PLAIN_STRING,
        TRIPLE_TERM,
        TYPES_OF_TAGGED,
        MalformedTermError,
        TermFault,
        UnsupportedTermError,
        checked_term,
        checked_terms,
        is_held,
        spelled,
    )
    from evermat.language.term_values import Term, iri_term, is_term, malformed_argument, term_of, typed_literal
    from evermat.language.terms import (
        RDF_TYPE,
        SAME_AS,
        XSD_STRING,
        BadEscapeError,
        Value,
        is_unicode,
        literal_term,
        quote,
        unescape,
    )
else:
    __getattr__, __dir__, __all__ = lazy_face(__name__)
