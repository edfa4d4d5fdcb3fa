"""owlrl, an OWL 2 RL reasoner in Python over rdflib's graphs."""

from __future__ import annotations

from bench.model import Job, Peer
from bench.peers.child import Clock, child_command, child_main, installed, read_report
from bench.peers.peer_reasonable import WRITTEN


def run(job: Job, clock: Clock) -> None:
    """Load an ontology (the program) in Turtle and data (the facts) in N-Triples, and reason."""
    import owlrl  # type: ignore[import-untyped, import-not-found, unused-ignore]
    import rdflib

    graph = rdflib.Graph()
    with clock.phase("load"):
        graph.parse(job.program, format="turtle")
        graph.parse(job.facts, format="nt")
    with clock.phase("reason"):
        owlrl.DeductiveClosure(owlrl.OWLRL_Semantics).expand(graph)
    clock.phases.extra["triples"] = len(graph)
    if job.result == WRITTEN:
        with job.result_file.open("w", encoding="utf-8") as file:
            file.writelines(f"{s.n3()} {p.n3()} {o.n3()} .\n" for s, p, o in graph)


PEER = Peer("owlrl", "ttl", lambda: installed("owlrl"), lambda job: child_command(__name__, job), read_report)

if __name__ == "__main__":
    child_main(run)
