"""The options of commands: each is declared once, with its type and its help text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

import typer

from evermat.core import (
    ANSWER_FORMATS,
    CHANGES_FORMATS,
    ENGINES,
    ENTAILMENTS,
    EQUALITY_MODES,
    MATERIALISE_ALGORITHMS,
    PLACEMENTS,
    SCHEME_POLICIES,
    UPDATE_ALGORITHMS,
    WHICH,
    AnswerFormat,
    ArgumentError,
    ChangesFormat,
    Choices,
    EngineName,
    Entailment,
    EqualityMode,
    MaterialiseAlgorithm,
    Placement,
    ProgramError,
    SchemePolicy,
    UpdateAlgorithm,
    Which,
    local_path,
    wrong_argument,
)

_T = TypeVar("_T")


def _help(text: str, choices: Choices) -> str:
    """A help text that ends with the names of a choice and their meanings."""
    return f"{text} {choices.described}."


def local(what: str, name: str) -> Callable[[str], Path]:
    """How the value of an option is read that names a file or directory of this machine, and `what` is to be there."""
    return lambda text: _located(lambda: local_path(what, name, text))


def state_of(text: str) -> Any:
    """How the location of a state is read: a path, or one in a bucket."""
    from evermat.runtime import locate_state

    return _located(lambda: locate_state(text))


def output_of(text: str) -> Any:
    """How the output directory is read: a path, or a URI that Spark knows."""
    from evermat.runtime import output_directory

    return _located(lambda: output_directory(text))


def scratch_of(text: str) -> Any:
    """How the location of the scratch directory is read: a path, or one in a bucket."""
    from evermat.runtime import locate_scratch

    return _located(lambda: locate_scratch(text))


def _located(read: Callable[[], _T]) -> _T:
    """What is read, or its error as one that is no `ValueError`: Typer would wrap it."""
    try:
        return read()
    except ArgumentError as error:
        raise ProgramError(error.problems) from None


StateFolder: TypeAlias = Annotated[
    Path,
    typer.Option(
        "--state",
        metavar="DIR",
        help="The state directory, or s3://BUCKET/FOLDER.",
        show_default=False,
        parser=state_of,
    ),
]
OptionalProgram: TypeAlias = Annotated[
    Path | None,
    typer.Argument(
        metavar="[PROGRAM.dl]",
        help="The program, `-` for standard input; not needed with an ontology or RDF.",
        show_default=False,
    ),
]
OntologyFiles: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option("--ontology", metavar="FILE…", help="An ontology: its axioms become rules, its triples facts."),
]
RuleSet: TypeAlias = Annotated[
    Entailment | None,
    typer.Option("--entailment", help=_help("Add rules over `triple`, for axioms in the data.", ENTAILMENTS)),
]
EqualityOption: TypeAlias = Annotated[
    EqualityMode | None,
    typer.Option("--equality", help=_help("How to treat owl:sameAs; default: as the rules need it.", EQUALITY_MODES)),
]
Master: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="URL", help="With Spark only: its master, e.g. spark://host:7077; default: local mode."),
]
Conf: TypeAlias = Annotated[
    list[str] | None, typer.Option(metavar="KEY=VALUE", help="With Spark only: one of its settings; may be repeated.")
]
ScratchFolder: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="With Spark only: directory for temporary files, or s3://BUCKET/FOLDER; on a cluster, one that all machines share.",
        parser=scratch_of,
    ),
]
Buckets: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--buckets",
        min=1,
        metavar="N",
        help="With Spark only: parts that facts on a cluster are divided into; default: twice the cores.",
    ),
]
Broadcast: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--broadcast",
        min=1,
        metavar="N",
        help="With Spark only: facts of one relation that each task may read whole; default: 16 million.",
    ),
]
PlacementOption: TypeAlias = Annotated[
    Placement, typer.Option("--place", help=_help("With Spark only: where to evaluate rules.", PLACEMENTS))
]
SchemesOption: TypeAlias = Annotated[
    SchemePolicy, typer.Option("--schemes", help=_help("How to store relations.", SCHEME_POLICIES))
]
RunAlgorithm: TypeAlias = Annotated[
    MaterialiseAlgorithm, typer.Option("--algorithm", help=_help("How to derive consequences.", MATERIALISE_ALGORITHMS))
]
UpdateAlgorithmOption: TypeAlias = Annotated[
    UpdateAlgorithm,
    typer.Option(
        "--algorithm", metavar="NAME", parser=str, help=_help("How to maintain the facts.", UPDATE_ALGORITHMS)
    ),
]
Base: TypeAlias = Annotated[str | None, typer.Option(metavar="IRI", help="Base of relative IRIs in RDF files.")]
SkipMalformed: TypeAlias = Annotated[
    bool,
    typer.Option("--skip-malformed", help="Skip malformed statements of RDF data and ontologies, and count them."),
]
Verbose: TypeAlias = Annotated[
    bool, typer.Option("--verbose", help="List all axioms that say more than rules can, not only one of each kind.")
]
IgnoreImports: TypeAlias = Annotated[
    bool, typer.Option("--ignore-imports", help="Continue if an imported ontology is missing.")
]
Representatives: TypeAlias = Annotated[
    bool, typer.Option("--representatives", help="Show only the representative of equal terms.")
]
WhichTriples: TypeAlias = Annotated[Which, typer.Option(help=_help("Which triples to write.", WHICH))]
RunEngine: TypeAlias = Annotated[
    EngineName, typer.Option("--engine", envvar="EVERMAT_ENGINE", help=_help("What reads and reasons.", ENGINES))
]
StateEngine: TypeAlias = Annotated[
    EngineName,
    typer.Option(
        "--engine", help=_help("What holds the facts; use Spark if they do not fit into this process.", ENGINES)
    ),
]
AnswerFormatOption: TypeAlias = Annotated[
    AnswerFormat, typer.Option("--format", help=_help("How to print the answer.", ANSWER_FORMATS))
]
ChangesFormatOption: TypeAlias = Annotated[
    ChangesFormat, typer.Option("--changes-format", help=_help("Format of these files.", CHANGES_FORMATS))
]
SandboxOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--sandbox",
        help="For programs, data and states of others: read only below `-F`, write only below `-D` and `--state`; "
        "without these, only what the command line names. No URIs, no network.",
    ),
]
KeepOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--keep",
        metavar="N|AGE",
        help="Versions that the state keeps from now on: a number, or an age such as 12h or 30d; default: what it did, or 1000.",
        show_default=False,
    ),
]
Memory: TypeAlias = Annotated[
    str,
    typer.Option(
        "--memory", metavar="SIZE", help="Memory to use at most, e.g. 4g; default: 80 % of the available memory."
    ),
]
LimitRounds: TypeAlias = Annotated[int | None, typer.Option(min=1, metavar="N", help="Stop after N rounds.")]
LimitFacts: TypeAlias = Annotated[int | None, typer.Option(min=1, metavar="N", help="Stop at more than N facts.")]
LimitSeconds: TypeAlias = Annotated[float | None, typer.Option(min=0, metavar="S", help="Stop after S seconds.")]
StatsFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--stats", metavar="FILE.json", help="Write statistics to a file.", parser=local("statistics", "stats")
    ),
]


@dataclass(frozen=True)
class LimitOptions:
    """The limits of a command, named as the API names them."""

    limit_rounds: int | None = None
    limit_facts: int | None = None
    limit_seconds: float | None = None
    memory: int | None = None


def parse_size(text: str) -> int:
    """`4g`, `512M`, `1000000` in bytes, else an `ArgumentError`; by default a share of what the machine or container allows."""
    from evermat.core import available_bytes, memory_size

    return memory_size(text) if text else int(available_bytes() * 0.8)


def parse_settings(given: list[str]) -> dict[str, str]:
    """`key=value` as a dictionary; raises an `ArgumentError` for anything else."""
    found = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise wrong_argument(f"`--conf {text}` is not a setting: write `--conf KEY=VALUE`")
        found[key.strip()] = value
    return found
