"""What the ledger answers about batches."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

from redrive.ledger.batch_records import BatchMember, BatchRecord, BatchStatus, FollowUp
from redrive.ledger.batches import members_page, unknown
from redrive.ledger.countdown import ALARM, THEN
from redrive.ledger.drivers.port import Mode
from redrive.ledger.instants import instant
from redrive.ledger.states import BatchState, State
from redrive.ledger.steps import Program, Rows, Statement, Step
from redrive.ledger.transaction import asked
from redrive.ledger.values import checked_key, listed, text

HOLDING_MAX: Final = 20
"""How many of the members that hold a batch open its status names."""


def status(dialect: str, mode: Mode, key: str) -> Program:
    """The :class:`BatchStatus` of ``key``; BatchNotFound."""
    checked_key(dialect, key, "batch key")
    return asked(dialect, mode, _status(dialect, key))


def members(dialect: str, mode: Mode, key: str, first: State, last: State, after: str, limit: int) -> Program:
    """Up to ``limit`` :class:`BatchMember` above the key ``after``."""
    checked_key(dialect, key, "batch key")
    return asked(dialect, mode, _members(dialect, key, first, last, after, limit))


def listing(dialect: str, mode: Mode, first: BatchState, last: BatchState, after: str, limit: int) -> Program:
    """Up to ``limit`` :class:`BatchRecord` above the key ``after``."""
    start = after.encode() if dialect == "mysql" else after
    values = {"after": start, "first_state": int(first), "last_state": int(last), "limit": limit}
    return asked(dialect, mode, _listing(values))


def _listing(values: dict[str, Any]) -> Generator[Step, Any, list[BatchRecord]]:
    answer: Rows = yield Statement("batches", values)
    return [_record(row) for row in answer.rows]


def _status(dialect: str, key: str) -> Generator[Step, Any, BatchStatus]:
    batch = {"batch": checked_key(dialect, key)}
    row: Rows = yield Statement("batch_get", batch)
    if not row.rows:
        raise unknown(key)
    record = _record(row.rows[0])
    counted: Rows = yield Statement("batch_counts", batch)
    counts = {State(int(state)): int(count) for state, count in counted.rows}
    due: Rows = yield Statement("follow_ups", batch)
    kept = {int(kind): _follow_up(rest) for kind, *rest in due.rows}
    holding: list[BatchMember] = []
    if record.completed_at_ms is None and (counts.get(State.ISOLATED) or counts.get(State.CANCELLED)):
        holding = yield from _members(dialect, key, State.ISOLATED, State.CANCELLED, "", HOLDING_MAX)
    by_name = {state.name.lower(): counts.get(state, 0) for state in State}
    return BatchStatus(record, by_name, holding, kept.get(THEN), kept.get(ALARM))


def _members(
    dialect: str, key: str, first: State, last: State, after: str, limit: int
) -> Generator[Step, Any, list[BatchMember]]:
    page: Rows = yield members_page(dialect, key, after, first, last, limit)
    names = [text(row[0]) for row in page.rows]
    if not names:
        return []
    attempts: Rows = yield Statement("batch_last_attempts", {"keys": listed(names)})
    ends = {text(row[0]): [text(value) for value in row[1:]] for row in attempts.rows}
    return [
        BatchMember(
            name, State(int(state)).name.lower(), text(queue), text(message_id), int(generation),
            int(delivery), updated_ms, *ends.get(name, ()),
        )
        for name, (_, state, queue, message_id, generation, delivery, updated_ms) in zip(
            names, page.rows, strict=True
        )
    ]  # fmt: skip


def _follow_up(row: list[Any]) -> FollowUp:
    key, queue, state = row
    return FollowUp(text(key), text(queue), None if state is None else State(int(state)).name.lower())


def _record(row: tuple[Any, ...]) -> BatchRecord:
    key, state, count, open_members, _, queue, window, start_us, end_us, deadline_ms, late, *times = row
    name = BatchState(int(state)).name.lower()
    return BatchRecord(
        key=text(key),
        state="overdue" if late and int(state) == BatchState.OPEN else name,
        queue=text(queue),
        members=int(count),
        open_members=int(open_members),
        window=text(window),
        window_start=None if start_us is None else instant(start_us),
        window_end=None if end_us is None else instant(end_us),
        deadline_at_ms=deadline_ms,
        created_at_ms=times[0],
        completed_at_ms=times[1],
        updated_at_ms=times[2],
    )
