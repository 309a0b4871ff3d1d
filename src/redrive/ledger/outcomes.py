"""How deliveries ended: the attempt rows, the gaps between them, and outcomes that are not final."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from redrive import seams
from redrive.domain import limits
from redrive.domain.fingerprint import ErrorInfo, clean_text
from redrive.ledger.drivers.port import Mode
from redrive.ledger.records import Delivered
from redrive.ledger.states import State
from redrive.ledger.steps import Program, Statement, Step
from redrive.ledger.transaction import framed
from redrive.ledger.values import checked_key

GAP_ROWS_MAX = 1_000
"""At most this many deliveries before one are named `unrecorded`; older ones stay unnamed."""

_WORD_BYTES_MAX = limits.KEY_BYTES_MAX


def failed(
    dialect: str, mode: Mode, delivery: Delivered, outcome: str, error: ErrorInfo | None, isolated: bool
) -> Program:
    """Record that ``delivery`` ended without its effect, and where the job stands now; answers None."""
    return framed(dialect, mode, _failed(dialect, delivery, outcome, error, isolated))


def _failed(
    dialect: str, delivery: Delivered, outcome: str, error: ErrorInfo | None, isolated: bool
) -> Generator[Step, Any, None]:
    values = attempt_values(dialect, delivery, outcome, error, getattr(delivery, "started_at_ms", None))
    state = State.ISOLATED if isolated else State.ACCEPTED
    yield Statement("outcome", {**values, "state": int(state), "now_ms": values["ended_at_ms"]})
    yield from gaps(dialect, delivery)
    yield Statement("attempt", values)


def gaps(dialect: str, delivery: Delivered) -> Generator[Step, Any, None]:
    """Name the deliveries before this one that have no row: `lost` as the queue says, others `unrecorded`."""
    last = delivery.delivery - 1
    if last < 1:
        return
    yield Statement(
        "gaps",
        {
            "job_key": checked_key(dialect, delivery.job_key),
            "message_id": _word(delivery.message_id),
            "generation": delivery.generation,
            "queue": _word(delivery.queue),
            "first": max(1, last - GAP_ROWS_MAX + 1),
            "last": last,
            "last_outcome": "lost" if delivery.previous == "lost" else "unrecorded",
            "now_ms": seams.wall_ms(),
        },
    )


def attempt_values(
    dialect: str, delivery: Delivered, outcome: str, error: ErrorInfo | None, started_ms: int | None
) -> dict[str, Any]:
    """The columns of an attempt row. Nothing in them can make the store refuse it."""
    room = limits.ERROR_BYTES_MAX // 2
    return {
        "job_key": checked_key(dialect, delivery.job_key),
        "message_id": _word(delivery.message_id),
        "delivery": delivery.delivery,
        "generation": delivery.generation,
        "attempt": delivery.attempt,
        "queue": _word(delivery.queue),
        "worker": _word(delivery.consumer_id),
        "outcome": _word(outcome),
        "started_at_ms": started_ms,
        "ended_at_ms": seams.wall_ms(),
        "error_type": None if error is None else _word(error.type),
        "error_message": None if error is None else clean_text(error.message, room),
        "error_stack": None if error is None else clean_text(error.stack, room),
        "fingerprint": None if error is None else error.fingerprint,
    }


def _word(value: Any) -> str:
    return clean_text(str(value), _WORD_BYTES_MAX)
