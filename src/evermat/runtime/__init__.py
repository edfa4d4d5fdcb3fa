"""One materialisation while it lives: its facts come in, are updated, asked and saved, for any engine (see `engine`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.core import lazy_face

if TYPE_CHECKING:
    from evermat.runtime.change import Change, ChangedFacts, Changes
    from evermat.runtime.compose import ProgramSources, compose_program, with_triples
    from evermat.runtime.description import describe
    from evermat.runtime.engine import Engine
    from evermat.runtime.environment import (
        SparkOptions,
        announced_compilation,
        describe_cluster,
        locate_scratch,
        spark_session,
    )
    from evermat.runtime.facts.graph_objects import graph_triples, split_sources
    from evermat.runtime.facts.ingest import read_change_files
    from evermat.runtime.facts.inputs import FactSources
    from evermat.runtime.installed import check_spark, default_engine
    from evermat.runtime.materialise import Options, materialise_facts
    from evermat.runtime.pin import Pin
    from evermat.runtime.query import query_version
    from evermat.runtime.relation import Relation
    from evermat.runtime.results.answer import Answer
    from evermat.runtime.results.outputs import check_outputs, check_spark_outputs, output_directory, spark_outputs
    from evermat.runtime.snapshot import Readable, Snapshot
    from evermat.runtime.states.change_history import changes_between
    from evermat.runtime.states.persistence import StateBinding, check_save, locate_state, open_state
    from evermat.runtime.streams.change_folder import ChangeFolder
    from evermat.runtime.streams.data_source import register_source
    from evermat.runtime.streams.folder_stream import FileUpdate, FolderStream, list_folder, stream_name
    from evermat.runtime.streams.stream import AnyUpdate, StreamedUpdate, follow_updates
    from evermat.runtime.streams.structured_streaming import BatchProcessing, follow_files, follow_frame
    from evermat.runtime.update import check_update_algorithm
    from evermat.runtime.versioned_engine import Opened, VersionedEngine
else:
    __getattr__, __dir__, __all__ = lazy_face(__name__)
