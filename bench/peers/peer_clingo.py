"""clingo's grounder, through its Python package: for Datalog, grounding is the whole evaluation."""

from __future__ import annotations

from bench.model import Job, Peer
from bench.peers.child import Clock, child_command, child_main, installed, read_report


def run(job: Job, clock: Clock) -> None:
    """Translate the facts to rules without bodies, ground, write the atoms of the result."""
    import clingo

    control = clingo.Control(["--warn=none"])
    with clock.phase("load"):
        control.add("base", [], job.program.read_text(encoding="utf-8"))
        for path in sorted(job.facts.glob("*.facts")):
            predicate = path.stem.lower()
            with path.open(encoding="ascii") as file:
                rows = (line.rstrip("\n").replace("\t", ",") for line in file)
                control.add("base", [], "".join(f"{predicate}({row}).\n" for row in rows))
    with clock.phase("reason"):
        control.ground([("base", [])])
    with clock.phase("write"), job.result_file.open("w", encoding="ascii") as file:
        predicate = job.result.lower()
        begin = len(predicate) + 1
        for signature, arity, positive in control.symbolic_atoms.signatures:
            if signature == predicate:
                for atom in control.symbolic_atoms.by_signature(signature, arity, positive):
                    file.write(str(atom.symbol)[begin:-1].replace(",", "\t") + "\n")


PEER = Peer(
    "clingo",
    "clingo",
    lambda: installed("clingo"),
    lambda job: child_command(__name__, job),
    read_report,
    "grounding; always one thread",
)

if __name__ == "__main__":
    child_main(run)
