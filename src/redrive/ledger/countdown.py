"""The end of a batch: the locked decrement, and what the one that reaches 0 plans with it.

Lock order, everywhere: the jobs, then their batch, then its window.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

from redrive import seams
from redrive.ledger.states import BatchState
from redrive.ledger.steps import Control, Rows, Statement, Step

THEN: Final = 0
ALARM: Final = 1


def counted(batch: Any) -> Generator[Step, Any, None]:
    """The last statements of a member's completion: count it, and end the batch when it was the last one.

    Which members are completed is in their rows, whose receipts are taken once: nothing is counted twice,
    whatever is delivered, redriven or published again.
    """
    yield (Control.BOUND,)
    values = {"batch": batch, "now_ms": seams.wall_ms()}
    left: Rows = yield Statement("batch_countdown", values)
    if left.rows:  # none: somebody deleted the batch
        state, open_members, window, start_us, end_us = left.rows[0]
        if int(state) == BatchState.OPEN and int(open_members) <= 0:
            yield from ended(batch, window, start_us, end_us)
    yield (Control.RESTORE,)


def ended(batch: Any, window: Any, start_us: Any, end_us: Any) -> Generator[Step, Any, bool]:
    """Complete the batch, whose row is locked: its follow-up is planned, its window moves on; whether it was
    open."""
    now_ms = seams.wall_ms()
    done: Rows = yield Statement("batch_complete", {"batch": batch, "now_ms": now_ms})
    if done.touched != 1:
        return False
    yield Statement("follow_up", {"batch": batch, "kind": THEN})
    if window is not None:
        bounds = {"window": window, "start_us": int(start_us), "end_us": int(end_us), "holder": None}
        yield Statement("window_complete", {**bounds, "batch": batch, "now_ms": now_ms})
    return True
