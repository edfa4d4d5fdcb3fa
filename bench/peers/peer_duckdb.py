"""DuckDB: recursive SQL on tables read from the fact files.

A program is a script that leaves the result in a table or view of the result relation's name. Where
SQL's recursion cannot say the rules, the part after the line ``-- repeat`` is run again and again
until the table ``delta`` is empty: semi-naive evaluation, driven from outside.
"""

from __future__ import annotations

from bench.model import Job, Peer
from bench.peers.child import Clock, child_command, child_main, installed, read_report

COLUMNS = "abcdefgh"
REPEAT = "\n-- repeat\n"


def run(job: Job, clock: Clock) -> None:
    """Load the facts, run the script, write the result."""
    import duckdb

    db = duckdb.connect(config={"threads": job.threads})
    with clock.phase("load"):
        for path in sorted(job.facts.glob("*.facts")):
            with path.open(encoding="ascii") as file:
                width = file.readline().count("\t") + 1
            types = ", ".join(f"'{name}': 'BIGINT'" for name in COLUMNS[:width])
            db.execute(
                f'CREATE TABLE "{path.stem}" AS FROM read_csv(?, '
                f"delim = '\t', header = false, columns = {{{types}}})",
                [str(path)],
            )
    once, _, again = job.program.read_text(encoding="utf-8").partition(REPEAT)
    with clock.phase("reason"):
        db.execute(once)
        while again and db.execute("SELECT count(*) FROM delta").fetchone() != (0,):
            db.execute(again)
    with clock.phase("write"):
        db.execute(f"COPY (FROM \"{job.result}\") TO '{job.result_file}' (DELIMITER '\t', HEADER false)")


PEER = Peer(
    "duckdb",
    "sql",
    lambda: installed("duckdb"),
    lambda job: child_command(__name__, job),
    read_report,
    "recursive common table expression; points-to (w6): semi-naive loop over tables, since a "
    "plain recursive expression sees only the last round's rows",
)

if __name__ == "__main__":
    child_main(run)
