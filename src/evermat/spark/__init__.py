"""The data pipeline on Spark: sessions, inputs, the distributed engine, DataFrames in and out, streams.

It is imported only for a caller's SparkSession or for one of the command line. Sessions are used through the DataFrame API alone, so that Spark
Connect works as well.

| room | contents |
| --- | --- |
| `launch` | the command line's own session: Java, settings, the JVM's process |
| `input` | inputs of a program, read by tasks |
| `output` | outputs of a program, written by tasks |
| `engine`, `engine.tasks` | the algebra of fact sets over files in buckets; what its tasks do |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.core import lazy_face

if TYPE_CHECKING:
    from evermat.spark.closure_dataframe import expanded_frame
    from evermat.spark.cluster_view import cluster_report
    from evermat.spark.dataframes import (
        checked_pieces,
        create_views,
        drop_view,
        end_view,
        frame_files,
        frame_tables,
        is_dataframe,
        replace_view,
        to_frame,
    )
    from evermat.spark.engine import saved_state
    from evermat.spark.engine.connected_components import close_by_stars
    from evermat.spark.engine.fact_sets import FactSet, View
    from evermat.spark.engine.job_runner import Cluster
    from evermat.spark.engine.resources import default_buckets
    from evermat.spark.engine.scan import facts_of, holds
    from evermat.spark.engine.snapshot import Snapshot, evaluate
    from evermat.spark.engine.state import State, StratumRules
    from evermat.spark.engine.tasks.pivot_fixpoint import fits_one_task, has_pivot, saturate_by_pivot
    from evermat.spark.engine.transfer import load_files, move_state
    from evermat.spark.engine.update import Update
    from evermat.spark.input.arrow_files import ConcatenatedFacts, is_part
    from evermat.spark.input.intake import GIVEN, Intake, Room, written_facts
    from evermat.spark.input.plan import read_inputs
    from evermat.spark.input.read_task import write_facts
    from evermat.spark.jobs import is_connect, run_named
    from evermat.spark.large_changes import FEW_ROWS, changes_by_tasks
    from evermat.spark.launch.installation import has_spark, no_spark
    from evermat.spark.launch.session import session, stores_classes
    from evermat.spark.launch.settings import heap_share
    from evermat.spark.output.write import SparkOutputs
    from evermat.spark.scratch import Scratch
    from evermat.spark.sink import ChangeFrames
else:
    __getattr__, __dir__, __all__ = lazy_face(__name__)
