"""Facts from tasks for the driver: Arrow files, which `read_task` has written, become batches of columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from evermat.columns import ArrowTables, Encodable, encode_table
from evermat.core import Problem, ResourceError
from evermat.core import error_catalogue as errors
from evermat.language import Relation
from evermat.spark.input.read_task import Outcome, write_facts

if TYPE_CHECKING:
    from evermat.columns import Batch, Dictionary


class ConcatenatedFacts(Encodable):
    """The facts of a relation from several sources."""

    def __init__(self, parts: Sequence[ArrowTables | ArrowFileFacts]) -> None:
        self.parts = parts

    def with_table(self, table: pa.Table) -> ConcatenatedFacts:
        return ConcatenatedFacts([*self.parts, ArrowTables([table])])

    @property
    def rows(self) -> int:
        return sum(
            part.rows if isinstance(part, ArrowFileFacts) else sum(table.num_rows for table in part.tables)
            for part in self.parts
        )

    def written(self, folder: Path) -> list[Path]:
        """Files with the facts, as tasks write them: facts of tables are written into a folder."""
        files: list[Path] = []
        for part in self.parts:
            if isinstance(part, ArrowFileFacts):
                files += part.files
            else:
                for table in part.tables:
                    files.append(folder / f"{len(files)}.arrow")
                    write_facts(table, files[-1])
        return files

    def batches(self, relation: Relation, dictionary: Dictionary) -> Iterator[Batch]:
        for part in self.parts:
            yield from part.batches(relation, dictionary)


class ArrowFileFacts(Encodable):
    """The facts of a relation in files, in their order."""

    def __init__(self, files: Sequence[Path], rows: int) -> None:
        self.files, self.rows = files, rows

    def batches(self, relation: Relation, dictionary: Dictionary) -> Iterator[Batch]:
        """Yields the facts and deletes each file that has been read; raises an error if facts are missing."""
        seen = 0
        for file in self.files:
            with pa.memory_map(str(file)) as source:
                reader = pa.ipc.open_file(source)
                for number in range(reader.num_record_batches):
                    facts = reader.get_batch(number)
                    seen += facts.num_rows
                    yield encode_table(facts, relation, dictionary)
            file.unlink()
        if seen != self.rows:
            why = f"{self.rows:,} facts of `{relation.name}` were written, and {seen:,} came back"
            raise ResourceError(Problem(errors.SPARK_FAILED, {"what": "exchange facts", "why": why}))
        dictionary.forget_arrow()


def exchanged(outcomes: Sequence[Outcome]) -> ArrowFileFacts:
    """The facts that tasks have written."""
    return ArrowFileFacts([Path(outcome.file) for outcome in outcomes], sum(outcome.rows for outcome in outcomes))
