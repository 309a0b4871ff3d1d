"""One effect: the receipt, the change and the evidence, all or nothing."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from redrive import seams
from redrive.ledger.countdown import counted
from redrive.ledger.drivers.port import Mode
from redrive.ledger.errors import LeaseLost, LedgerRetry, TransactionEnded
from redrive.ledger.outcomes import attempt_values, gaps
from redrive.ledger.records import Applied, Delivered
from redrive.ledger.states import State
from redrive.ledger.steps import Call, Control, Program, Rows, Statement, Step
from redrive.ledger.transaction import FromChange, framed
from redrive.ledger.values import checked_key, json_text, loaded, text


def apply_once(dialect: str, mode: Mode, job_key: str, change: Callable[[Any], Any]) -> Program:
    """The effect of ``job_key`` on a connection of the application; answers :class:`Applied`."""
    key = checked_key(dialect, job_key)
    values = {"job_key": key, "queue": "", "generation": 0, "message_id": None, "delivery": 0}
    return framed(dialect, mode, _effect(dialect, values, change, None, None), restores=True)


def execute(
    dialect: str,
    mode: Mode,
    delivery: Delivered,
    change: Callable[[Any], Any],
    may_commit: Callable[[], Any] | None,
) -> Program:
    """The effect of a delivery, with its attempt row; ``may_commit`` is asked just before COMMIT."""
    values = {
        "job_key": checked_key(dialect, delivery.job_key),
        "queue": delivery.queue,
        "generation": delivery.generation,
        "message_id": delivery.message_id,
        "delivery": delivery.delivery,
    }
    return framed(dialect, mode, _effect(dialect, values, change, delivery, may_commit), restores=True)


def _effect(
    dialect: str,
    values: dict[str, Any],
    change: Callable[[Any], Any],
    delivery: Delivered | None,
    may_commit: Callable[[], Any] | None,
) -> Generator[Step, Any, Applied[Any]]:
    started_ms = seams.wall_ms()
    receipt = seams.token(12)
    key = values["job_key"]
    held, batch = yield from _receipt(dialect, {**values, "receipt": receipt, "now_ms": started_ms})
    if held is not None:
        if delivery is not None:
            yield from gaps(dialect, delivery)
            yield Statement("attempt", attempt_values(dialect, delivery, "duplicate", None, started_ms))
        return Applied(False, loaded(held[1]), State(int(held[0])).name.lower())
    try:
        result = yield Call(change)
    except BaseException as error:
        raise FromChange(error) from error
    yield from _evidence(dialect, key, receipt, result, delivery, started_ms)
    if batch is not None:  # last, so that the others of the batch wait for this one's COMMIT only
        yield from counted(batch)
    if may_commit is not None and not (yield Call(lambda _: may_commit())):
        raise LeaseLost(f"job {text(key)!r}: the lease could not be proved before COMMIT; nothing was kept")
    return Applied(True, result)


def _evidence(
    dialect: str,
    key: Any,
    receipt: str,
    result: Any,
    delivery: Delivered | None,
    started_ms: int,
) -> Generator[Step, Any, None]:
    """What the change returned, and the delivery's record. A change that returns nothing leaves the receipt
    as it is: whether that still stands, the savepoint's release tells."""
    kept = {"job_key": key, "receipt": receipt}
    if result is not None:
        kept["result"] = json_text(result, f"the result of job {text(key)!r}")
    attempt: dict[str, Any] = {}
    if delivery is not None:
        yield from gaps(dialect, delivery)
        attempt = attempt_values(dialect, delivery, "done", None, started_ms)
    if result is None:
        if attempt:
            yield Statement("attempt", attempt)
        return
    done: Rows = yield Statement("finish" if attempt else "result", {**attempt, **kept})
    if done.touched != 1:
        raise TransactionEnded(
            "the receipt is gone: the change ended its transaction or went on after a deadlock"
        )


def _receipt(
    dialect: str, values: dict[str, Any]
) -> Generator[Step, Any, tuple[tuple[Any, ...] | None, Any]]:
    """(None, its batch or None) when the receipt is ours; else (the row's state, result, …, None)."""
    taken: Rows = yield Statement("receipt", values)
    if dialect == "mysql":
        yield (Control.RESTORE,)  # PostgreSQL's receipt does it on the way
    elif taken.rows and taken.rows[0][0] is not None:
        return None, taken.rows[0][1]
    held: Rows = yield Statement("receipt_held", {"job_key": values["job_key"]})
    if not held.rows:  # pruned between the two statements
        raise LedgerRetry("the job's row went away meanwhile", hint="run the whole transaction again")
    if text(held.rows[0][2]) == values["receipt"]:
        return None, held.rows[0][3]
    return held.rows[0], None
