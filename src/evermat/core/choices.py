"""The names that users choose from: one table makes types, checks, help texts and docstrings.

Each choice is a `Literal` type, which editors and type checkers know, and a `Choices` with the meaning of each name.
`documented` fills the meanings into docstrings, in place of a placeholder such as `{update_algorithm}`.
The command line makes its help texts of the same meanings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

from evermat.core.arguments import wrong_argument
from evermat.core.errors import did_you_mean

MaterialiseAlgorithm: TypeAlias = Literal["auto", "modular", "seminaive"]
UpdateAlgorithm: TypeAlias = Literal[
    "auto", "counting", "dred", "dred-c", "bf", "bf-c", "dred-c-mod", "bf-c-mod", "remat", "bf-eq", "remat-eq"
]
Placement: TypeAlias = Literal["auto", "driver", "pivot", "cluster"]
SchemePolicy: TypeAlias = Literal["auto", "plain"]
KeptCounters: TypeAlias = Literal["none", "nonrecursive", "both"]
Entailment: TypeAlias = Literal["rdfs", "owl2rl"]
EqualityMode: TypeAlias = Literal["auto", "rewrite", "axiomatise", "off"]
Inconsistency: TypeAlias = Literal["refuse", "allow"]
EngineName: TypeAlias = Literal["spark", "memory"]
SavedPositions: TypeAlias = Literal["refuse", "keep", "reset"]
Which: TypeAlias = Literal["all", "asserted", "inferred"]
AnswerFormat: TypeAlias = Literal["table", "csv", "jsonl", "parquet"]
ChangesFormat: TypeAlias = Literal["tsv", "jsonl", "parquet"]

ASSERTED, INFERRED = "asserted", "inferred"


@dataclass(frozen=True)
class Choices:
    """The names of one choice, in the order in which help texts list them, each with its meaning.

    Attributes:
        what: The noun that errors use for the choice.
        type: The `Literal` of the names.
        meanings: The meaning of each name; empty where the name says everything.
    """

    what: str
    type: Any
    meanings: Mapping[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.meanings)

    def check(self, name: object) -> None:
        """Raises an `ArgumentError` with the names for anything but one of them."""
        if name not in self.names:
            verb = "are" if self.what.endswith("s") else "is"
            raise wrong_argument(f"{self.what} {name!r} {verb} not known: use {self.known}{self.hint(name)}")

    @property
    def known(self) -> str:
        """The names as an enumeration in a sentence."""
        *others, last = map(repr, self.meanings)
        return f"{', '.join(others)} or {last}"

    def hint(self, name: object) -> str:
        """The nearest name, as the end of a message; empty if no name is near."""
        found = did_you_mean(str(name), list(self.meanings))
        return f"; {found}" if found else ""

    @property
    def described(self) -> str:
        """The names with their meanings, for a docstring or a help text."""
        return "; ".join(f"`{name}`: {meaning}" if meaning else f"`{name}`" for name, meaning in self.meanings.items())


MATERIALISE_ALGORITHMS = Choices(
    "algorithm",
    MaterialiseAlgorithm,
    {
        "auto": "the same as `modular`",
        "modular": "graph algorithms close relations where rules do (Mat-Mod), other rules are evaluated seminaively",
        "seminaive": "all rules are evaluated instance by instance (Mat)",
    },
)
UPDATE_ALGORITHMS = Choices(
    "algorithm",
    UpdateAlgorithm,
    {
        "auto": "chosen for each stratum, by its counters and the facts that the update touches",
        "counting": "Counting, for programs without recursion",
        "dred": "DRed",
        "dred-c": "DRed^c, DRed with counters",
        "bf": "B/F",
        "bf-c": "B/F^c, B/F with counters",
        "dred-c-mod": "DRed^c-Mod, DRed^c with modules for closures",
        "bf-c-mod": "B/F^c-Mod, B/F^c with modules for closures",
        "remat": "from scratch",
        "bf-eq": "B/F≈, where equal terms have a representative",
        "remat-eq": "Remat≈, from scratch where equal terms have a representative",
    },
)
PLACEMENTS = Choices(
    "place",
    Placement,
    {
        "auto": "the driver while everything fits, then executors",
        "driver": "the memory of the driver's process",
        "pivot": "executors, a whole fixpoint in one job where a column allows it",
        "cluster": "executors, a job for every round",
    },
)
SCHEME_POLICIES = Choices(
    "schemes",
    SchemePolicy,
    {
        "auto": "large closures as intervals and copies of relations as views, where that is smaller or faster",
        "plain": "every fact has a row",
    },
)
KEPT_COUNTERS = Choices(
    "counters",
    KeptCounters,
    {
        "none": "counts nothing",
        "nonrecursive": "counts instances of nonrecursive rules",
        "both": "counts instances of all rules",
    },
)
ENTAILMENTS = Choices("entailment", Entailment, {"rdfs": "the rules of RDFS", "owl2rl": "the rules of OWL 2 RL/RDF"})
EQUALITY_MODES = Choices(
    "equality",
    EqualityMode,
    {
        "auto": "equal terms have a representative where the rules allow it, else by the axioms of equality",
        "rewrite": "equal terms have a representative",
        "axiomatise": "by the axioms of equality",
        "off": "owl:sameAs is a property like any other",
    },
)
INCONSISTENCIES = Choices(
    "inconsistency",
    Inconsistency,
    {"refuse": "it is an error", "allow": "it is a fact of the relation `inconsistent`"},
)
SAVED_POSITIONS = Choices(
    "positions",
    SavedPositions,
    {
        "refuse": "a state that has positions is an error",
        "keep": "the state keeps them",
        "reset": "they are removed, and streams take their files again",
    },
)
WHICH = Choices(
    "facts", Which, {"all": "all facts", "asserted": "explicit facts", "inferred": "facts that are only derived"}
)
ENGINES = Choices("engine", EngineName, {"spark": "Spark", "memory": "this process alone, without a JVM"})
ANSWER_FORMATS = Choices(
    "format",
    AnswerFormat,
    {
        "table": "aligned columns, in a box on a terminal",
        "csv": "RFC 4180, with a header line",
        "jsonl": "one JSON object in each line",
        "parquet": "a Parquet file",
    },
)
CHANGES_FORMATS = Choices(
    "format",
    ChangesFormat,
    {"tsv": "text, `+` or `-`, relation and values in each line", "jsonl": "JSON lines", "parquet": "Parquet"},
)
# By the placeholder in docstrings.
CHOICES = {
    "materialise_algorithm": MATERIALISE_ALGORITHMS,
    "update_algorithm": UPDATE_ALGORITHMS,
    "placement": PLACEMENTS,
    "schemes": SCHEME_POLICIES,
    "counters": KEPT_COUNTERS,
    "entailment": ENTAILMENTS,
    "equality": EQUALITY_MODES,
    "inconsistency": INCONSISTENCIES,
    "positions": SAVED_POSITIONS,
    "facts": WHICH,
    "engine": ENGINES,
    "answer_format": ANSWER_FORMATS,
    "changes_format": CHANGES_FORMATS,
}

_PLACEHOLDER = re.compile("{(" + "|".join(CHOICES) + ")}")

_F = TypeVar("_F", bound=Callable[..., Any])


def documented(function: _F) -> _F:
    """Fills the names of choices and their meanings into a docstring."""
    if function.__doc__ is not None:
        function.__doc__ = _PLACEHOLDER.sub(lambda found: CHOICES[found[1]].described, function.__doc__)
    return function
