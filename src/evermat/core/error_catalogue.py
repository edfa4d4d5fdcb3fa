"""Everything that can be wrong, in one list, sorted by number.

The first digit of the number is the exit code of the command line. `docs/errors.md` is generated from this module.
"""

from __future__ import annotations

from evermat.core.errors import Kind

KINDS: list[Kind] = []


def _kind(code: int, sentence: str, note: str = "", *, warning: bool = False) -> Kind:
    kind = Kind(code, sentence, note, warning)
    KINDS.append(kind)
    return kind


# --- 200-299: the program or the command line is wrong ------------------------------------------------------
COMMAND_LINE = _kind(200, "{what}")
UNEXPECTED = _kind(201, "unexpected {found}", "expected {expected}")
UNEXPECTED_END = _kind(202, "this statement is not complete", "expected {expected}")
BAD_CHARACTER = _kind(203, "the character `{character}` has no meaning here")
OPEN_STRING = _kind(204, "this string is not closed", "a string ends on the line on which it begins")
OPEN_COMMENT = _kind(205, "this comment is not closed", "a comment `/*` ends with `*/`")
BAD_ESCAPE = _kind(
    206,
    "`{escape}` is not an escape sequence",
    "the escape sequences are \\\\ \\\" \\' \\n \\t \\r \\b \\f \\v \\a \\0 \\uXXXX \\UXXXXXXXX",
)
TOO_DEEP = _kind(207, "this is nested more than {limit} levels deep")
UNREADABLE = _kind(208, "cannot read `{path}`: {why}")
NOT_UTF8 = _kind(209, "byte {byte} of `{path}` is not valid UTF-8", "programs are UTF-8 texts")
RESERVED = _kind(210, "`{name}` is a reserved word and cannot name {what}")
BAD_DIRECTIVE = _kind(211, "unknown directive `{name}`")
BAD_QUALIFIER = _kind(212, "`{name}` is not a qualifier of a relation", "the known ones are {known}")
MORE_ERRORS = _kind(213, "and more: only the first {limit} errors are shown")
EMPTY_QUERY = _kind(214, "the query is empty", 'a query is written like the body of a rule: `path("a", x), x != "b"`')
MORE_THAN_A_QUERY = _kind(
    215, "there is text after the end of the query", "a query is the body of one rule: join its literals by `,`"
)
MALFORMED_TERM = _kind(216, "`{term}` is not an RDF term: {why}")
UNBOUND_HEAD = _kind(
    220,
    "variable `{name}` of the head is not bound by the body",
    "every variable of the head must occur in a positive atom of the body or be computed from such variables",
)
UNBOUND_FACT = _kind(221, "`{name}` in a fact is not a value", "a fact has no variables; a rule needs `:-` and a body")
UNSAFE = _kind(
    222,
    "variable `{name}` is not bound by a positive atom",
    "variables in negations, comparisons and computations must be bound by a positive atom of the same body",
)
UNSAFE_AGGREGATE = _kind(
    223,
    "variable `{name}` of this aggregate is used outside of it but not bound there",
    "an aggregate groups by the variables that the rest of the body binds; it returns only its result",
)
WILDCARD_VALUE = _kind(224, "`_` has no value here", "`_` may stand only as an argument of an atom")
WILDCARD_HEAD = _kind(225, "`_` cannot stand in the head", "every column of a derived fact needs a value")
ALTERNATIVE_WILDCARD = _kind(
    226,
    "`_` stands in an aggregate over alternatives",
    "replace `_` by a variable, so that it is clear which values are counted",
)
ALTERNATIVE_VARIABLE = _kind(
    227,
    "variable `{name}` is not bound in every alternative of this aggregate",
    "an aggregate ranges over bindings of the same variables",
)
UNBOUND_ANSWER = _kind(
    228,
    "variable `{name}` is not bound in every alternative",
    "every alternative of a query must bind all its variables, except those whose names begin with `_`",
)
UNKNOWN_RELATION = _kind(230, "relation `{name}` is not declared")
ARITY = _kind(231, "`{name}` has {expected}, not {found}", "{place}")
UNKNOWN_TYPE = _kind(232, "type `{name}` is not declared")
UNKNOWN_FUNCTION = _kind(233, "there is no function `{name}`")
FUNCTION_ARITY = _kind(234, "`{name}` takes {expected}, not {found}")
DECLARED_TWICE = _kind(235, "{what} `{name}` is declared twice", "{place}")
UNKNOWN_PREFIX = _kind(
    236, "prefix `{name}:` is not declared", "declare it before its first use: `.prefix {name}: <…>`"
)
UNKNOWN_PARAMETER = _kind(237, "`{name}` is not a parameter of `{directive}` and is ignored", warning=True)
BAD_PARAMETER = _kind(238, "`{name}={value}` is not valid", "{why}")
COLUMN_TWICE = _kind(239, "relation `{relation}` has two columns `{name}`")
TYPE_CLASH = _kind(240, "{what} is used as {found}, but it is {expected}", "{why}")
BAD_PATTERN = _kind(241, "`{pattern}` is not a regular expression: {why}", "patterns are written as for RE2")
NOT_A_SUBTYPE = _kind(
    242,
    "{what} is of type `{found}`, which is not a subtype of `{expected}`",
    "column `{column}` of `{relation}` takes only `{expected}` and its subtypes",
)
DISJOINT_TYPES = _kind(
    243, "variable `{name}` would be of type `{first}` and of type `{second}`", "no value belongs to both types"
)
OUT_OF_RANGE = _kind(244, "`{value}` does not fit the type `{type}`", "{range}")
CYCLIC_TYPE = _kind(245, "type `{name}` is defined through itself: {cycle}")
MIXED_UNION = _kind(
    246, "type `{name}` unites `{first}` and `{second}`", "the members of a union share one primitive type"
)
EQREL_SHAPE = _kind(248, "the equivalence relation `{name}` does not have two columns of one type")
SPREAD_HEAD = _kind(
    249,
    "this head does not name its class or property",
    "in a program with relations for classes and properties, every head names the one that it derives",
)
CYCLIC_NEGATION = _kind(
    250, "`{name}` depends on its own negation: {cycle}", "what is negated must be complete before it is read"
)
CYCLIC_AGGREGATION = _kind(
    251,
    "`{name}` depends on an aggregate over itself: {cycle}",
    "what is aggregated must be complete before it is read",
)
REFUSED = _kind(260, "{what} are not supported: `{name}`", "{instead}")
TOO_MANY_ALTERNATIVES = _kind(
    261,
    "there are more than {limit} alternatives, or they are too long",
    "every alternative of the body becomes a rule for each head: derive a relation from a part of the body",
)
_AXIOMS = 'use the axioms of equality instead: `.pragma "equality" "axiomatise"` or `--equality axiomatise`'
COMPUTES_TERM = _kind(262, "equality cannot be rewritten, because this rule computes terms: {rule}", _AXIOMS)
NAME_OF_GROUP = _kind(
    263,
    "equality cannot be rewritten, because an aggregate inspects the names of `{name}`, by which it groups",
    _AXIOMS,
)
OTHER_EQUALITY = _kind(
    264,
    "a change of rules cannot change the treatment of equality from `{old}` to `{new}`",
    "facts are stored accordingly: materialise the program again",
)
NO_SUCH_ALGORITHM = _kind(270, "there is no algorithm `{name}`", "the known ones are {known}")
NOT_NONRECURSIVE = _kind(
    271,
    "Counting maintains only nonrecursive programs, but `{name}` is derived recursively: {rule}",
    "use dred-c, which counts wherever there is no recursion",
)
NO_SUCH_RULE = _kind(
    272, "the program has no rule `{rule}`", "write the rule as it was added; names of variables do not matter"
)
NEEDS_SPARK = _kind(273, "relation `{name}` is read from {what}, which needs Spark", "use `--engine spark`")
BAD_KEEP = _kind(
    274,
    "`{text}` does not say how many versions to keep",
    "write a number from 1 on, or an age: `12h`, `30d`, `4w`",
)
OUTPUT_NEEDS_SPARK = _kind(275, "relation `{name}` is written to {what}, which needs Spark", "{how}")
NO_SPARK = _kind(276, "{what} needs Spark, which is not installed")
IGNORED = _kind(280, "`{name}` is accepted but has no effect", "{why}", warning=True)
SINGLETON = _kind(281, "variable `{name}` occurs only once", "write `_` if this is intended", warning=True)
NO_VALUE = _kind(282, "this fact is left out, because `{expression}` has no value", warning=True)
DOTS_IN_OUTPUT = _kind(
    283,
    "the name `{name}` of this output contains `..`",
    "it may lie outside of the output directory, and is then refused with `--sandbox`",
    warning=True,
)
NESTED_UPDATE = _kind(
    290,
    "a materialisation cannot be changed while this thread changes it",
    "what an update reads or calls may read the materialisation, and sees it as it was before",
)
CLOSED = _kind(291, "this {what} is closed", "{why}")
RELATION_REMOVED = _kind(292, "the program has no relation `{name}` any more", "a change of rules has removed it")
FORKED = _kind(
    293,
    "a materialisation cannot be used in a process that was forked from the one that made it",
    "locks and files belong to that process: open the state directory again, or start processes by `spawn`",
)
NO_STATE = _kind(
    294, "this materialisation has no state directory", "`refresh` takes over versions that others write to a state"
)
OUTSIDE = _kind(295, "the sandbox does not let `{path}` be {what}: {why}", "{rule}")
BAD_LOCATION = _kind(296, "{what} cannot be at `{uri}`: {why}", "{rule}")
MISSING_PACKAGE = _kind(
    297,
    "{what} needs the package `{package}`, which is not installed",
    "install it with `pip install 'evermat[{extra}]'`",
)

