"""Every row of the Speed table, in its order."""

from __future__ import annotations

from bench import callers, cycles, latency, ledgers, nodes, peers, steady
from bench.rows import Row


def rows() -> dict[str, Row]:
    """By name. Two rows of one name are a mistake."""
    every = [
        *cycles.ROWS,
        *peers.ROWS,
        *callers.ROWS,
        *latency.ROWS,
        *ledgers.ROWS,
        *steady.ROWS,
        *nodes.ROWS,
    ]
    named = {row.name: row for row in every}
    assert len(named) == len(every), "two rows have one name"
    return named
