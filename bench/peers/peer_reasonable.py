"""reasonable, an OWL 2 RL reasoner in Rust, through its Python bindings.

It hands its result over as a list of rdflib terms, and has no other way. What that takes is told as the phase ``again``: calling
it a second time, when there is nothing left to derive.
"""

from __future__ import annotations

from bench.model import Job, Peer
from bench.peers.child import Clock, child_command, child_main, installed, read_report

WRITTEN = "closure"  # the result of jobs that are not timed, but write all triples


def run(job: Job, clock: Clock) -> None:
    """Load an ontology (the program) and data (the facts), both in Turtle, and reason."""
    import reasonable  # type: ignore[import-untyped, import-not-found, unused-ignore]

    with clock.phase("load"):
        reasoner = reasonable.PyReasoner()
        reasoner.load_file(str(job.program))
        reasoner.load_file(str(job.facts))
    with clock.phase("reason"):
        triples = reasoner.reason()
    clock.phases.extra["triples"] = len(triples)
    if job.result == WRITTEN:
        with clock.phase("again"):
            reasoner.reason()
        with job.result_file.open("w", encoding="utf-8") as file:
            file.writelines(f"{s.n3()} {p.n3()} {o.n3()} .\n" for s, p, o in triples)


PEER = Peer(
    "reasonable",
    "ttl",
    lambda: installed("reasonable"),
    lambda job: child_command(__name__, job),
    read_report,
    "its reasoning phase includes handing the result over to Python",
)

if __name__ == "__main__":
    child_main(run)
