"""One materialisation while it lives: its facts come in, are updated, asked and saved, for any engine (see `engine`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.core import lazy_face

if TYPE_CHECKING:
    from evermat.runtime.answer import Answer
    from evermat.runtime.change import Change, ChangedFacts, Changes
    from evermat.runtime.change_folder import ChangeFolder
    from evermat.runtime.change_history import changes_between
    from evermat.runtime.change_source import register_source
    from evermat.runtime.compose import ProgramSources, compose_program, with_triples
    from evermat.runtime.description import describe
    from evermat.runtime.engine import Engine
    from evermat.runtime.environment import SparkOptions, announced_compilation, spark_session
    from evermat.runtime.folder_stream import FileUpdate, FolderStream, list_folder, stream_name
    from evermat.runtime.graph_objects import graph_triples, split_sources
    from evermat.runtime.ingest import read_change_files
    from evermat.runtime.inputs import FactSources
    from evermat.runtime.materialise import Options, materialise_facts
    from evermat.runtime.outputs import check_outputs
    from evermat.runtime.persistence import StateBinding, check_save, locate_state, open_state
    from evermat.runtime.pin import Pin
    from evermat.runtime.query import query_version
    from evermat.runtime.relation import Relation
    from evermat.runtime.snapshot import Readable, Snapshot
    from evermat.runtime.stream import AnyUpdate, StreamedUpdate, follow_updates
    from evermat.runtime.structured_streaming import BatchProcessing, follow_files, follow_frame
    from evermat.runtime.update import check_update_algorithm
    from evermat.runtime.versioned_engine import Opened, VersionedEngine
else:
    __getattr__, __dir__, __all__ = lazy_face(__name__)
