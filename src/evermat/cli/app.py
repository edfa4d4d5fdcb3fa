"""The commands. Each imports what it needs when it runs, so that `--help` is quick.

Most of the lines declare the options, which stand beside their command.
"""

# ruff: noqa: ARG001 - `Command` reads `--sandbox`
from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

import evermat
from evermat.cli import options
from evermat.cli.command import Command
from evermat.cli.option_needs import CheckedCommand, check_rdf_options
from evermat.core import EngineName, PhaseTimer

if TYPE_CHECKING:
    from evermat.runtime import SparkOptions


class ClosedPipe(BaseException):
    """The reader of the output has closed it."""


class Commands(TyperGroup):
    """All commands. Without it, Typer ends the process with code 1 if a pipe is closed."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        with _noticing_closed_pipe():  # `--help` and `--version` print
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        with _noticing_closed_pipe():
            result = super().invoke(ctx)
            sys.stdout.flush()
        return result


@contextmanager
def _noticing_closed_pipe() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise ClosedPipe from None


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
        print(f"evermat {evermat.__version__}", flush=True)
        raise typer.Exit


@app.callback()
def describe(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """A Datalog engine that keeps its answers true."""
    del version


@app.command(cls=CheckedCommand)
def run(
    program: options.OptionalProgram = None,
    facts: Annotated[
        str, typer.Option("-F", "--facts", metavar="DIR", help="Directory of the inputs; may be a URI.")
    ] = ".",
    output: Annotated[
        Any,
        typer.Option(
            "-D",
            "--output",
            metavar="DIR",
            help="Directory for the outputs; with Spark, may be a URI.",
            parser=options.output_of,
        ),
    ] = Path(),
    engine: options.RunEngine = "spark",
    master: options.Master = None,
    place: options.PlacementOption = "auto",
    conf: options.Conf = None,
    scratch: options.ScratchFolder = None,
    buckets: options.Buckets = None,
    broadcast: options.Broadcast = None,
    algorithm: options.RunAlgorithm = "auto",
    schemes: options.SchemesOption = "auto",
    rdf: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE…", help="RDF data: .nt, .nq, .ttl, .trig, .jsonld, .rdf, .owl, also .gz."),
    ] = None,
    ontology: options.OntologyFiles = None,
    entailment: options.RuleSet = None,
    trivial: Annotated[bool, typer.Option("--trivial", help="Also derive trivial consequences: x sameAs x, …")] = False,
    equality: options.EqualityOption = None,
    allow_inconsistency: Annotated[
        bool, typer.Option("--allow-inconsistency", help="Report inconsistencies in the relation `inconsistent`.")
    ] = False,
    ignore_imports: options.IgnoreImports = False,
    base: options.Base = None,
    skip_malformed: options.SkipMalformed = False,
    verbose: options.Verbose = False,
    export: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write all triples to an RDF file.", parser=options.local("an RDF file", "export")
        ),
    ] = None,
    export_facts: options.WhichTriples = "all",
    representatives: options.Representatives = False,
    memory: options.Memory = "",
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Save all facts in a state directory, for later updates.", parser=options.state_of
        ),
    ] = None,
    keep: options.KeepOption = None,
    keep_positions: Annotated[
        bool, typer.Option("--keep-positions", help="Keep how far streams have been followed in an existing state.")
    ] = False,
    reset_positions: Annotated[
        bool, typer.Option("--reset-positions", help="Forget how far streams have been followed in an existing state.")
    ] = False,
    stats: options.StatsFile = None,
    limit_rounds: options.LimitRounds = None,
    limit_facts: options.LimitFacts = None,
    limit_seconds: options.LimitSeconds = None,
    sandbox: options.SandboxOption = False,
) -> None:
    """Materialise a program: read its inputs, derive all consequences, write its outputs."""
    timer = _started_timer()
    with timer.during("start"):
        from evermat.cli.ontology import read_program
        from evermat.cli.run import Saving, run_program
        from evermat.cli.watchdog import limited

        saving = Saving.of(state, keep, keep=keep_positions, reset=reset_positions)
        size, spark = _resources(engine, master, memory, conf, scratch, buckets, broadcast)
        began = time.perf_counter()
        with limited(limit_seconds, size):
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
                skip_malformed=skip_malformed and bool(ontology),
                verbose=verbose,
            )
        check_rdf_options(checked, rdf=bool(rdf), ontology=bool(ontology), base=base, skip_malformed=skip_malformed)
    run_program(
        checked,
        spark,
        timer,
        directory=output,
        export=export,
        export_facts=export_facts,
        representatives=representatives,
        saving=saving,
        stats=stats,
        inputs=facts,
        rdf=rdf or (),
        base=base,
        skip_malformed=skip_malformed,
        algorithm=algorithm,
        schemes=schemes,
        place=place,
        limits=options.LimitOptions(limit_rounds, limit_facts, limit_seconds, size),
        spent=time.perf_counter() - began,
    )


@app.command(cls=CheckedCommand)
def check(
    program: options.OptionalProgram = None,
    ontology: options.OntologyFiles = None,
    entailment: options.RuleSet = None,
    skip_malformed: options.SkipMalformed = False,
    verbose: options.Verbose = False,
    master: options.Master = None,
    conf: options.Conf = None,
    scratch: options.ScratchFolder = None,
    buckets: options.Buckets = None,
    broadcast: options.Broadcast = None,
    memory: options.Memory = "",
    limit_seconds: options.LimitSeconds = None,
    sandbox: options.SandboxOption = False,
) -> None:
    """Show types, strata, recursive and nonrecursive rules, modules, storage schemes and plans of a program; with `--master`, what a run would use there."""
    from evermat.cli.ontology import read_program, report_skipped
    from evermat.cli.watchdog import limited

    with limited(limit_seconds, options.parse_size(memory)):
        checked = read_program(
            program, ontology=ontology or (), entailment=entailment, skip_malformed=skip_malformed, verbose=verbose
        )
        text = checked.describe()
    report_skipped(checked.skipped)
    sys.stdout.write(text)
    if master is not None:
        from evermat.cli.run import say
        from evermat.runtime import describe_cluster

        _, spark = _resources("spark", master, memory, conf, scratch, buckets, broadcast)
        assert spark is not None
        sys.stdout.flush()
        sys.stdout.write("\n" + describe_cluster(spark, say))


@app.command(cls=CheckedCommand)
def update(
    state: options.StateFolder,
    changes: Annotated[
        list[Path],
        typer.Argument(metavar="CHANGES…", help="Change files, `-` for standard input; each is one update."),
    ],
    algorithm: options.UpdateAlgorithmOption = "auto",
    engine: options.StateEngine = "memory",
    master: options.Master = None,
    conf: options.Conf = None,
    scratch: options.ScratchFolder = None,
    buckets: options.Buckets = None,
    broadcast: options.Broadcast = None,
    base: options.Base = None,
    skip_malformed: options.SkipMalformed = False,
    changes_out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the changes of every relation, derived facts included.",
            parser=options.local("a change file", "changes_out"),
        ),
    ] = None,
    keep: options.KeepOption = None,
    memory: options.Memory = "",
    stats: options.StatsFile = None,
    limit_rounds: options.LimitRounds = None,
    limit_facts: options.LimitFacts = None,
    limit_seconds: options.LimitSeconds = None,
    sandbox: options.SandboxOption = False,
) -> None:
    """Insert and delete facts of a state, and update all consequences."""
    timer = _started_timer()
    with timer.during("start"):
        from evermat.cli.state import update_state
        from evermat.runtime import check_update_algorithm

        check_update_algorithm(algorithm)
        size, spark = _resources(engine, master, memory, conf, scratch, buckets, broadcast)
        limits = options.LimitOptions(limit_rounds, limit_facts, limit_seconds, size)
    update_state(
        state, changes, algorithm, limits, timer, changes_out, stats, spark, base, keep, skip_malformed=skip_malformed
    )


@app.command(cls=CheckedCommand)
def stream(
    state: options.StateFolder,
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
    algorithm: options.UpdateAlgorithmOption = "auto",
    engine: options.StateEngine = "memory",
    master: options.Master = None,
    conf: options.Conf = None,
    scratch: options.ScratchFolder = None,
    buckets: options.Buckets = None,
    broadcast: options.Broadcast = None,
    base: options.Base = None,
    skip_malformed: options.SkipMalformed = False,
    changes_out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="For each version, write a file with its changes, derived facts included.",
            parser=options.local("the directory of change files", "changes_out"),
        ),
    ] = None,
    changes_format: options.ChangesFormatOption = "tsv",
    stats: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.jsonl",
            help="Append a line with statistics for each version.",
            parser=options.local("statistics", "stats"),
        ),
    ] = None,
    keep: options.KeepOption = None,
    memory: options.Memory = "",
    limit_rounds: options.LimitRounds = None,
    limit_facts: options.LimitFacts = None,
    limit_seconds: options.LimitSeconds = None,
    sandbox: options.SandboxOption = False,
) -> None:
    """Follow a directory: every change file in it becomes a version of a state, exactly once."""
    timer = _started_timer()
    with timer.during("start"):
        from evermat.cli.stream import Following, stream_state
        from evermat.runtime import check_update_algorithm

        check_update_algorithm(algorithm)
        size, spark = _resources(engine, master, memory, conf, scratch, buckets, broadcast)
        following = Following(
            source,
            algorithm,
            options.LimitOptions(limit_rounds, limit_facts, limit_seconds, size),
            marking,
            coalesce,
            once,
            poll,
            base,
            skip_malformed,
            changes_out,
            changes_format,
            stats,
            keep,
        )
    stream_state(state, following, timer, spark)


@app.command(cls=Command)
def query(
    state: options.StateFolder,
    text: Annotated[
        str, typer.Argument(metavar="QUERY", help='Atoms and comparisons, such as \'path("a", x), x != "b"\'.')
    ],
    version: Annotated[int | None, typer.Option(metavar="N", help="Query an old version.")] = None,
    format_: options.AnswerFormatOption = "table",
    representatives: options.Representatives = False,
    memory: options.Memory = "",
    limit_seconds: options.LimitSeconds = None,
    sandbox: options.SandboxOption = False,
) -> None:
    """Answer a query about a state."""
    from evermat.cli.run import report_undefined, say
    from evermat.cli.watchdog import limited
    from evermat.runtime import announced_compilation

    with limited(limit_seconds, options.parse_size(memory)):
        with announced_compilation(say):
            answer = evermat.query(state, text, version, representatives=representatives)
        answer.write(sys.stdout.buffer, format_)
    if answer.undefined:
        report_undefined("<query>", answer.undefined)


@app.command(cls=Command)
def export(
    state: options.StateFolder,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="The RDF file: .nt, .nq, .ttl, .trig, .jsonld, .rdf, also .gz.",
            parser=options.local("an RDF file", "file"),
        ),
    ],
    facts: options.WhichTriples = "all",
    version: Annotated[int | None, typer.Option(metavar="N", help="Export an old version.")] = None,
    representatives: options.Representatives = False,
    memory: options.Memory = "",
    limit_seconds: options.LimitSeconds = None,
    sandbox: options.SandboxOption = False,
) -> None:
    """Write the triples of a state to an RDF file."""
    from evermat.cli.ontology import report_left_out
    from evermat.cli.watchdog import limited

    with limited(limit_seconds, options.parse_size(memory)), evermat.open(state, version) as opened:
        written = opened.export(file, facts, representatives=representatives)
    report_left_out(file, written.left_out)
    print(f"{written.written:,} triples", file=sys.stderr)


@app.command(cls=Command)
def translate(
    ontology: Annotated[
        list[Path],
        typer.Argument(metavar="ONTOLOGY…", help="OWL or RDFS: RDF/XML, Turtle, JSON-LD, functional syntax, OWL/XML."),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="RULES.dl",
            help="File for the rules; default: standard output.",
            parser=options.local("a translation", "output"),
        ),
    ] = None,
    base: options.Base = None,
    ignore_imports: options.IgnoreImports = False,
    skip_malformed: options.SkipMalformed = False,
    verbose: options.Verbose = False,
    memory: options.Memory = "",
    limit_seconds: options.LimitSeconds = None,
    sandbox: options.SandboxOption = False,
) -> None:
    """Translate ontologies to rules, and list what rules cannot express."""
    from evermat.cli.ontology import report_notes, report_skipped, report_warnings
    from evermat.cli.watchdog import limited

    with limited(limit_seconds, options.parse_size(memory)):
        translation = evermat.translate(
            ontology, base=base, ignore_imports=ignore_imports, skip_malformed=skip_malformed
        )
        text = translation.text(facts=True) if output is None else ""
        if output is not None:
            translation.write(output)
    sys.stdout.write(text)
    report_notes(translation, verbose=verbose)
    report_warnings(translation.warnings)
    report_skipped(translation.skipped)


@app.command(cls=Command)
def log(
    state: options.StateFolder,
    memory: options.Memory = "",
    limit_seconds: options.LimitSeconds = None,
    sandbox: options.SandboxOption = False,
) -> None:
    """Show the versions of a state: time, facts inserted and deleted, algorithm, seconds."""
    from evermat.cli.state import show_log
    from evermat.cli.watchdog import limited

    with limited(limit_seconds, options.parse_size(memory)):
        show_log(state)


@app.command(cls=Command)
def vacuum(
    state: options.StateFolder,
    keep: Annotated[
        str,
        typer.Option(
            metavar="N|AGE", help="Versions to keep: a number, or an age such as 12h or 30d.", show_default=False
        ),
    ],
    sandbox: options.SandboxOption = False,
) -> None:
    """Remove old versions of a state, and the files that only they need."""
    files, size = evermat.vacuum(state, keep)
    print(f"{files:,} files with {size:,} bytes removed", file=sys.stderr)


@app.command(cls=Command)
def migrate(state: options.StateFolder, sandbox: options.SandboxOption = False) -> None:
    """Rewrite a state in the newest format, with all versions that it keeps; the first write to it does the same."""
    number = evermat.migrate(state)
    print(f"the state has the format {number}", file=sys.stderr)


def _resources(
    engine: EngineName,
    master: str | None,
    memory: str,
    conf: list[str] | None,
    scratch: Path | None,
    buckets: int | None,
    broadcast: int | None,
) -> tuple[int, SparkOptions | None]:
    """The memory that is left for this process, and how Spark is started, if it is."""
    size = options.parse_size(memory)
    if engine == "memory":
        return size, None
    from evermat.runtime import SparkOptions

    spark = SparkOptions(master, size, options.parse_settings(conf or []), scratch, buckets, broadcast)
    return spark.process_memory, spark


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
