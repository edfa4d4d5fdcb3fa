"""The RDF files of a run: each keeps its blank nodes to itself, and their triples are facts of whatever relations they belong to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from evermat.core import DataError, Problem, ProgramError, SandboxError, check_input, collected_errors
from evermat.core import error_catalogue as errors
from evermat.io.formats.registry import RdfOptions
from evermat.io.locate import input_files, is_remote
from evermat.io.read import blank_prefixes, rdf_inputs
from evermat.language import Column, Io, Relation, Type

if TYPE_CHECKING:
    import pyarrow as pa

#: What triples are before it is known which relations they belong to.
TRIPLES = Relation("triples", tuple(Column(name, Type.TERM, "term") for name in "spo"))


@dataclass(frozen=True)
class GraphFiles:
    """RDF files, and how they are read.

    `apart` is whether blank nodes come from elsewhere, too. `skipped` tells of how many malformed statements of which file were left out.
    """

    files: tuple[str, ...] = ()  # also folders, patterns and, on Spark, URIs
    options: RdfOptions = RdfOptions()  # noqa: RUF009 - it is frozen
    apart: bool = False
    blanks: Mapping[Path, str] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)

    def with_inputs(self, inputs: Iterable[Io], folder: Path) -> GraphFiles:
        """The same, knowing all other RDF files of the run: labels of blank nodes are different in all of them."""
        files = [*rdf_inputs(inputs, folder), *self._local_files()]
        blanks = blank_prefixes([*files, Path("<ontology>")] if self.apart else files)
        return replace(self, blanks=blanks)

    def _local_files(self) -> Iterator[Path]:
        """The files that are not on other machines, those of folders included."""
        for path in self.files:
            if not is_remote(path):
                yield from (ref.path for ref in input_files(Io(TRIPLES, path=path), Path()))

    def prefixes(self, inputs: Iterable[Io], folder: Path) -> dict[str, str]:
        """The prefixes that the files, and those of inputs, declare; one that stands for several namespaces is left out.

        Those of files on other machines are not known.
        """
        paths: list[Path] = []
        with suppress(DataError, SandboxError):  # reading the triples reports what is wrong with a file
            paths += rdf_inputs(inputs, folder)
            paths += self._local_files()
        if not paths:
            return {}
        from evermat.io.rdf.prefixes import common_prefixes  # noqa: PLC0415

        return common_prefixes(paths)

    def options_for(self, path: Path) -> RdfOptions:
        return replace(self.options, blank=self.blanks.get(path, ""))

    def skip(self, path: str, count: int) -> None:
        """Notes how many statements of a file were left out."""
        if count:
            self.skipped[path] = self.skipped.get(path, 0) + count

    def facts(
        self, relations: Mapping[str, Relation], triples: pa.Table | None = None
    ) -> Iterator[tuple[str, pa.Table]]:
        """The facts of all files by relation, file after file, those of some triples before them.

        Raises:
            DataError: with everything that is wrong with any of them.
            ProgramError: one is on another machine.
        """
        for uri in filter(is_remote, self.files):
            check_input(uri)
            what = f"`{uri}` is read by Spark only: use `--engine spark`"
            raise ProgramError(Problem(errors.COMMAND_LINE, {"what": what}))
        if triples is None and not self.files:
            return
        from evermat.io.rdf.read import read_triples  # noqa: PLC0415  (runs without RDF load none of it)
        from evermat.io.rdf.router import Router  # noqa: PLC0415

        router = Router.of(relations)
        if triples is not None:
            yield from router.route(triples)[0].items()
        with collected_errors() as collecting:
            for path in self._local_files():
                with collecting():
                    found = read_triples(path, self.options_for(path))
                    self.skip(str(path), found.skipped)
                    yield from router.route(found.encoded)[0].items()
