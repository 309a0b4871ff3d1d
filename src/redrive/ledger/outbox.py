"""The producer's side: jobs planned in the producer's transaction, taken and published by relays."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from redrive import seams
from redrive.domain import limits
from redrive.domain.errors import InvalidRequest, LimitExceeded
from redrive.ledger.drivers.port import Mode
from redrive.ledger.records import GENERATION_HEADER, Job, OutboxRow, of_generation
from redrive.ledger.steps import Program, Rows, Statement, Step
from redrive.ledger.transaction import framed
from redrive.ledger.values import checked_key, json_text, listed, loaded, payload_text, text

CLAIM_SECONDS = 30.0
"""How long a relay that took rows may need before another one takes them."""


class Outbox:
    """What a relay uses. Any number may run: a row is with one of them for the time of its claim."""

    def __init__(self, own: Callable[[Callable[[str, Mode], Program]], Any]) -> None:
        self._own = own

    def take(self, limit: int = 100, *, claim_seconds: float = CLAIM_SECONDS) -> list[OutboxRow]:
        """Claim up to ``limit`` planned jobs, oldest first; a relay that dies gives them up after its
        claim."""
        if not 1 <= limit <= limits.BATCH_ENTRIES_MAX:
            raise LimitExceeded(f"limit must be from 1 to {limits.BATCH_ENTRIES_MAX}, got {limit}")
        claim_ms = int(claim_seconds * 1000)
        rows: list[OutboxRow] = self._own(
            lambda dialect, mode: framed(dialect, mode, _take(limit, claim_ms), read_committed=True)
        )
        return rows

    def accepted(self, rows: Iterable[OutboxRow]) -> int:
        """Note that the queue has these (with their ``message_id``, where it is set); how many changed."""
        given = sorted(rows, key=lambda row: row.job_key)
        if not given:
            return 0
        count: int = self._own(
            lambda dialect, mode: framed(dialect, mode, _accepted(given), read_committed=True)
        )
        return count

    def give_back(self, rows: Iterable[OutboxRow], *, pause_seconds: float = 0.0) -> int:
        """Give up claims of rows that could not be published; another try is due after ``pause_seconds``."""
        given = sorted(rows, key=lambda row: row.job_key)
        pause_ms = int(pause_seconds * 1000)
        count: int = self._own(
            lambda dialect, mode: framed(
                dialect, mode, _give_back(dialect, given, pause_ms), read_committed=True
            )
        )
        return count


def publish(dialect: str, mode: Mode, queue: str, jobs: Sequence[Job], producer: str | None) -> Program:
    """Plan ``jobs``; answers how many were new. A known key, in whatever state, is left as it is."""
    checked_queue(queue)
    planned = [planned_row(job, place) for place, job in enumerate(jobs)]
    planned.sort(key=lambda job: job["key"].encode())  # one order of locks for all producers
    return framed(dialect, mode, _publish(queue, planned, producer))


def checked_queue(queue: Any) -> str:
    """``queue``, or LimitExceeded when it is no queue's name."""
    if not isinstance(queue, str) or not 1 <= len(queue) <= limits.DERIVED_QUEUE_NAME_CHARS_MAX:
        raise LimitExceeded(f"queue name must have 1 to {limits.DERIVED_QUEUE_NAME_CHARS_MAX} characters")
    return queue


def planned_row(job: Job, place: int) -> dict[str, Any]:
    """``job`` as the statement ``publish`` takes it, checked; ``place`` orders it within its transaction."""
    checked_key("", job.key)
    headers = dict(job.headers or {})
    if any(name.lower() == GENERATION_HEADER for name in headers):
        raise InvalidRequest(f"header {GENERATION_HEADER} is reserved for the ledger")
    if job.delay_seconds is not None and not 0 <= job.delay_seconds <= limits.DELAY_SECONDS_MAX:
        raise LimitExceeded(
            f"delay_seconds must be from 0 to {limits.DELAY_SECONDS_MAX}, got {job.delay_seconds}"
        )
    options = {
        "headers": headers or None,
        "delay_seconds": job.delay_seconds,
        "priority": job.priority,
        "group": job.group,
        "deduplication_id": job.deduplication_id,
    }
    kept = {name: value for name, value in options.items() if value is not None}
    options_text = json_text(kept, f"the options of job {job.key!r}")
    return {
        "key": job.key,
        "payload": payload_text(job.payload, job.key),
        "options": options_text,
        "place": place,
    }


def _publish(queue: str, planned: list[dict[str, Any]], producer: str | None) -> Generator[Step, Any, int]:
    count = 0
    now_ms = seams.wall_ms()  # one for all: with its place it orders them for the relay
    for some in slices(planned):
        values = {
            "jobs": listed(some),
            "queue": queue,
            "producer": producer,
            "now_ms": now_ms,
            "batch": None,
        }
        answer: Rows = yield Statement("publish", values)
        count += answer.touched
    return count


def slices(planned: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """What one statement takes: a bound on rows, and one on text that keeps far from a packet limit of 16
    MiB."""
    some: list[dict[str, Any]] = []
    chars = 0
    for job in planned:
        size = len(job["payload"]) + len(job["options"])
        if some and (len(some) >= limits.BATCH_ENTRIES_MAX or chars + size > limits.MIB):
            yield some
            some, chars = [], 0
        some.append(job)
        chars += size
    if some:
        yield some


def _take(limit: int, claim_ms: int) -> Generator[Step, Any, list[OutboxRow]]:
    due: Rows = yield Statement("outbox_due", {"limit": limit})
    claim = seams.token(12)
    rows = [_row(row, claim) for row in due.rows]
    if rows:
        keys = listed(sorted(row.job_key for row in rows))
        yield Statement("outbox_claim", {"keys": keys, "claim": claim, "claim_ms": claim_ms})
    return rows


def _row(row: tuple[Any, ...], claim: str) -> OutboxRow:
    key, generation, queue, payload, options = row
    wanted = loaded(options)
    headers = dict(wanted.get("headers") or {})
    if generation:
        headers[GENERATION_HEADER] = str(generation)
    return OutboxRow(
        job_key=text(key),
        generation=int(generation),
        queue=text(queue),
        payload=msgspec.Raw(text(payload).encode("utf-8")),
        headers=headers,
        delay_seconds=wanted.get("delay_seconds"),
        priority=wanted.get("priority"),
        group=wanted.get("group"),
        deduplication_id=_deduplication_id(text(key), int(generation), wanted),
        claim=claim,
    )


def _deduplication_id(key: str, generation: int, wanted: dict[str, Any]) -> str | None:
    """A repair really enqueues also within a FIFO queue's window: its message is no duplicate of the first.

    A job with a group goes to a FIFO queue, which may merge equal payloads.
    """
    given: str | None = wanted.get("deduplication_id")
    if not generation or (given is None and wanted.get("group") is None):
        return given
    return of_generation(given or key, generation)


def _accepted(rows: list[OutboxRow]) -> Generator[Step, Any, int]:
    given = [{"key": row.job_key, "generation": row.generation, "message_id": row.message_id} for row in rows]
    answer: Rows = yield Statement("outbox_accepted", {"rows": listed(given), "now_ms": seams.wall_ms()})
    return answer.touched


def _give_back(dialect: str, rows: list[OutboxRow], pause_ms: int) -> Generator[Step, Any, int]:
    count = 0
    for row in rows:
        values = {"job_key": checked_key(dialect, row.job_key), "claim": row.claim, "pause_ms": pause_ms}
        answer: Rows = yield Statement("outbox_give_back", values)
        count += answer.touched
    return count
