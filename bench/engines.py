"""The engines that the benchmarks know, by name."""

from __future__ import annotations

from bench.model import Peer
from bench.peers import peer_clingo, peer_duckdb, peer_evermat, peer_nemo, peer_souffle

PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        peer_evermat.peer(options=("--schemes", "plain")),  # every fact has a row, as with the others
        peer_duckdb.PEER,
        peer_nemo.PEER,
        peer_clingo.PEER,
        peer_souffle.INTERPRETED,
        peer_souffle.COMPILED,
    )
}
