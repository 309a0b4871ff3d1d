"""A message's steps from its publish to now, put in order from what the store keeps of it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec
from msgspec import Raw

from redrive.contract import shapes
from redrive.contract.instants import rfc3339, rfc3339_or_none
from redrive.contract.shapes import LineageStep
from redrive.domain.fingerprint import clean_text
from redrive.domain.patterns import EVERY_QUEUE
from redrive.domain.redaction import redacted
from redrive.service.access import Caller
from redrive.service.looking import error_record, source
from redrive.storage.plans import Plan, PlanItem
from redrive.storage.values import Attempt, DeadLetter, StoredMessage, Tombstone

ATTEMPTS_MAX = 1_000  # of one message, the newest
ERROR_BYTES_MAX = 1_024
_ORDER = ("published", "attempt", "dead", "outcome", "planned", "closed", "redriven", "removed")
_RANK = {name: rank for rank, name in enumerate(_ORDER)}


class Known(msgspec.Struct):
    """What the store has of one message."""

    message_id: str
    stored: StoredMessage | None
    attempts: list[Attempt]
    records: list[DeadLetter]
    members: list[tuple[Plan, PlanItem]]
    tombstone: Tombstone | None

    @property
    def left_out(self) -> int:
        """How many attempts are not told."""
        return max(0, len(self.attempts) - ATTEMPTS_MAX)

    @property
    def queue(self) -> str | None:
        """The queue that it was published to, as far as that is known."""
        if self.stored is not None:
            return source(self.stored)
        if self.records:
            return next((record.origin for record in self.records if record.origin), None)
        if self.tombstone is not None:
            return self.tombstone.queue
        return self.members[0][0].queue if self.members else None

    @property
    def job_key(self) -> str | None:
        """Its job key; None when only failed deliveries are left, which do not name it."""
        if self.stored is not None:
            return self.stored.facts.job_key
        rows: list[DeadLetter | Tombstone | PlanItem] = [*self.records, *(item for _, item in self.members)]
        if self.tombstone is not None:
            rows.append(self.tombstone)
        return rows[0].job_key if rows else None

    def visible(self, caller: Caller) -> bool:
        """By the message's own queue, its source, or what is left of it."""
        names = {self.queue, self.stored.queue if self.stored else None} - {None}
        return caller.patterns == EVERY_QUEUE or any(caller.may_see(name) for name in names if name)

    def __bool__(self) -> bool:
        return any((self.stored, self.attempts, self.records, self.members, self.tombstone))


def steps_of(known: Known, redact: tuple[str, ...]) -> list[LineageStep]:
    """In order of time; within a millisecond by the life (how often it had been redriven) that a step belongs
    to, then by what leads to what."""
    told = sorted(_lives(known, redact), key=lambda each: (each[1].at, each[0], _RANK[each[1].step]))
    return [step for _, step in told]


def _lives(known: Known, redact: tuple[str, ...]) -> Iterator[tuple[float, LineageStep]]:
    """Each step with its life: 0 from the publish to the first death, 1 from there to the second, …"""
    yield 0, LineageStep(at=rfc3339(_published_ms(known)), step="published", queue=known.queue)
    for attempt in known.attempts[-ATTEMPTS_MAX:]:
        yield sum(record.delivery < attempt.delivery for record in known.records), _attempt(attempt)
    for life, record in enumerate(known.records):
        yield life, _death(record)
        if record.closed_ms is not None:
            at = rfc3339(record.closed_ms)
            yield life, LineageStep(at=at, step="closed", queue=record.origin, reason=record.closed_by)
    for plan, item in known.members:
        for step in _membership(plan, item, redact):
            # an outcome is the end of the next life, or of no life where nothing was sent
            ends = 0 if step.step != "outcome" else 0.5 if item.sent_ms is None else 1
            yield item.redrive_count + ends, step
    if known.tombstone is not None:
        yield (
            float("inf"),
            LineageStep(
                at=rfc3339(known.tombstone.removed_ms),
                step="removed",
                queue=known.tombstone.queue,
                reason=known.tombstone.cause,
                fingerprint=known.tombstone.fingerprint,
            ),
        )


def _attempt(attempt: Attempt) -> LineageStep:
    return LineageStep(
        at=rfc3339(attempt.ended_ms),
        step="attempt",
        delivery=attempt.delivery,
        attempt=attempt.attempt,
        consumer_id=attempt.consumer_id,
        leased_at=rfc3339_or_none(attempt.leased_ms),
        end=attempt.end,
        error=_error(attempt.error),
        fingerprint=attempt.fingerprint,
    )


def _death(record: DeadLetter) -> LineageStep:
    return LineageStep(
        at=rfc3339(record.dead_ms),
        step="dead",
        queue=record.origin,
        delivery=record.delivery,
        reason=record.reason,
        error=_error(record.error),
        fingerprint=record.fingerprint,
    )


def _membership(plan: Plan, item: PlanItem, redact: tuple[str, ...]) -> Iterator[LineageStep]:
    yield LineageStep(
        at=rfc3339(plan.created_ms),
        step="planned",
        queue=plan.queue,
        plan_id=plan.plan_id,
        actor=plan.actor,
        reason=plan.reason,
    )
    if item.sent_ms is not None:
        patch = None if plan.edit is None else _masked(plan.edit, redact)
        yield LineageStep(
            at=rfc3339(item.sent_ms), step="redriven", queue=plan.queue, plan_id=plan.plan_id, edit=patch
        )
    if item.finished_ms is not None:
        yield LineageStep(
            at=rfc3339(item.finished_ms),
            step="outcome",
            plan_id=plan.plan_id,
            outcome=item.outcome,
            detail=item.detail,
        )


def _masked(patch: bytes, redact: tuple[str, ...]) -> Raw:
    """The merge patch, which has the payload's shape, without what the queue keeps out of pages."""
    if not redact:
        return Raw(patch)
    value = json.loads(patch, parse_int=_text, parse_float=_text)
    return Raw(msgspec.json.encode(redacted(value, redact)))


def _text(number: str) -> Raw:
    return Raw(number.encode())


def _error(raw: bytes | None) -> shapes.ErrorRecord | None:
    """Without its stack, which `queue.message` shows, and cut: a lineage has many errors."""
    error = error_record(raw)
    if error is None:
        return None
    return msgspec.structs.replace(error, message=clean_text(error.message, ERROR_BYTES_MAX), stack="")


def _published_ms(known: Known) -> int:
    """When it was published; of a message that is gone its id says so (UUIDv7)."""
    if known.stored is not None:
        return known.stored.facts.enqueued_ms
    if known.tombstone is not None:
        return known.tombstone.enqueued_ms
    return int(known.message_id.replace("-", "")[:12], 16)
