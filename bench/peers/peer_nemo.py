"""Nemo, through its Python bindings (``nemo-python``).

It reads its inputs when it needs them, so loading is part of its reasoning phase.
"""

from __future__ import annotations

import os

from bench.model import Job, Peer
from bench.peers.child import Clock, child_command, child_main, installed, read_report


def run(job: Job, clock: Clock) -> None:
    """Run the program from within the folder of facts and write the result."""
    os.environ["RAYON_NUM_THREADS"] = str(job.threads)
    import nmo_python  # type: ignore[import-untyped, import-not-found, unused-ignore]

    program = job.program.read_text(encoding="utf-8")
    result = job.result_file
    program += f'@export {job.result} :- tsv {{ resource = "{result.name}" }} .\n'
    os.chdir(job.facts)
    with clock.phase("reason"):
        engine = nmo_python.NemoEngine(nmo_python.load_string(program))
        engine.reason()
    with clock.phase("write"):
        output = nmo_python.NemoOutputManager(str(job.out), overwrite=True, gzip=False)
        engine.write_result(job.result, output)


PEER = Peer(
    "nemo",
    "nemo",
    lambda: installed("nemo-python"),
    lambda job: child_command(__name__, job),
    read_report,
    "loading is part of its reasoning phase",
)

if __name__ == "__main__":
    child_main(run)