# --- 300-399: the data is wrong -----------------------------------------------------------------------------
# {where} is a column of the file: its number and its name, as in 'column 2 (`y`)'.
NO_FILE = _kind(300, "there is no file `{path}`", "{what} read from it")
CANNOT_READ = _kind(301, "cannot read `{path}`: {why}", "{what} read from it")
IS_FOLDER = _kind(302, "`{path}` is a folder, not a file", "{why}")
RDF_INPUT = _kind(
    303, "`{path}` is an ontology in {form}, not RDF data", "use `--ontology {path}` to translate its axioms to rules"
)
TOO_FEW_COLUMNS = _kind(304, "{what} has {found}, but `{relation}` has {expected}", "{missing} missing")
TOO_MANY_COLUMNS = _kind(305, "{what} has {found}, but `{relation}` has {expected}", "{why}")
NOT_A_NUMBER = _kind(306, "{value} in {where} is not of the type `{type}`", "{why}")
DOES_NOT_FIT = _kind(307, "{value} in {where} does not fit the type `{type}`", "{range}")
NEGATIVE = _kind(308, "{value} in {where} is negative, but the column is `unsigned`")
NAN_VALUE = _kind(309, "NaN in {where}", "a `float` is a number or an infinity; NaN is never stored")
DATA_NOT_UTF8 = _kind(310, "byte {byte} of this line is not valid UTF-8", "relation files are UTF-8 texts")
BAD_GZIP = _kind(311, "the compressed file `{path}` is damaged: {why}")
NOT_GZIP = _kind(312, "`{path}` is not compressed with gzip, although its name ends in `.gz`")
NULL_VALUE = _kind(313, "NULL in {where}", "a fact has a value in every column")
COLUMN_TYPE = _kind(
    314, "{where} is of the Arrow type `{found}`, but the column is `{type}`", "a `{type}` is read from {accepted}"
)
MISSING_COLUMN = _kind(315, "column `{column}` of `{relation}` is missing", "the {things} here: {found}")
ADDITIONAL_COLUMN = _kind(316, "`{name}` is not a column of `{relation}`", "its columns: {expected}")
BAD_PARQUET = _kind(317, "`{path}` is not a readable Parquet file: {why}")
BAD_JSON = _kind(318, "this line is not JSON: {why}", "a line of a .jsonl file is one JSON array or one JSON object")
NOT_A_RECORD = _kind(319, "this line is {found}", "a line of a .jsonl file is one JSON array or one JSON object")
JSON_TYPE = _kind(320, "{value} in {where} is {found}, but the column is `{type}`")
COLUMN_ORDER = _kind(
    321,
    "the columns of `{path}` fit `{relation}` neither by name nor by position",
    "in the file: {found}; in the relation: {expected}",
)
OPEN_QUOTE = _kind(
    322, "the quoted value in {where} is not closed", 'with rfc4180=true a value that begins with `"` ends with `"`'
)
STRAY_QUOTE = _kind(
    323, "{what} in {where}", 'with rfc4180=true a value with `"` is quoted as a whole, and each `"` in it is doubled'
)
NOT_PLAIN_TEXT = _kind(
    324,
    "{value} in column {position} (`{column}`) of `{relation}` cannot be written as plain text, because it contains {what}",
    "`{path}` has one line for each fact, and nothing is quoted; rfc4180=true, .parquet and .jsonl can hold every symbol",
)
SAME_FILE = _kind(
    325, "`{first}` and `{second}` would both be written to `{path}`", "each relation needs a file of its own"
)
RDF_OUTPUT = _kind(326, "`{path}` cannot be written: {why}", "{rule}")
BAD_TRIPLE = _kind(
    327,
    "this line is not {form}: {why}",
    "a line of a {ending} file is a subject, a predicate, an object{graph} and a dot",
)
TRIPLE_COLUMNS = _kind(
    328,
    "`{path}` holds triples, but {why}",
    "triples are facts of relations with three columns of type `term` or `symbol` (subject, property, object) or four "
    "(and the graph), and of those named by an IRI: a class has one column, a property two",
)
MORE_DATA_ERRORS = _kind(329, "and {more}: only the first {limit} of `{path}` are shown")
NO_SUCH_RELATION = _kind(330, "the program has no relation `{name}`")
ROW_COLUMNS = _kind(331, "row {row} of the facts for `{relation}` has {found}, not {expected}")
ROW_VALUE = _kind(332, "{value} in row {row}, column `{column}` of the facts for `{relation}` is not a {type}")
TEXT_NOT_UTF8 = _kind(
    333,
    "byte {byte} of the text in {where} is not valid UTF-8",
    "symbols, terms and the names of relations are UTF-8 texts",
)
NOT_A_TERM = _kind(
    334,
    "{value} in {where} is not an RDF term: {why}",
    'a `term` is written as in N-Triples: `<http://example.org/a>`, `_:b`, `"text"`, `"text"@en`, `"1"^^<http://www.w3.org/2001/XMLSchema#integer>`',
)
OUTPUT_EXISTS = _kind(335, "`{target}` exists already", 'use `mode="overwrite"`, `"append"` or `"ignore"`')
OUTPUT_COLUMNS = _kind(336, "`{name}` cannot be appended to `{target}`: {why}", "{found}")
NO_OUTPUT = _kind(337, "`{name}` cannot be written to `{target}`: {why}", "nothing was written")
PARTITION_NAME = _kind(
    338,
    "{value} in column `{column}` of `{name}` cannot be the name of a partition",
    "Spark would read it as NULL: leave the column out of `partitionBy`",
)
SPARK_TYPE = _kind(
    339, "{where} is of the Spark type `{found}`, but the column is `{type}`", "a `{type}` is read from {accepted}"
)
_CHANGE = "a change is `+` (insert) or `-` (delete), the name of a relation, and a value for each of its columns"
CHANGE_SIGN = _kind(340, "{value} is neither `+` nor `-`", _CHANGE)
CHANGE_RELATION = _kind(341, "this change does not name a relation", _CHANGE)
CHANGE_RECORD = _kind(
    342, "this line is {found}", "a change is one JSON object with the names `op`, `relation` and `values`"
)
CHANGE_COLUMNS = _kind(
    343,
    "{what} in `{path}`",
    "a Parquet file of changes has a column `op`, perhaps a column `relation`, and those of the relation",
)
CHANGE_NAME = _kind(
    344,
    "`{path}` does not say whether its triples are inserted or deleted",
    "name the file `x.add.nt` to insert its triples, or `x.del.nt` to delete them",
)
CHANGE_NOWHERE = _kind(
    345,
    "the program has no relation for {what}",
    "a triple goes to the relation of its class or property; `triple` or `other_triple` takes all others",
)
CHANGE_UNLABELLED = _kind(
    346,
    "`{path}` deletes triples of a blank node that has no label",
    "label the blank node as in the state, for example `_:b1`",
)
MALFORMED_RECORD = _kind(347, "a record of `{path}` is malformed: {record}", "{why}")
CHANGED_INPUT = _kind(
    348, "`{path}` changed while it was read", "nothing was written: repeat the run when nothing writes there"
)
UNKNOWN_FORMAT = _kind(
    349,
    "Spark has no format `{format}`",
    "parquet, orc, csv, json, xml and text come with Spark; others need jars: `--conf spark.jars.packages=…`",
)
BAD_ONTOLOGY = _kind(350, "this is not {format}: {why}")
ONTOLOGY_FORMAT = _kind(
    351,
    "`{path}` is not an ontology in a supported format: {why}",
    "ontologies are read from RDF (.owl, .rdf, .ttl, .nt, …), OWL functional syntax (.ofn) and OWL/XML (.owx)",
)
MISSING_IMPORT = _kind(352, "`{path}` imports <{iri}>, which was not found", "searched {places}")
BAD_CATALOG = _kind(
    353, "this is not a catalogue in XML: {why}", "a catalogue lists the locations of imported ontologies"
)
LEFT_OUT = _kind(354, "something malformed is left out: {why}", warning=True)
RELATION_TWICE = _kind(
    355,
    "`{first}` and `{second}` name the same relation",
    "facts of a relation are given once, by one of its names",
)
BAD_GRAPH = _kind(
    360, "{value}, {where}, cannot be there: {why}", "the triples of a graph are those that N-Triples can contain"
)
STREAM_SIGN = _kind(
    363,
    "{value} is not a change",
    "a row is inserted by `+`, `i`, `insert` or `update_postimage`, and deleted by `-`, `d`, `delete` or `update_preimage`",
)
BAD_RDF = _kind(370, "this is not {form}: {why}")
RELATIVE_IRI = _kind(
    371, "`{iri}` is a relative IRI without a base", "give a base by `--base IRI`, or by {how} in the file"
)
BAD_BASE = _kind(372, "`{base}` is not a base: {why}", "a base is an absolute IRI")
REMOTE_CONTEXT = _kind(
    373,
    "the context {iri} is another document, which is not fetched",
    "contexts are read from the file itself: write the other document's context in the place of its name",
)
FORBIDDEN = _kind(380, "`{fact}` is forbidden, but it {how}", "{why}")
MORE_FORBIDDEN = _kind(381, "and {count} more facts of `{relation}`, which is forbidden")
DIFFERENT_VALUES = _kind(
    382,
    "{first} and {second} would be equal, but are literals of different values",
    "{why}; nothing was changed",
)
NO_STREAM = _kind(390, "this DataFrame cannot be followed: {why}", "create it by `spark.readStream`")
STREAM_COLUMNS = _kind(
    391,
    "{what}",
    "a stream of changes has a column `op` with `+` and `-`, or `_change_type` as in a change data feed, and either the columns of the relation, "
    "or, for changes of any relations, `relation` and `values`, an array of strings; a column `sequence` of numbers, times or strings, or "
    "`_commit_version`, may say what comes last",
)
BOTH_SIGNS = _kind(
    392,
    "`{fact}` is both inserted and deleted{how}",
    "the rows of a batch have no order; a column `sequence` or `_commit_version` can say which of them comes last",
)
NO_SOURCE = _kind(393, "changes cannot be read from `{path}`: {why}", "the source of a stream is a folder")
STREAM_AS_FACTS = _kind(
    394, "{name} are a streaming DataFrame, which has no end", "start without them, and follow it: `m.follow(frame, …)`"
)

