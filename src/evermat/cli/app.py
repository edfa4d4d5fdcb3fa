"""The command line. Every command imports what it needs when it runs, so that `--help` is quick."""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from evermat import __version__
from evermat.cli.block_pandas import WithoutPandas, allow_pandas
from evermat.cli.signals import Interrupted, Terminated, aftermath, catch_signals
from evermat.core import EvermatError, Problem, ProgramError, ResourceError
from evermat.core import error_catalogue as errors

if TYPE_CHECKING:
    from evermat.cli.run import SparkOptions


class ClosedPipe(BaseException):
    """Whoever read our output has had enough."""


class Commands(TyperGroup):
    """All commands. Typer would end the process with code 1 if a pipe is closed."""

    def invoke(self, ctx: Any) -> Any:
        """Runs a command and sees to it that all it says is out."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            raise ClosedPipe from None
        return result


app = typer.Typer(
    name="evermat",
    cls=Commands,
    help="A Datalog engine that keeps its answers true.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

_RDF_ENDINGS = (".nt", ".nq", ".ttl", ".trig", ".rdf", ".owl", ".xml", ".ofn", ".owx")

StateFolder = Annotated[Path, typer.Option("--state", metavar="DIR", help="The state directory.", show_default=False)]
OptionalProgram = Annotated[
    Path | None,
    typer.Argument(metavar="[PROGRAM.dl]", help="The program; not needed with an ontology or RDF.", show_default=False),
]
Ontology = Annotated[
    list[Path] | None, typer.Option(metavar="FILE…", help="An ontology: its axioms become rules, its triples facts.")
]
Master = Annotated[
    str | None, typer.Option(metavar="URL", help="Spark's master, e.g. spark://host:7077; default: local mode.")
]
Conf = Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="A setting of Spark; may be repeated.")]
ScratchFolder = Annotated[
    Path | None, typer.Option(metavar="DIR", help="For files in between; on a cluster, one that all machines share.")
]

Base = Annotated[str | None, typer.Option(metavar="IRI", help="For relative IRIs in RDF files.")]
SkipMalformed = Annotated[
    bool, typer.Option("--skip-malformed", help="Leave out malformed statements of RDF data, and count them.")
]
IgnoreImports = Annotated[
    bool, typer.Option("--ignore-imports", help="Go on if an ontology imports what is not there.")
]


class Engine(StrEnum):
    """Who reads, and where reasoning is done."""

    SPARK = "spark"
    MEMORY = "memory"


class Place(StrEnum):
    """Where strata are computed on Spark."""

    AUTO = "auto"
    DRIVER = "driver"
    PIVOT = "pivot"
    CLUSTER = "cluster"


class Algorithm(StrEnum):
    """How the materialisation is computed."""

    AUTO = "auto"
    MODULAR = "modular"
    SEMINAIVE = "seminaive"


class Format(StrEnum):
    """How the answer to a query is printed."""

    TABLE = "table"
    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"


class ChangesFormat(StrEnum):
    """How the changes of a version are written."""

    TSV = "tsv"
    JSONL = "jsonl"
    PARQUET = "parquet"


class Entailment(StrEnum):
    """Rule sets over triples."""

    RDFS = "rdfs"
    OWL2RL = "owl2rl"


RuleSet = Annotated[Entailment | None, typer.Option(help="Rules over `triple` for axioms that are in the data.")]


class Equality(StrEnum):
    """What owl:sameAs does."""

    REWRITE = "rewrite"
    AXIOMATISE = "axiomatise"
    OFF = "off"


Representatives = Annotated[
    bool, typer.Option("--representatives", help="Of terms that are equal, show only the one that stands for all.")
]


class Which(StrEnum):
    """Which facts are exported."""

    ALL = "all"
    ASSERTED = "asserted"
    INFERRED = "inferred"


class Schemes(StrEnum):
    """How relations are stored."""

    AUTO = "auto"
    PLAIN = "plain"


def _version(value: bool) -> None:
    if value:
        print(f"evermat {__version__}")
        raise typer.Exit


@app.callback()
def evermat(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """A Datalog engine that keeps its answers true."""
    del version


@app.command()
def run(
    program: OptionalProgram = None,
    facts: Annotated[str, typer.Option("-F", "--facts", metavar="DIR", help="Where inputs are; may be a URI.")] = ".",
    output: Annotated[str, typer.Option("-D", "--output", metavar="DIR", help="Where outputs go.")] = ".",
    engine: Annotated[
        Engine, typer.Option(envvar="EVERMAT_ENGINE", help="Spark, or this process alone, without a JVM.")
    ] = Engine.SPARK,
    master: Master = None,
    place: Annotated[Place, typer.Option(help="Where Spark has the rules evaluated.")] = Place.AUTO,
    conf: Conf = None,
    scratch: ScratchFolder = None,
    algorithm: Annotated[Algorithm, typer.Option(help="How consequences are computed.")] = Algorithm.AUTO,
    schemes: Annotated[Schemes, typer.Option(help="How relations are stored.")] = Schemes.AUTO,
    rdf: Annotated[
        list[str] | None, typer.Option(metavar="FILE…", help="RDF data: .nt, .nq, .ttl, .trig, .rdf, .owl, also .gz.")
    ] = None,
    ontology: Ontology = None,
    entailment: RuleSet = None,
    trivial: Annotated[bool, typer.Option("--trivial", help="Derive trivial consequences, too: x sameAs x, …")] = False,
    equality: Annotated[Equality | None, typer.Option(help="What owl:sameAs does; default: what rules need.")] = None,
    allow_inconsistency: Annotated[
        bool, typer.Option("--allow-inconsistency", help="Tell inconsistencies in the relation `inconsistent`.")
    ] = False,
    ignore_imports: IgnoreImports = False,
    base: Base = None,
    skip_malformed: SkipMalformed = False,
    export: Annotated[Path | None, typer.Option(metavar="FILE", help="Write all triples to an RDF file.")] = None,
    export_facts: Annotated[Which, typer.Option(help="Which triples to write.")] = Which.ALL,
    representatives: Representatives = False,
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Memory to use at most, e.g. 4g; default 80 % of what there is.")
    ] = "",
    state: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep all facts in a state directory, to be updated.")
    ] = None,
    stats: Annotated[Path | None, typer.Option(metavar="FILE.json", help="Write statistics to a file.")] = None,
    limit_rounds: Annotated[int | None, typer.Option(min=1, metavar="N", help="Stop after N rounds.")] = None,
    limit_facts: Annotated[int | None, typer.Option(min=1, metavar="N", help="Stop at more than N facts.")] = None,
    limit_seconds: Annotated[
        float | None, typer.Option(min=0, metavar="S", help="Stop after S seconds of reasoning.")
    ] = None,
) -> None:
    """Materialise a program: read its inputs, derive all consequences, write its outputs."""
    from evermat.core import PhaseTimer

    phases = PhaseTimer()
    phases.add("start", _seconds_since_start(), time.process_time())
    with phases.during("start"):
        from evermat.cli.ontology import Graphs, assembled
        from evermat.cli.run import Ways, run_program
        from evermat.engine.run import Limits
        from evermat.runtime.compose import Knowledge

        size, spark = _memory(memory), None
        if engine is Engine.SPARK:
            size, spark = _spark_options(master, size, conf or [], scratch, place)
        limits = Limits(limit_rounds, limit_facts, limit_seconds, size)
        knowledge = Knowledge(
            tuple(ontology or ()),
            entailment,
            trivial,
            equality,
            forbid=not allow_inconsistency,
            base=base,
            ignore_imports=ignore_imports,
            rdf=bool(rdf),
        )
        made = assembled(program, knowledge)
        checked = made.program
        graphs = Graphs.of(made, rdf or (), base, skip_malformed, export, export_facts, representatives)
    warn(checked.warnings)
    folder, ways = _output_folder(output, checked), Ways(algorithm, schemes)
    run_program(checked, facts, folder, limits, phases, stats, state, spark, ways, graphs)


@app.command()
def check(
    program: OptionalProgram = None,
    ontology: Ontology = None,
    entailment: RuleSet = None,
) -> None:
    """Show types, strata, recursive and nonrecursive rules, modules, storage schemes and plans of a program."""
    from evermat.cli.check import describe
    from evermat.cli.ontology import assembled
    from evermat.runtime.compose import Knowledge

    checked = assembled(program, Knowledge(tuple(ontology or ()), entailment)).program
    warn(checked.warnings)
    sys.stdout.write(describe(checked))


@app.command()
def update(
    state: StateFolder,
    changes: Annotated[
        list[Path],
        typer.Argument(metavar="CHANGES…", help="Files of changes, `-` for standard input; each is one update."),
    ],
    algorithm: Annotated[
        str, typer.Option(metavar="NAME", help="counting, dred, dred-c, bf, bf-c, remat, bf-eq, remat-eq or auto.")
    ] = "auto",
    engine: Annotated[
        Engine, typer.Option(help="This process, or Spark where the facts do not fit it.")
    ] = Engine.MEMORY,
    master: Master = None,
    conf: Conf = None,
    scratch: ScratchFolder = None,
    base: Base = None,
    skip_malformed: SkipMalformed = False,
    changes_out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write what changed in every relation, derived facts too.")
    ] = None,
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Memory to use at most, e.g. 4g; default 80 % of what there is.")
    ] = "",
    stats: Annotated[Path | None, typer.Option(metavar="FILE.json", help="Write statistics to a file.")] = None,
    limit_rounds: Annotated[int | None, typer.Option(min=1, metavar="N", help="Stop after N rounds.")] = None,
    limit_facts: Annotated[int | None, typer.Option(min=1, metavar="N", help="Stop at more than N facts.")] = None,
    limit_seconds: Annotated[
        float | None, typer.Option(min=0, metavar="S", help="Stop an update after S seconds of reasoning.")
    ] = None,
) -> None:
    """Insert and delete facts of a state, and make all that follows from them true again."""
    from evermat.core import PhaseTimer

    phases = PhaseTimer()
    phases.add("start", _seconds_since_start(), time.process_time())
    with phases.during("start"):
        from evermat.cli.state import update_state
        from evermat.engine.run import Limits
        from evermat.reasoning.maintain import check_algorithm

        check_algorithm(algorithm, ())
        size, spark = _memory(memory), None
        if engine is Engine.SPARK:
            size, spark = _spark_options(master, size, conf or [], scratch, Place.CLUSTER)
        limits = Limits(limit_rounds, limit_facts, limit_seconds, size)
    update_state(
        state, changes, algorithm, limits, phases, changes_out, stats, spark, base, skip_malformed=skip_malformed
    )


@app.command()
def stream(
    state: StateFolder,
    source: Annotated[
        Path,
        typer.Option(metavar="DIR", help="Where files of changes are put; taken in the order of their names."),
    ],
    marking: Annotated[
        bool | None,
        typer.Option(
            "--marking/--no-marking",
            help="Look at the next update while one is processed: wherever that saves rule applications, or never; by default where it saves time.",
        ),
    ] = None,
    coalesce: Annotated[bool, typer.Option("--coalesce", help="Make one version of all files that wait.")] = False,
    once: Annotated[bool, typer.Option("--once", help="Take what is there, and end.")] = False,
    poll: Annotated[
        float, typer.Option(min=0.001, metavar="SECONDS", help="How often to look for files if none have come.")
    ] = 0.5,
    algorithm: Annotated[
        str, typer.Option(metavar="NAME", help="counting, dred, dred-c, bf, bf-c, remat, bf-eq, remat-eq or auto.")
    ] = "auto",
    engine: Annotated[
        Engine, typer.Option(help="This process, or Spark where the facts do not fit it.")
    ] = Engine.MEMORY,
    master: Master = None,
    conf: Conf = None,
    scratch: ScratchFolder = None,
    base: Base = None,
    skip_malformed: SkipMalformed = False,
    changes_out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="For each version, write a file with what changed, derived facts too."),
    ] = None,
    changes_format: Annotated[ChangesFormat, typer.Option(help="How these files are written.")] = ChangesFormat.TSV,
    stats: Annotated[
        Path | None, typer.Option(metavar="FILE.jsonl", help="Add a line with statistics for each version.")
    ] = None,
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Memory to use at most, e.g. 4g; default 80 % of what there is.")
    ] = "",
    limit_rounds: Annotated[int | None, typer.Option(min=1, metavar="N", help="Stop after N rounds.")] = None,
    limit_facts: Annotated[int | None, typer.Option(min=1, metavar="N", help="Stop at more than N facts.")] = None,
    limit_seconds: Annotated[
        float | None, typer.Option(min=0, metavar="S", help="Stop an update after S seconds of reasoning.")
    ] = None,
) -> None:
    """Follow a folder: every file of changes that is put there becomes a version of a state, exactly once."""
    from evermat.core import PhaseTimer

    phases = PhaseTimer()
    phases.add("start", _seconds_since_start(), time.process_time())
    with phases.during("start"):
        from evermat.cli.stream import Following, stream_state
        from evermat.engine.run import Limits
        from evermat.io import RdfOptions
        from evermat.reasoning.maintain import check_algorithm

        check_algorithm(algorithm, ())
        size, spark = _memory(memory), None
        if engine is Engine.SPARK:
            size, spark = _spark_options(master, size, conf or [], scratch, Place.CLUSTER)
        following = Following(
            source,
            algorithm,
            Limits(limit_rounds, limit_facts, limit_seconds, size),
            marking,
            coalesce,
            once,
            poll,
            RdfOptions(base=base, skip=skip_malformed),
            changes_out,
            changes_format.value,
            stats,
        )
    stream_state(state, following, phases, spark)


@app.command()
def query(
    state: StateFolder,
    text: Annotated[
        str, typer.Argument(metavar="QUERY", help='Atoms and comparisons, such as \'path("a", x), x != "b"\'.')
    ],
    version: Annotated[int | None, typer.Option(metavar="N", help="Ask an old version.")] = None,
    format_: Annotated[Format, typer.Option("--format", help="How to print the answer.")] = Format.TABLE,
    representatives: Representatives = False,
) -> None:
    """Ask a state."""
    from evermat.cli.state import query_state

    query_state(state, text, version, format_.value, representatives=representatives)


@app.command()
def export(
    state: StateFolder,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to; .nt, .nq, .ttl, .trig, .rdf, also .gz.")],
    facts: Annotated[Which, typer.Option(help="Which triples to write.")] = Which.ALL,
    version: Annotated[int | None, typer.Option(metavar="N", help="Of an old version.")] = None,
    representatives: Representatives = False,
) -> None:
    """Write the triples of a state to an RDF file."""
    from evermat.cli.ontology import export_state

    export_state(state, file, facts.value, version, representatives=representatives)


@app.command()
def translate(
    ontology: Annotated[
        list[Path],
        typer.Argument(metavar="ONTOLOGY…", help="OWL or RDFS: RDF/XML, Turtle, functional syntax, OWL/XML."),
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="RULES.dl", help="Where the rules go.")
    ] = None,
    base: Base = None,
    ignore_imports: IgnoreImports = False,
) -> None:
    """Turn ontologies into rules, and list what rules cannot say."""
    from evermat.cli.ontology import translate_ontologies

    translate_ontologies(ontology, output, base, ignore_imports=ignore_imports)


@app.command()
def log(state: StateFolder) -> None:
    """Show the versions of a state: time, facts added and deleted, algorithm, seconds."""
    from evermat.cli.state import show_log

    show_log(state)


@app.command()
def vacuum(
    state: StateFolder,
    keep: Annotated[int, typer.Option(min=1, metavar="N", help="How many versions to keep.", show_default=False)],
) -> None:
    """Forget all but the newest versions of a state, and remove what only they need."""
    from evermat.cli.state import vacuum_state

    vacuum_state(state, keep)


def warn(warnings: tuple[Problem, ...]) -> None:
    """Says on stderr what is worth knowing."""
    for warning in warnings:
        print(warning.render(), file=sys.stderr, end="\n\n")


def _memory(text: str) -> int:
    """`4g`, `512M`, `1000000` in bytes; by default a share of what the machine or container allows."""
    from evermat.core import available_bytes

    if not text:
        return int(available_bytes() * 0.8)
    units = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
    digits, unit = text.lower().removesuffix("b"), 1
    if digits and digits[-1] in units:
        digits, unit = digits[:-1], units[digits[-1]]
    try:
        size = int(float(digits) * unit)
    except (ValueError, OverflowError):
        size = 0
    if size <= 0:
        what = f"`{text}` is not a size of memory: write a number with k, m, g or t behind it"
        raise ProgramError(Problem(errors.COMMAND_LINE, {"what": what}))
    return size


def _spark_options(
    master: str | None, memory: int, conf: list[str], scratch: Path | None, place: Place
) -> tuple[int, SparkOptions]:
    """The memory that is left for this process, and how Spark is started."""
    from evermat.cli.run import SparkOptions
    from evermat.spark.launch.settings import heap_share

    if (master or "").startswith("sc:"):  # Spark Connect cannot do without pandas
        allow_pandas()
    options = SparkOptions(master, memory, _settings(conf), scratch, place.value)
    return max(memory - heap_share(memory), memory // 2), options


def _output_folder(folder: str, program: Any) -> Path:
    """Where outputs go; a URI would become a folder of that name."""
    for place in (folder, *(io.path or "" for io in program.outputs)):
        if "://" in place:
            what = f"outputs are not written to `{place}`: give a folder"
            raise ProgramError(Problem(errors.COMMAND_LINE, {"what": what}))
    return Path(folder)


def _settings(given: list[str]) -> dict[str, str]:
    """`key=value` as a dictionary."""
    found = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            what = f"`--conf {text}` is not a setting: write `--conf KEY=VALUE`"
            raise ProgramError(Problem(errors.COMMAND_LINE, {"what": what}))
        found[key.strip()] = value
    return found


def _seconds_since_start() -> float:
    """How long this process has been running."""
    try:
        started = float(Path("/proc/self/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[19])
        uptime = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
        return uptime - started / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return time.process_time()


def script() -> None:
    """What runs when somebody types `evermat`: the command line in a process of its own.

    Arrow would load pandas on first use where that is installed: a third of a second for nothing, in which signals get lost. Nothing
    here needs it, and in this process there is nobody else who could.
    """
    sys.meta_path.insert(0, WithoutPandas())
    gc.set_threshold(
        100_000, 50, 50
    )  # programs are many small objects that stay: looking for garbage is rarely worth it
    main()


def main() -> None:
    """Runs the command line; errors become their text on stderr and their exit code."""
    catch_signals()
    try:
        app(args=list(_one_by_one(sys.argv[1:])))
    except EvermatError as error:
        _fail(str(error), error.exit_code)
    except MemoryError as error:
        details = {"why": str(error) or "the system has no more"}
        _fail(str(ResourceError(Problem(errors.OUT_OF_MEMORY, details))), ResourceError.exit_code)
    except OSError as error:
        details = {"path": error.filename or "<stdout>", "why": error.strerror or str(error), "rest": ""}
        _discard_stdout()
        _fail(str(ResourceError(Problem(errors.CANNOT_WRITE, details))), ResourceError.exit_code)
    except ClosedPipe:
        _discard_stdout()
        sys.exit(0)
    except Interrupted:
        _fail(f"interrupted: {aftermath()}", 130)
    except Terminated:
        _fail(f"terminated: {aftermath()}", 143)


def _one_by_one(arguments: list[str]) -> Iterator[str]:
    """The arguments with `--rdf` before each of its files: a shell makes several of `--rdf data/*.nt`."""
    option, expected = "", False  # whose files these are, and whether there must be one now
    for argument in arguments:
        if argument in ("--rdf", "--ontology"):
            option, expected = argument, True
        elif expected:
            expected = False
        elif option and argument.lower().removesuffix(".gz").endswith(_RDF_ENDINGS):
            yield option
        else:
            option = ""
        yield argument


def _discard_stdout() -> None:
    """Python would complain again when it flushes on exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(text: str, code: int) -> NoReturn:
    print(text, file=sys.stderr)
    sys.exit(code)
