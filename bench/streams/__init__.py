"""Streams of updates, with and without a look at the next update: ``python -m bench.streams [--quick] [--only SECTION …]``.

- `trans`, `seq`: the programs and streams of tables 1 and 2 of *Backward/Forward with marking for update streams*, 50 updates of 10 to 80 facts each.
- `map`: its map program (table 3) over generated roads: what is near a car that drives along a track comes and goes.
- `shares`: copies and a join, against the size of updates and the share of what they delete that was inserted just before.
- `latency`: a policy of a million facts, updated by 50 facts inserted and 50 deleted at a time, in memory and with a state directory.
- `structured`: the same, where the updates are the batches of a query of Structured Streaming.
- `arrival`: latency and throughput against the size of updates, and latency against the rate at which they arrive; `docs/streams.svg` is made of it.

The first three count rule instances, and compare them with those that the paper tells and with those of `paper.py`, which is its Algorithm 1 to the letter. The
number of facts after every update must be the one that is expected; it is known for the streams in the folder that `--data` or the variable EVERMAT_DATA names.
Without that folder streams of the same shape are drawn, and `paper.py` counts. The other sections compare the facts after the last update with those
that are derived afresh. Figures of a wrong result are not told.

Each measurement is a process of its own. What takes longer than `--limit` seconds is given up, and told as such.
"""