# --- 400-499: a limit was reached ---------------------------------------------------------------------------
LIMIT_REACHED = _kind(
    400,
    "the limit of {limit} {what} is reached",
    "nothing was written, because the result is incomplete: raise the limit",
)
LIMIT_AFTER_WRITING = _kind(
    401, "the limit of {limit} {what} is reached", "{written}; what comes after that is missing"
)

# --- 500-599: the state is locked or damaged ----------------------------------------------------------------
NOT_A_STATE = _kind(500, "`{path}` is not a state of evermat", "{why}")
STATE_FORMAT = _kind(
    501,
    "the state `{path}` has the format {found}, but this version of evermat knows only the format {expected}",
    "the format is named in `{file}`",
)
STATE_LOCKED = _kind(502, "the state `{path}` is locked by another writer", "a state has one writer at a time")
STATE_DAMAGED = _kind(503, "`{file}` is damaged: {why}", "nothing was read from it")
STATE_MOVED = _kind(
    504,
    "the state `{path}` is at version {found}, but this update was computed from version {seen}",
    "open the state again and repeat the update",
)
NO_SUCH_VERSION = _kind(505, "there is no version {version}: the state has {kept}")
VERSION_NOT_KEPT = _kind(506, "version {version} is no longer kept: the state has {kept}")
OLD_VERSION = _kind(507, "version {version} is read-only", "only the newest version, {latest}, can be updated")
STATE_EXISTS = _kind(508, "`{path}` already holds a state", "choose a path that does not exist yet")
STATE_UNREADABLE = _kind(509, "cannot read `{file}`: {why}")
STATE_PLACE = _kind(
    510,
    "a state cannot be written at `{path}`",
    "the path contains {what}, which readers of Delta tables misread: choose another path",
)
STATE_HAS_POSITIONS = _kind(
    511,
    "the state `{path}` knows how far these streams have been followed: {streams}",
    "a stream whose position is lost takes its files again: keep the positions with {keep}, or remove them with {reset}",
)

