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
    from evermat.runtime.ingest import read_change_files
    from evermat.runtime.inputs import FactSources
    from evermat.runtime.materialise import Options, materialise_facts
    from evermat.runtime.outputs import write_outputs
    from evermat.runtime.persistence import SavedPositions, StateBinding, check_save, open_state, save_state
    from evermat.runtime.query import answer_query, query_version, stream_answer
    from evermat.runtime.rdf_export import triples_of
    from evermat.runtime.relation import Relation
    from evermat.runtime.statistics import materialisation_stats
    from evermat.runtime.stream import AnyUpdate, StreamedUpdate, follow_updates
    from evermat.runtime.structured_streaming import BatchProcessing, follow_files, follow_frame
    from evermat.runtime.update import Ahead, carry_out, check_update_algorithm
else:
    __getattr__, __dir__, __all__ = lazy_face(__name__)
