"""The in-memory engine: tables of integers, compiled kernels over them, and the algebra of fact sets in both.

| room | contents |
| --- | --- |
| `storage` | tables, indexes, counters, the dictionary of symbols, values as integers |
| `kernels` | compiled loops |
| `evaluation` | plans over batches of bindings; groups of rules |
| `state` | sets of facts, the state of a program, an update |
| `schemes`, `intervals` | relations that have no row for each fact |
| `graph` | the closure module, for both engines |
| `equality` | representatives of equal terms |

Names are loaded when they are first asked for: a task of Spark, or a command that only reads a program, must not pay for the whole engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.core import lazy_face

if TYPE_CHECKING:
    from evermat.columns.equality.expansion import ExpandedChange, count_names, expand_names
    from evermat.columns.equality.renaming import Ids, Renaming
    from evermat.columns.equality.rewritten_facts import RewrittenFacts, TermSchema
    from evermat.columns.equality.union_find import Assigned, Changed, UnionFind
    from evermat.columns.evaluation.aggregates import Groups, listing_plan, lists_groups
    from evermat.columns.evaluation.buffers import Buffers, EvaluationContext
    from evermat.columns.evaluation.operators import Sink
    from evermat.columns.evaluation.pipeline import Pipeline
    from evermat.columns.graph.closure_module import closure_modules
    from evermat.columns.graph.delta_reachability import Connections
    from evermat.columns.intervals.interval_reader import Reach
    from evermat.columns.intervals.interval_walk import Version, covers
    from evermat.columns.kernels.warm_up import prepare_kernels
    from evermat.columns.schemes.interval_scheme import ClosedRelation
    from evermat.columns.schemes.scheme import DeferredFacts, Leaf, Scheme, in_domain
    from evermat.columns.state import saved as saved_facts
    from evermat.columns.state.datasets import AppendedRows, Dataset, facts_in
    from evermat.columns.state.reclaim import Waste, bytes_needed, let_go, rebuilt
    from evermat.columns.state.saved import SAVED_UNSIGNED, facts_gained, saved_numbers
    from evermat.columns.state.snapshot import Scans, Snapshot, Solutions, evaluate, rows_of
    from evermat.columns.state.state import State
    from evermat.columns.state.update import Update
    from evermat.columns.state.views import Difference, Intersection, Listed, Union, View
    from evermat.columns.state.working_sets import ChangedRows
    from evermat.columns.storage.arrays import NO_ROWS, Batch, Nodes, Rows, existing_rows, grown, rows_without
    from evermat.columns.storage.counter import Counter
    from evermat.columns.storage.dictionary import Dictionary
    from evermat.columns.storage.encoding import (
        ArrowTables,
        Encodable,
        WrongTerm,
        decode_arrow,
        decode_rows,
        encode_rows,
        encode_table,
        hold_terms,
        values_at,
    )
    from evermat.columns.storage.readable_table import ReadableTable
    from evermat.columns.storage.selection import BEFORE, GAINED, KEPT, LOST, Selection
    from evermat.columns.storage.table import MATERIALISED, Table
else:
    __getattr__, __dir__, __all__ = lazy_face(__name__)
