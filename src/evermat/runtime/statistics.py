"""The statistics of a materialisation, as one JSON object."""

from __future__ import annotations

from typing import Any

from evermat.core import peak_bytes
from evermat.reasoning import MODULAR, SEMINAIVE
from evermat.runtime.pin import Pin


def materialisation_stats(pin: Pin) -> dict[str, Any]:
    """What was done and what it took; of a version that was opened, what it took then."""
    published, reading, program, engine = pin.published, pin.reading, pin.program, pin.engine
    if published.opened is not None:
        return published.opened
    run = engine.run
    facts = {name: reading.count(name) for name in pin.names()}
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
                "counters": published.counters[stratum].name.lower(),
                "reason": reason,
            }
            for stratum in program.strata
            for place, reason in [engine.placement_of(stratum)]
        ],
        "seconds": dict(engine.timer.wall),
        "cpu_seconds": dict(engine.timer.cpu),
        "rounds": run.rounds,
        "facts": facts,
        "explicit": explicit,
        "derived": sum(facts.values()) - explicit,
        "derivations": run.derivations,
        "undefined": sum(published.undefined.values()),
        "skipped": dict(published.skipped),
        **({"sizes": {name: size for name, size in engine.sizes.items() if name in facts}} if engine.sizes else {}),
        **engine.figures(reading),
        "peak_rss_mb": round(peak_bytes() / 2**20, 1),
    }
