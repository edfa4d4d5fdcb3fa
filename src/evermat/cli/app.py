"""The commands. Each imports what it needs when it runs, so that `--help` is quick."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from evermat import __version__
from evermat.cli.options import (
    AnswerFormatOption,
    Base,
    ChangesFormatOption,
    Conf,
    EqualityOption,
    IgnoreImports,
    LimitFacts,
    LimitOptions,
    LimitRounds,
    LimitSeconds,
    Master,
    Memory,
    OntologyFiles,
    OptionalProgram,
    PlacementOption,
    Representatives,
    RuleSet,
    RunAlgorithm,
    RunEngine,
    SchemesOption,
    ScratchFolder,
    SkipMalformed,
    StateEngine,
    StateFolder,
    StatsFile,
    UpdateAlgorithmOption,
    WhichTriples,
    parse_settings,
    parse_size,
)
from evermat.core import EngineName, PhaseTimer

if TYPE_CHECKING:
    from evermat.runtime import SparkOptions


class ClosedPipe(BaseException):
    """The reader of the output has closed it."""


class Commands(TyperGroup):
    """All commands. Without it, Typer ends the process with code 1 if a pipe is closed."""

    def invoke(self, ctx: Any) -> Any:
        """Runs a command and flushes its output."""
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
    facts: Annotated[
        str, typer.Option("-F", "--facts", metavar="DIR", help="Directory of the inputs; may be a URI.")
    ] = ".",
    output: Annotated[str, typer.Option("-D", "--output", metavar="DIR", help="Directory for the outputs.")] = ".",
    engine: RunEngine = "spark",
    master: Master = None,
    place: PlacementOption = "auto",
    conf: Conf = None,
    scratch: ScratchFolder = None,
    algorithm: RunAlgorithm = "auto",
    schemes: SchemesOption = "auto",
    rdf: Annotated[
        list[str] | None, typer.Option(metavar="FILE…", help="RDF data: .nt, .nq, .ttl, .trig, .rdf, .owl, also .gz.")
    ] = None,
    ontology: OntologyFiles = None,
    entailment: RuleSet = None,
    trivial: Annotated[bool, typer.Option("--trivial", help="Also derive trivial consequences: x sameAs x, …")] = False,
    equality: EqualityOption = None,
    allow_inconsistency: Annotated[
        bool, typer.Option("--allow-inconsistency", help="Report inconsistencies in the relation `inconsistent`.")
    ] = False,
    ignore_imports: IgnoreImports = False,
    base: Base = None,
    skip_malformed: SkipMalformed = False,
    export: Annotated[Path | None, typer.Option(metavar="FILE", help="Write all triples to an RDF file.")] = None,
    export_facts: WhichTriples = "all",
    representatives: Representatives = False,
    memory: Memory = "",
    state: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Save all facts in a state directory, for later updates.")
    ] = None,
    stats: StatsFile = None,
    limit_rounds: LimitRounds = None,
    limit_facts: LimitFacts = None,
    limit_seconds: LimitSeconds = None,
) -> None:
    """Materialise a program: read its inputs, derive all consequences, write its outputs."""
    timer = _started_timer()
    with timer.during("start"):
        from evermat.cli.ontology import read_program
        from evermat.cli.run import Targets, run_program

        size, spark = _resources(engine, master, memory, conf, scratch)
        checked = read_program(
            program,
            rdf=bool(rdf),
            ontology=ontology or (),
            entailment=entailment,
            trivial=trivial,
            equality=equality,
            inconsistency="allow" if allow_inconsistency else "refuse",
            base=base,
            ignore_imports=ignore_imports,
        )
        targets = Targets.of(output, checked, export, export_facts, state, stats, representatives=representatives)
    run_program(
        checked,
        targets,
        spark,
        timer,
        inputs=facts,
        rdf=rdf or (),
        base=base,
        skip_malformed=skip_malformed,
        algorithm=algorithm,
        schemes=schemes,
        place=place,
        limits=LimitOptions(limit_rounds, limit_facts, limit_seconds, size),
    )


@app.command()
def check(
    program: OptionalProgram = None,
    ontology: OntologyFiles = None,
    entailment: RuleSet = None,
) -> None:
    """Show types, strata, recursive and nonrecursive rules, modules, storage schemes and plans of a program."""
    from evermat.cli.ontology import read_program

    sys.stdout.write(read_program(program, ontology=ontology or (), entailment=entailment).describe())


@app.command()
def update(
    state: StateFolder,
    changes: Annotated[
        list[Path],
        typer.Argument(metavar="CHANGES…", help="Change files, `-` for standard input; each is one update."),
    ],
    algorithm: UpdateAlgorithmOption = "auto",
    engine: StateEngine = "memory",
    master: Master = None,
    conf: Conf = None,
    scratch: ScratchFolder = None,
    base: Base = None,
    skip_malformed: SkipMalformed = False,
    changes_out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the changes of every relation, derived facts included.")
    ] = None,
    memory: Memory = "",
    stats: StatsFile = None,
    limit_rounds: LimitRounds = None,
    limit_facts: LimitFacts = None,
    limit_seconds: LimitSeconds = None,
) -> None:
    """Insert and delete facts of a state, and update all consequences."""
    timer = _started_timer()
    with timer.during("start"):
        from evermat.cli.state import update_state
        from evermat.runtime import check_update_algorithm

        check_update_algorithm(algorithm)
        size, spark = _resources(engine, master, memory, conf, scratch)
        limits = LimitOptions(limit_rounds, limit_facts, limit_seconds, size)
    update_state(
        state, changes, algorithm, limits, timer, changes_out, stats, spark, base, skip_malformed=skip_malformed
    )


@app.command()
def stream(
    state: StateFolder,
    source: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="Directory of the change files, which become updates in the order of their names."
        ),
    ],
    marking: Annotated[
        bool | None,
        typer.Option(
            "--marking/--no-marking",
            help="Look ahead at the next update: wherever that saves rule applications, or never; default: where it saves time.",
        ),
    ] = None,
    coalesce: Annotated[bool, typer.Option("--coalesce", help="Make one version of all waiting files.")] = False,
    once: Annotated[bool, typer.Option("--once", help="Process the existing files, and end.")] = False,
    poll: Annotated[
        float, typer.Option(min=0.001, metavar="SECONDS", help="Seconds between looks for new files.")
    ] = 0.5,
    algorithm: UpdateAlgorithmOption = "auto",
    engine: StateEngine = "memory",
    master: Master = None,
    conf: Conf = None,
    scratch: ScratchFolder = None,
    base: Base = None,
    skip_malformed: SkipMalformed = False,
    changes_out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="For each version, write a file with its changes, derived facts included."),
    ] = None,
    changes_format: ChangesFormatOption = "tsv",
    stats: Annotated[
        Path | None, typer.Option(metavar="FILE.jsonl", help="Append a line with statistics for each version.")
    ] = None,
    memory: Memory = "",
    limit_rounds: LimitRounds = None,
    limit_facts: LimitFacts = None,
    limit_seconds: LimitSeconds = None,
) -> None:
    """Follow a directory: every change file in it becomes a version of a state, exactly once."""
    timer = _started_timer()
    with timer.during("start"):
        from evermat.cli.stream import Following, stream_state
        from evermat.runtime import check_update_algorithm

        check_update_algorithm(algorithm)
        size, spark = _resources(engine, master, memory, conf, scratch)
        following = Following(
            source,
            algorithm,
            LimitOptions(limit_rounds, limit_facts, limit_seconds, size),
            marking,
            coalesce,
            once,
            poll,
            base,
            skip_malformed,
            changes_out,
            changes_format,
            stats,
        )
    stream_state(state, following, timer, spark)


@app.command()
def query(
    state: StateFolder,
    text: Annotated[
        str, typer.Argument(metavar="QUERY", help='Atoms and comparisons, such as \'path("a", x), x != "b"\'.')
    ],
    version: Annotated[int | None, typer.Option(metavar="N", help="Query an old version.")] = None,
    format_: AnswerFormatOption = "table",
    representatives: Representatives = False,
) -> None:
    """Answer a query about a state."""
    from evermat.cli.state import query_state

    query_state(state, text, version, format_, representatives=representatives)


@app.command()
def export(
    state: StateFolder,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The RDF file: .nt, .nq, .ttl, .trig, .rdf, also .gz.")],
    facts: WhichTriples = "all",
    version: Annotated[int | None, typer.Option(metavar="N", help="Export an old version.")] = None,
    representatives: Representatives = False,
) -> None:
    """Write the triples of a state to an RDF file."""
    from evermat.cli.ontology import export_state

    export_state(state, file, facts, version, representatives=representatives)


@app.command()
def translate(
    ontology: Annotated[
        list[Path],
        typer.Argument(metavar="ONTOLOGY…", help="OWL or RDFS: RDF/XML, Turtle, functional syntax, OWL/XML."),
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="RULES.dl", help="File for the rules; default: standard output."),
    ] = None,
    base: Base = None,
    ignore_imports: IgnoreImports = False,
) -> None:
    """Translate ontologies to rules, and list what rules cannot express."""
    from evermat.cli.ontology import translate_ontologies

    translate_ontologies(ontology, output, base, ignore_imports=ignore_imports)


@app.command()
def log(state: StateFolder) -> None:
    """Show the versions of a state: time, facts inserted and deleted, algorithm, seconds."""
    from evermat.cli.state import show_log

    show_log(state)


@app.command()
def vacuum(
    state: StateFolder,
    keep: Annotated[int, typer.Option(min=1, metavar="N", help="How many versions to keep.", show_default=False)],
) -> None:
    """Remove all but the newest versions of a state, and the files that only they need."""
    from evermat.cli.state import vacuum_state

    vacuum_state(state, keep)


def _resources(
    engine: EngineName, master: str | None, memory: str, conf: list[str] | None, scratch: Path | None
) -> tuple[int, SparkOptions | None]:
    """The memory that is left for this process, and how Spark is started, if it is."""
    size = parse_size(memory)
    if engine == "memory":
        return size, None
    from evermat.runtime import SparkOptions

    options = SparkOptions(master, size, parse_settings(conf or []), scratch)
    return options.process_memory, options


def _started_timer() -> PhaseTimer:
    """A timer whose phase `start` has begun with this process."""
    timer = PhaseTimer()
    timer.add("start", _seconds_since_start(), time.process_time())
    return timer


def _seconds_since_start() -> float:
    """How long this process has been running."""
    try:
        started = float(Path("/proc/self/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[19])
        uptime = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
        return uptime - started / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return time.process_time()
