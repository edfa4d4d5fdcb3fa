"""Evermat: a Datalog engine that keeps its answers true.

>>> import evermat
>>> program = evermat.Program.parse('''
...     .decl edge(x:number, y:number)
...     .decl path(x:number, y:number)
...     path(x, y) :- edge(x, y).
...     path(x, z) :- path(x, y), edge(y, z).
... ''')
>>> len(program.strata)
2
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it for the one of `typing`, whose import takes longer than all of this

__version__ = "0.1.0"
__all__ = [
    "Answer",
    "AnswerFormat",
    "AnyUpdate",
    "ArgumentError",
    "Change",
    "ChangedFacts",
    "Changes",
    "DataError",
    "Entailment",
    "EqualityMode",
    "EvermatError",
    "FolderStream",
    "Inconsistency",
    "KeptCounters",
    "LimitError",
    "Materialisation",
    "MaterialiseAlgorithm",
    "PhaseTimer",
    "Placement",
    "Problem",
    "Program",
    "ProgramError",
    "ProgramOptions",
    "Relation",
    "ResourceError",
    "SandboxError",
    "SavedPositions",
    "SchemePolicy",
    "Snapshot",
    "StateError",
    "StreamedUpdate",
    "Term",
    "Translation",
    "UnknownRelationError",
    "UpdateAlgorithm",
    "Version",
    "Which",
    "blank_node",
    "changes",
    "iri",
    "literal",
    "migrate",
    "open",
    "query",
    "register_source",
    "translate",
    "vacuum",
    "versions",
]

if TYPE_CHECKING:
    from evermat.api import (
        Materialisation,
        Program,
        ProgramOptions,
        blank_node,
        changes,
        iri,
        literal,
        migrate,
        open,  # noqa: A004
        query,
        translate,
        vacuum,
        versions,
    )
    from evermat.core import (
        AnswerFormat,
        ArgumentError,
        DataError,
        Entailment,
        EqualityMode,
        EvermatError,
        Inconsistency,
        KeptCounters,
        LimitError,
        MaterialiseAlgorithm,
        PhaseTimer,
        Placement,
        Problem,
        ProgramError,
        ResourceError,
        SandboxError,
        SavedPositions,
        SchemePolicy,
        StateError,
        UnknownRelationError,
        UpdateAlgorithm,
        Which,
    )
    from evermat.language import Term
    from evermat.owl import Translation
    from evermat.runtime import (
        Answer,
        AnyUpdate,
        Change,
        ChangedFacts,
        Changes,
        FolderStream,
        Relation,
        Snapshot,
        StreamedUpdate,
        register_source,
    )
    from evermat.store import Version
else:
    # The command line handles signals as soon as this module is imported: it must import nothing itself.
    def __getattr__(name: str) -> object:
        _load()
        return __getattr__(name)

    def __dir__() -> list[str]:
        _load()
        return __dir__()

    def _load() -> None:
        from evermat.core import lazy_face  # noqa: PLC0415

        globals()["__getattr__"], globals()["__dir__"], _ = lazy_face(__name__)
