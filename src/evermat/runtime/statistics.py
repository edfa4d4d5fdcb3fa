"""The statistics of a materialisation, as one JSON object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evermat.core import peak_bytes
from evermat.reasoning import MODULAR, SEMINAIVE
from evermat.runtime.engine import Engine


def materialisation_stats(engine: Engine, skipped: Mapping[str, int]) -> dict[str, Any]:
    """What was done and what it took; `skipped` are malformed statements that were left out, by file."""
    program, reading, run = engine.program, engine.snapshot(), engine.run
    facts = {name: reading.count(name) for name, relation in program.relations.items() if not relation.hidden}
    explicit = sum(map(reading.count_explicit, facts))
    algorithms = {stratum: engine.algorithm_of(stratum) for stratum in program.strata}
    return {
        "engine": engine.name,
        "algorithm": MODULAR if MODULAR in algorithms.values() else SEMINAIVE,
        "strata": [
            {
                "relations": [name for name in stratum.relations if name in facts],
                "algorithm": algorithms[stratum],
                "place": place,
                "counters": engine.counters[stratum].name.lower(),
                "reason": reason,
            }
            for stratum in program.strata
            for place, reason in [engine.placement_of(stratum)]
        ],
        "seconds": engine.timer.wall,
        "cpu_seconds": engine.timer.cpu,
        "rounds": run.rounds,
        "facts": facts,
        "explicit": explicit,
        "derived": sum(facts.values()) - explicit,
        "derivations": run.derivations,
        "undefined": engine.undefined().total(),
        "skipped": dict(skipped),
        **engine.figures(),
        "peak_rss_mb": round(peak_bytes() / 2**20, 1),
    }