# --- 600-699: disk, memory or cluster failed ----------------------------------------------------------------
CANNOT_WRITE = _kind(600, "cannot write `{path}`: {why}", "{rest}")
INCOMPLETE_COMMIT = _kind(601, "version {version} of `{path}` could not be completed: {why}", "{rest}")
OUT_OF_MEMORY = _kind(610, "there is not enough memory: {why}", "nothing was written")
NO_EXCHANGE = _kind(
    612,
    "facts cannot be exchanged through `{path}`: {why}",
    "the driver and all executors need the bucket, and the `AWS_…` variables that lead to it",
)
SPARK_FAILED = _kind(620, "Spark could not {what}: {why}")
SCRATCH_NOT_SHARED = _kind(
    621,
    "the driver does not see what executors wrote to `{path}`",
    "choose a directory that all machines share: `--scratch DIR`",
)
STATE_NOT_SHARED = _kind(
    622,
    "executors do not see `{file}`, which the driver sees",
    "a state that is opened on a cluster must be in a folder that all machines share",
)
OUTPUT_NOT_SHARED = _kind(
    623,
    "the driver does not see what executors wrote to `{path}`",
    "write to a directory that all machines share, or to the URI of one",
)
OLD_SPARK = _kind(625, "PySpark {version} is too old: Evermat needs {oldest} or newer")
EXECUTOR_PYTHON = _kind(
    626,
    "tasks cannot run with the Python `{python}`: {why}",
    "`PYSPARK_PYTHON` or `--conf spark.pyspark.python=…` names the Python of executors",
)
NO_JAVA = _kind(630, "Spark needs Java {wanted}, which was not found", "{found}")
NO_CLUSTER = _kind(631, "the Spark cluster `{master}` cannot be reached: {why}")
SPARK_ENDED = _kind(632, "Spark has ended unexpectedly: {why}")
