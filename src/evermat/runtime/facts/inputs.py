"""The explicit facts of a materialisation: those that the caller has, the program's inputs, RDF files, and triples of ontologies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from evermat.columns import ArrowTables, WrongTerm
from evermat.core import DataError, Problem, ProgramError, collected_errors, named_at, scheme_of
from evermat.core import error_catalogue as errors
from evermat.io import GraphFiles, check_source, input_files, local_input, read_relation
from evermat.language import Io, Program, Relation, Type, full_names, relation_names
from evermat.runtime.facts.ingest import is_dataframe, table_of
from evermat.runtime.facts.term_rows import table_fault

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from evermat.spark import Intake


@dataclass(frozen=True)
class FactSources:
    """Where the explicit facts of a materialisation come from."""

    facts: Mapping[str, Any] = field(default_factory=dict)  # by relation, as users have them
    inputs: str | None = None  # the directory, or URI, of the program's `.input`s; None if they are not to be read
    rdf: GraphFiles = field(default_factory=GraphFiles)  # files whose triples are facts
    triples: pa.Table | None = None  # of ontologies

    def reads_files(self, program: Program) -> bool:
        """Whether there is anything to read beside the caller's facts."""
        has_inputs = self.inputs is not None and bool(program.inputs)
        return has_inputs or bool(self.rdf.files) or self.triples is not None

    def named(self, program: Program) -> tuple[Program, FactSources]:
        """The program that also knows the prefixes of RDF files, and the same sources with their relations named in full.

        Prefixes of the program and of its ontologies come first; one that stands for several namespaces in the files is none.
        """
        program, sources = self._with_paths(program)
        if found := sources.prefixes(program):
            program = replace(program, prefixes={**found, **program.prefixes})
        return program, replace(sources, facts=full_names(self.facts, relation_names(program)))

    def prefixes(self, program: Program) -> dict[str, str]:
        """The prefixes of RDF files of this machine."""
        return self.rdf.prefixes(self._local_inputs(program), Path(self.inputs or ""))

    def _with_paths(self, program: Program) -> tuple[Program, FactSources]:
        """The same with paths for URIs of files of this machine, which are read like all its files."""
        folder = None if self.inputs is None else local_input(self.inputs, "inputs")
        rdf = replace(self.rdf, files=tuple(local_input(file, "triples") for file in self.rdf.files))
        if folder is not None and any(scheme_of(io.path or "") == "file" for io in program.inputs):
            inputs = tuple(
                replace(io, path=local_input(io.path, f"facts of `{io.relation.name}`")) if io.path else io
                for io in program.inputs
            )
            program = replace(program, inputs=inputs)
        return program, replace(self, inputs=folder, rdf=rdf)

    def _local_inputs(self, program: Program) -> list[Io]:
        """The inputs that are not on other machines."""
        if self.inputs is None:
            return []
        return [io for io in program.inputs if "://" not in (io.path or self.inputs)]

    def read(self, program: Program) -> dict[str, Any]:
        """All facts by relation, read by this process.

        Raises:
            ProgramError: an input needs Spark.
            DataError: with everything that is wrong with any of the inputs.
        """
        if not self.reads_files(program):
            return dict(self.facts)
        found: dict[str, list[pa.Table]] = {}
        checked_late: list[Io] = []
        folder = Path(self.inputs or "")
        inputs = () if self.inputs is None else program.inputs
        for io in inputs:
            with named_at(program.source, io.span):
                check_source(io, folder)
        files = self.rdf.with_inputs(self._local_inputs(program), folder)
        with collected_errors() as collecting:
            for io in inputs:
                needs = {"table": "a table", "jdbc": "a database", "spark": "a format of Spark's"}.get(io.medium)
                if io.medium == "file" and "://" in (io.path or str(self.inputs)):
                    needs = "a URI"
                if needs is not None:
                    details = {"name": io.relation.name, "what": needs}
                    raise ProgramError(Problem(errors.NEEDS_SPARK, details, program.source, io.span))
                with collecting(), named_at(program.source, io.span):
                    late = _checked_late(io, folder)
                    if late:
                        checked_late.append(io)
                    table = read_relation(io, folder, files.options, files.blanks, files.skipped, check_terms=not late)
                    found.setdefault(io.relation.name, []).append(table)
            with collecting():
                for name, table in files.facts(program.relations, self.triples):
                    found.setdefault(name, []).append(table)

        def locate(relation: Relation, wrong: list[WrongTerm]) -> NoReturn:
            with collected_errors() as collecting:
                for io in (io for io in checked_late if io.relation is relation):
                    with collecting():
                        read_relation(io, folder, files.options, files.blanks)
            raise DataError(table_fault(relation, one) for one in wrong)  # meanwhile the files are others

        late_names = {io.relation.name for io in checked_late}
        facts = {name: ArrowTables(tables, locate if name in late_names else None) for name, tables in found.items()}
        return self._joined(facts, program)

    def with_facts(self, facts: Mapping[str, Any]) -> FactSources:
        """The same sources with other facts of the caller's."""
        return replace(self, facts=facts)

    def read_on_spark(
        self,
        program: Program,
        session: SparkSession,
        intake: Intake,
        progress: Callable[[str], None] | None,
    ) -> dict[str, Any]:
        """All facts by relation, read as a job of Spark; see `spark.read_inputs`."""
        from evermat.spark import ConcatenatedFacts, is_part, read_inputs

        if not self.reads_files(program):
            return dict(self.facts)
        if self.inputs is None:
            program = replace(program, inputs=())
        found: dict[str, Any] = {**self.facts}
        for name, read in read_inputs(
            session,
            program,
            self.inputs or "",
            intake.scratch,
            progress=progress,
            intake=intake,
            graphs=self.rdf,
            triples=self.triples,
        ).items():
            given = self.facts.get(name, ConcatenatedFacts(()))
            if isinstance(given, ConcatenatedFacts):
                found[name] = ConcatenatedFacts([*read.parts, *given.parts])
            else:
                own = given if is_part(given) else ArrowTables([table_of(name, given, program)])
                found[name] = read.with_part(own)
        return found

    def _joined(self, read: Mapping[str, ArrowTables], program: Program) -> dict[str, Any]:
        """The caller's facts and those that were read."""
        found = {**self.facts, **read}
        for name in self.facts.keys() & read.keys():
            given = self.facts[name]
            rows = given.toArrow() if is_dataframe(given) else given
            found[name] = read[name].with_table(table_of(name, rows, program))
        return found


def _checked_late(io: Io, folder: Path) -> bool:
    """Whether terms are checked when they are encoded, each once: if files can be read again to find where one stands that is none."""
    if Type.TERM not in io.relation.types or io.medium != "file":
        return False
    return all(ref.path.is_file() and not ref.is_rdf for ref in input_files(io, folder))
