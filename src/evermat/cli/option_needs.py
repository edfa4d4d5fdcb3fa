"""Options that need others: one that would not be honoured is an error.

Whether an option is given counts, not its value. Options that have their documented meaning also where there is nothing to do are not here:
`--representatives` without equal terms, `--limit-…`, `--poll` with `--once`, and in `evermat stream` those for RDF files, which may still come.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import evermat
from evermat.cli.command import Command
from evermat.core import wrong_argument

Parameters: TypeAlias = Mapping[str, Any]
"""The values of a command's parameters, by their names in Python."""

_ENGINE_VARIABLE = "EVERMAT_ENGINE"
_NO_SPARK = (
    "note: Spark is not installed, so this runs in memory (`pip install 'evermat[spark]'`, or `--engine memory`)"
)
_RDF = (".nt", ".nq", ".ttl", ".trig", ".jsonld", ".rdf", ".owl")


@dataclass(frozen=True, slots=True)
class Need:
    """What an option needs, for the message, and whether a command line has it."""

    what: str
    met: Callable[[Parameters], Any]


def _one_of(*names: str) -> Callable[[Parameters], Any]:
    return lambda given: any(given[name] for name in names)


def _reads_rdf(given: Parameters) -> bool:
    """Whether there may be RDF: a program is asked when it is compiled (see `check_rdf_options`), streams may always have some."""
    if "changes" in given:
        return any(map(_may_be_rdf, map(str, given["changes"])))
    return "source" in given or bool(given.get("rdf") or ("rdf" in given and given.get("program")))


SPARK = Need("`--engine spark`", lambda given: given["engine"] == "spark")
MASTER = Need("`--master`", _one_of("master"))  # of commands that have no engine
RDF = Need("RDF data: `--rdf`, an `.input` from an RDF file, or RDF change files", _reads_rdf)
RDF_OR_ONTOLOGY = Need(f"`--ontology` or {RDF.what}", lambda given: bool(given.get("ontology")) or _reads_rdf(given))
ONTOLOGY = Need("`--ontology`", _one_of("ontology"))
#: by the names of parameters in Python
NEEDS = {
    "master": SPARK,
    "conf": SPARK,
    "scratch": SPARK,
    "place": SPARK,
    "buckets": SPARK,
    "broadcast": SPARK,
    "export_facts": Need("`--export`", _one_of("export")),
    "changes_format": Need("`--changes-out`", _one_of("changes_out")),
    "trivial": Need("`--ontology`, `--entailment` or `--equality`", _one_of("ontology", "entailment", "equality")),
    "allow_inconsistency": Need("`--ontology` or `--entailment`", _one_of("ontology", "entailment")),
    "ignore_imports": ONTOLOGY,
    "base": RDF_OR_ONTOLOGY,
    "skip_malformed": RDF_OR_ONTOLOGY,
    "verbose": ONTOLOGY,
}


class CheckedCommand(Command):
    """A command that refuses options that it would not honour, and Spark where it is not installed."""

    def invoke(self, ctx: Any) -> Any:
        if ctx.params.get("engine", "spark") == "spark":
            self._settle_engine(ctx)
        for parameter in self.get_params(ctx):
            need = NEEDS.get(parameter.name or "")
            if need is SPARK and "engine" not in ctx.params:
                need = MASTER
            if need is not None and _source(ctx, parameter.name) != "DEFAULT" and not need.met(ctx.params):
                by_variable = need is SPARK and _source(ctx, "engine") == "ENVIRONMENT"
                raise _missing(parameter.opts[-1], need, f", but {_ENGINE_VARIABLE} is `memory`" if by_variable else "")
        return super().invoke(ctx)

    def _settle_engine(self, ctx: Any) -> None:
        """Where Spark is not installed, refuses it if the command line asks for it, and else uses memory."""
        from evermat.runtime import check_spark, default_engine

        wanted = [
            p for p in self.get_params(ctx) if NEEDS.get(p.name or "") is SPARK and _source(ctx, p.name) != "DEFAULT"
        ]
        source = _source(ctx, "engine") if "engine" in ctx.params else "DEFAULT"
        if source != "DEFAULT":
            check_spark(f"`{_ENGINE_VARIABLE}=spark`" if source == "ENVIRONMENT" else "`--engine spark`")
        for parameter in wanted:
            check_spark(f"`{parameter.opts[-1]}`")
        if "engine" not in ctx.params:
            return
        ctx.params["engine"] = default_engine()
        if ctx.params["engine"] == "memory":
            print(_NO_SPARK, file=sys.stderr)


def _source(ctx: Any, name: str | None) -> str:
    """Where the value of a parameter comes from, in click's words; `DEFAULT` also if it is not known."""
    source = ctx.get_parameter_source(name)
    return "DEFAULT" if source is None or source.name.startswith("DEFAULT") else str(source.name)


def _missing(option: str, need: Need, but: str = "") -> evermat.EvermatError:
    return wrong_argument(f"`{option}` needs {need.what}{but}")


def check_rdf_options(
    program: evermat.Program, *, rdf: bool, ontology: bool, base: str | None, skip_malformed: bool
) -> None:
    """Refuses options about RDF for a program that reads none."""
    inputs = (io for io in program.compiled.inputs if io.medium == "file")
    if rdf or any(_may_be_rdf(io.path) for io in inputs if io.path is not None):
        return
    if skip_malformed and not ontology:
        raise _missing("--skip-malformed", RDF_OR_ONTOLOGY)
    if base is not None and not ontology:
        raise _missing("--base", RDF_OR_ONTOLOGY)


def _may_be_rdf(path: str) -> bool:
    """Whether a path may be that of an RDF file: it has such an ending, or none, or is a pattern."""
    ending = Path(path.lower().removesuffix(".gz")).suffix
    return path != "-" and (ending in ("", *_RDF) or any(character in path for character in "*?["))
