"""How a batch ends without its last receipt: cancelled, or found complete or late by a sweeper."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

from redrive import seams
from redrive.ledger.batches import closed, unknown
from redrive.ledger.countdown import ALARM, ended
from redrive.ledger.drivers.port import Mode
from redrive.ledger.states import BatchState, State
from redrive.ledger.steps import Program, Rows, Statement, Step
from redrive.ledger.transaction import framed
from redrive.ledger.values import checked_key, listed, text

SWEEP_SECONDS: Final = 30.0
"""How often a sweeper looks at a batch that is open, or cancelled with members under way."""
_SLICE: Final = 1_000


def cancel(dialect: str, mode: Mode, key: str) -> Program:
    """Cancel the batch and its members that are neither completed nor under way; answers how many."""
    checked_key(dialect, key, "batch key")
    return framed(dialect, mode, _cancel(dialect, key), read_committed=True)


def sweep(dialect: str, mode: Mode, pause_seconds: float) -> Program:
    """Look at the batch that is due, if any; answers its key (None when none was), having completed it,
    counted it, planned the job for its missed deadline, or cancelled what was under way."""
    return framed(dialect, mode, _sweep(int(pause_seconds * 1000)), read_committed=True)


def _cancel(dialect: str, key: str) -> Generator[Step, Any, int]:
    batch = checked_key(dialect, key)
    known: Rows = yield Statement("batch_get", {"batch": batch})
    if not known.rows:
        raise unknown(key)
    done: Rows = yield Statement("batch_cancel", {"batch": batch, "now_ms": seams.wall_ms()})
    if done.touched != 1:
        known = yield Statement("batch_get", {"batch": batch})
        state = int(known.rows[0][1])
        if state != BatchState.CANCELLED:
            raise closed(key, state, "cannot be cancelled")
    window = known.rows[0][6]
    if window is not None:
        values = {"window": window, "batch": batch, "now_ms": seams.wall_ms()}
        yield Statement("window_detach", values)
    return (yield from _cancel_members(batch, int(SWEEP_SECONDS * 1000)))


def _cancel_members(batch: Any, pause_ms: int) -> Generator[Step, Any, int]:
    """Cancel the members that nobody completes right now, and note whether a sweeper must come back for the
    others."""
    count = 0
    after: Any = b"" if isinstance(batch, bytes) else ""
    while True:
        some: Rows = yield Statement(
            "members_cancel_choose", {"batch": batch, "after": after, "limit": _SLICE}
        )
        keys = [text(row[0]) for row in some.rows]
        if keys:
            answer: Rows = yield Statement(
                "members_cancel", {"keys": listed(keys), "now_ms": seams.wall_ms()}
            )
            count += answer.touched
            after = some.rows[-1][0]
        if len(keys) < _SLICE:
            break
    counts = yield from _counts(batch)
    left = sum(counts.get(state, 0) for state in (State.PLANNED, State.ACCEPTED, State.ISOLATED))
    yield _swept(batch, counts, left, pause_ms if left else None)
    return count


def _counts(batch: Any) -> Generator[Step, Any, dict[State, int]]:
    answer: Rows = yield Statement("batch_counts", {"batch": batch})
    return {State(int(state)): int(count) for state, count in answer.rows}


def _swept(batch: Any, counts: dict[State, int], open_members: int, pause_ms: int | None) -> Statement:
    values = {"batch": batch, "members": sum(counts.values()), "open_members": open_members}
    return Statement("sweep_done", {**values, "pause_ms": pause_ms})


def _sweep(pause_ms: int) -> Generator[Step, Any, str | None]:
    """What is counted while the batch is locked is exact: who counted down has committed, and who has not yet
    is open in this transaction's eyes."""
    due: Rows = yield Statement("sweep_due", {})
    if not due.rows:
        return None
    batch, state, alarm, window, start_us, end_us = due.rows[0]
    key: str = text(batch)
    if int(state) == BatchState.CANCELLED:
        yield from _cancel_members(batch, pause_ms)
        return key
    counts = yield from _counts(batch)
    open_members = sum(counts.values()) - counts.get(State.COMPLETED, 0)
    yield _swept(batch, counts, open_members, pause_ms)
    if open_members == 0:
        yield from ended(batch, window, start_us, end_us)
    elif alarm:
        now = {"batch": batch, "now_ms": seams.wall_ms()}
        yield Statement("alarm_given", now)
        yield Statement("follow_up", {"batch": batch, "kind": ALARM})
    return key
