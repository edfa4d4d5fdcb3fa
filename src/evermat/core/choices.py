"""The names that users choose from, each with its meaning: one table for types, checks, help texts and docstrings.

A choice is a `Literal` type, which editors and type checkers know, and a `Choices` that says what each name means. `documented` fills the
meanings into docstrings, where a placeholder such as `{update_algorithm}` stands; the command line makes its help texts of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar, get_args

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
Which: TypeAlias = Literal["all", "asserted", "inferred"]
AnswerFormat: TypeAlias = Literal["table", "csv", "jsonl", "parquet"]
ChangesFormat: TypeAlias = Literal["tsv", "jsonl", "parquet"]

ASSERTED, INFERRED = "asserted", "inferred"


@dataclass(frozen=True)
class Choices:
    """The names of one choice, in the order in which they are shown, with what each means.

    Attributes:
        what: What is chosen, as errors call it.
        meanings: What each name means.
    """

    what: str
    meanings: Mapping[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        """The names."""
        return tuple(self.meanings)

    def check(self, name: object) -> None:
        """Refuses what is not one of the names.

        Raises:
            ValueError: with the names.
        """
        if name not in self.meanings:
            verb = "are" if self.what.endswith("s") else "is"
            raise ValueError(f"{self.what} {name!r} {verb} not known: use {self.known}{self.hint(name)}")

    @property
    def known(self) -> str:
        """The names as a sentence lists them."""
        *others, last = map(repr, self.meanings)
        return f"{', '.join(others)} or {last}"

    def hint(self, name: object) -> str:
        """Which name may have been meant, for the end of a message."""
        found = did_you_mean(str(name), list(self.meanings))
        return f"; {found}" if found else ""

    @property
    def described(self) -> str:
        """The names with their meanings, for a docstring or a help text."""
        return "; ".join(f"`{name}`: {meaning}" if meaning else f"`{name}`" for name, meaning in self.meanings.items())


_TABLE = {
    "materialise_algorithm": Choices(
        "algorithm",
        {
            "auto": "the same as `modular`",
            "modular": "graph algorithms close relations where rules do (Mat-Mod), other rules are evaluated seminaively",
            "seminaive": "all rules are evaluated instance by instance (Mat)",
        },
    ),
    "update_algorithm": Choices(
        "algorithm",
        {
            "auto": "chosen for each stratum, by the counters it has and what the update touches",
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
    ),
    "placement": Choices(
        "place",
        {
            "auto": "the driver as long as everything fits, then executors",
            "driver": "the memory of the driver's process",
            "pivot": "executors, a whole fixpoint in one job where a column allows it",
            "cluster": "executors, a job for every round",
        },
    ),
    "schemes": Choices(
        "schemes",
        {
            "auto": "large closures as intervals and copies of relations not at all, where that is smaller or faster",
            "plain": "every fact has a row",
        },
    ),
    "counters": Choices(
        "counters",
        {
            "none": "",
            "nonrecursive": "instances of nonrecursive rules are counted",
            "both": "instances of all rules are counted",
        },
    ),
    "entailment": Choices("entailment", {"rdfs": "the rules of RDFS", "owl2rl": "the rules of OWL 2 RL/RDF"}),
    "equality": Choices(
        "equality",
        {
            "auto": "equal terms have a representative where the rules allow it, else by the axioms of equality",
            "rewrite": "equal terms have a representative",
            "axiomatise": "by the axioms of equality",
            "off": "owl:sameAs is a property like any other",
        },
    ),
    "inconsistency": Choices(
        "inconsistency",
        {"refuse": "it is an error", "allow": "it is a fact of the relation `inconsistent`"},
    ),
    "facts": Choices("facts", {"all": "", "asserted": "explicit facts", "inferred": "facts that are only derived"}),
    "answer_format": Choices("format", dict.fromkeys(get_args(AnswerFormat), "")),
}

MATERIALISE_ALGORITHMS = _TABLE["materialise_algorithm"]
UPDATE_ALGORITHMS = _TABLE["update_algorithm"]
PLACEMENTS = _TABLE["placement"]
SCHEME_POLICIES = _TABLE["schemes"]
KEPT_COUNTERS = _TABLE["counters"]
ENTAILMENTS = _TABLE["entailment"]
EQUALITY_MODES = _TABLE["equality"]
INCONSISTENCIES = _TABLE["inconsistency"]
WHICH = _TABLE["facts"]
ANSWER_FORMATS = _TABLE["answer_format"]

_PLACEHOLDER = re.compile("{(" + "|".join(_TABLE) + ")}")

_F = TypeVar("_F", bound=Callable[..., Any])


def documented(function: _F) -> _F:
    """Fills the names of choices and their meanings into a docstring."""
    if function.__doc__ is not None:
        function.__doc__ = _PLACEHOLDER.sub(lambda found: _TABLE[found[1]].described, function.__doc__)
    return function
