"""What the ledger answers when it is asked, and the moves that an operator or a repair makes."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterable, Sequence
from typing import Any, Final

from redrive import seams
from redrive.domain.reconcile import Known
from redrive.ledger.drivers.port import Mode
from redrive.ledger.records import AttemptRecord, Completion, JobRecord, LedgerStatus
from redrive.ledger.states import State
from redrive.ledger.steps import Program, Rows, Statement, Step
from redrive.ledger.transaction import asked, framed
from redrive.ledger.values import checked_key, listed, loaded, text

_KEYS_AT_ONCE: Final = 1_000


def job(dialect: str, mode: Mode, job_key: str) -> Program:
    """The job's :class:`JobRecord`, or None."""
    return asked(dialect, mode, _job(checked_key(dialect, job_key)))


def completed(dialect: str, mode: Mode, job_keys: Iterable[str]) -> Program:
    """A :class:`Completion` for each of the jobs that is completed, by key; unknown keys are absent."""
    keys = list(dict.fromkeys(job_keys))
    for key in keys:
        checked_key(dialect, key)
    return asked(dialect, mode, _completed(keys))


def attempts(dialect: str, mode: Mode, job_key: str) -> Program:
    """The job's :class:`AttemptRecord` list, in order of delivery."""
    return asked(dialect, mode, _attempts(checked_key(dialect, job_key)))


def status(dialect: str, mode: Mode) -> Program:
    """The :class:`LedgerStatus` now."""
    return asked(dialect, mode, _status())


def move(dialect: str, mode: Mode, event: str, job_keys: Iterable[str]) -> Program:
    """``cancel``, ``redrive`` or ``republish`` the jobs whose state allows it; answers how many that were."""
    keys = sorted({checked_key(dialect, key) for key in job_keys})
    return framed(dialect, mode, _move(event, keys))


def reconcile_counts(dialect: str, mode: Mode, queue: str) -> Program:
    """{state: (jobs of ``queue``, those of them that wait for a relay)}."""
    return asked(dialect, mode, _reconcile_counts(queue))


def reconcile_open(dialect: str, mode: Mode, queue: str, after: str, limit: int) -> Program:
    """Up to ``limit`` jobs of ``queue`` that are not final, above the key ``after``, as :class:`Known` in the
    order of their keys' bytes; whether their payloads are there is not looked up."""
    start = after.encode() if dialect == "mysql" else after
    return asked(
        dialect, mode, _known(Statement("reconcile_open", {"queue": queue, "after": start, "limit": limit}))
    )


def reconcile_known(dialect: str, mode: Mode, job_keys: Sequence[str]) -> Program:
    """What the ledger knows of ``job_keys`` (at most some thousand), as :class:`Known` in no order."""
    return asked(dialect, mode, _known(Statement("reconcile_known", {"keys": listed(job_keys)})))


def _job(key: str | bytes) -> Generator[Step, Any, JobRecord | None]:
    answer: Rows = yield Statement("job", {"job_key": key})
    if not answer.rows:
        return None
    name, queue, state, generation, message_id, delivery, producer, result, *times = answer.rows[0]
    return JobRecord(
        key=text(name),
        queue=text(queue),
        state=State(int(state)).name.lower(),
        generation=int(generation),
        message_id=text(message_id),
        delivery=int(delivery),
        producer=text(producer),
        result=loaded(result),
        planned_at_ms=times[0],
        accepted_at_ms=times[1],
        completed_at_ms=times[2],
        updated_at_ms=times[3],
        batch=text(times[4]),
    )


def _completed(keys: list[str]) -> Generator[Step, Any, dict[str, Completion]]:
    found: dict[str, Completion] = {}
    for start in range(0, len(keys), _KEYS_AT_ONCE):
        some = listed(keys[start : start + _KEYS_AT_ONCE])
        answer: Rows = yield Statement("completed", {"keys": some})
        for name, at_ms, result in answer.rows:
            hashed = None if result is None else hashlib.sha256(text(result).encode()).hexdigest()
            found[text(name)] = Completion(text(name), int(at_ms), hashed)
    return found


def _attempts(key: str | bytes) -> Generator[Step, Any, list[AttemptRecord]]:
    answer: Rows = yield Statement("attempts", {"job_key": key})
    rows = ([text(value) for value in row] for row in answer.rows)
    return [AttemptRecord(row[0], row[1], bool(row[2]), *row[3:]) for row in rows]


def _status() -> Generator[Step, Any, LedgerStatus]:
    answer: Rows = yield Statement("status", {})
    counts = {State(int(row[0])): row for row in answer.rows}
    planned = counts.get(State.PLANNED)
    oldest_ms = planned[3] if planned is not None else None
    return LedgerStatus(
        **{state.name.lower(): int(counts[state][1]) if state in counts else 0 for state in State},
        waiting_for_relay=sum(int(row[2]) for row in answer.rows),
        oldest_planned_seconds=0.0 if oldest_ms is None else max(0, seams.wall_ms() - oldest_ms) / 1000,
    )


def _reconcile_counts(queue: str) -> Generator[Step, Any, dict[State, tuple[int, int]]]:
    answer: Rows = yield Statement("reconcile_counts", {"queue": queue})
    return {State(int(state)): (int(count), int(waits)) for state, count, waits in answer.rows}


def _known(statement: Statement) -> Generator[Step, Any, list[Known]]:
    answer: Rows = yield statement
    return [
        Known(
            text(key), text(queue), State(int(state)).name.lower(), int(generation), text(message_id),
            bool(waits), bool(payload), completed_ms, updated_ms,
        )
        for key, queue, state, generation, message_id, waits, completed_ms, updated_ms, *more in answer.rows
        for payload in more or (False,)
    ]  # fmt: skip


def _move(event: str, keys: list[str | bytes]) -> Generator[Step, Any, int]:
    count = 0
    for key in keys:
        answer: Rows = yield Statement(event, {"job_key": key, "now_ms": seams.wall_ms()})
        count += answer.touched
    return count
