"""Given facts into buckets: Arrow files, which tasks or the driver have written, become files of a set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from evermat.language.model import Relation
from evermat.spark.engine.fact_sets import FactSet
from evermat.spark.engine.job_runner import Job
from evermat.spark.engine.state import Workshop
from evermat.spark.engine.tasks.derive import Given
from evermat.spark.engine.tasks.merge import Target
from evermat.spark.engine.tasks.set_expressions import ARRIVED
from evermat.spark.engine.tasks.worker import Channel


def load(
    workshop: Workshop, relations: Mapping[str, Relation], given: Mapping[str, Sequence[Path]], what: str
) -> FactSet:
    """A set of the facts in some files, by relation."""
    loaded = FactSet(what, workshop)
    names = [name for name, files in given.items() if files]
    if names:
        shapes = workshop.shapes
        job = Job(f"load {', '.join(names)[:60]}", [Target(name, shapes[name], ARRIVED) for name in names])
        job.channels = [Channel(shapes[name], number) for number, name in enumerate(names)]
        job.given = [Given(str(p), relations[name], number) for number, name in enumerate(names) for p in given[name]]
        job.tasks = min(len(job.given), workshop.cluster.buckets)
        for name, found in zip(names, workshop.run(job), strict=True):
            loaded.append(name, found.facts)
    return loaded
