"""Looking without touching: messages, one message with its history, statistics."""

from __future__ import annotations

import logging
from typing import Any

from redrive.contract import shapes
from redrive.contract.idempotency import Idempotency
from redrive.contract.instants import rfc3339, rfc3339_or_none
from redrive.domain import limits
from redrive.domain.errors import InvalidRequest, MessageNotFound
from redrive.domain.facts import PREVIOUS, Slot
from redrive.domain.standing import shown
from redrive.service import statistics
from redrive.service.access import Caller
from redrive.service.context import Context, find_queue
from redrive.service.showing import Paths, Shown
from redrive.service.work import Read
from redrive.storage.port import Reader
from redrive.storage.values import Attempt, DeadLetter, StoredMessage

_LOG = logging.getLogger("redrive.service")


def stats(context: Context, caller: Caller, request: shapes.QueueStatsGet, _key: Idempotency | None) -> Read:
    """The numbers of one queue."""

    def run() -> shapes.QueueStats:
        queue = find_queue(context, caller, request.queue)
        found = context.engine.read(lambda reader: statistics.gather(reader, queue))
        counts, totals = found.counts, found.totals
        p50, p95, p99 = statistics.percentiles(found.service_ms)
        return shapes.QueueStats(
            queue=queue.name,
            ready=counts.ready,
            delayed=counts.delayed,
            leased=counts.leased,
            waiting=counts.waiting,
            dead=counts.dead,
            oldest_ready_age_seconds=found.oldest_ready_age_seconds,
            oldest_dead_age_seconds=found.oldest_dead_age_seconds,
            dead_per_minute=found.dead_per_minute,
            attempts={str(attempt): count for attempt, count in sorted(counts.attempts.items())},
            attempts_settled={str(n): count for n, count in sorted(found.attempts_settled.items())},
            published_total=totals.published,
            acked_total=totals.acked,
            dead_total=totals.dead,
            redriven_total=totals.redriven,
            expired_total=totals.expired,
            service_time_ms=shapes.Percentiles(p50=p50, p95=p95, p99=p99),
            consumers=found.consumers,
            arrivals_per_minute=found.arrivals_per_minute,
            unfenced_settles_total=totals.unfenced,
            blocked_groups=counts.blocked_groups,
            paused=queue.state == "paused",
        )

    return Read(run)


def messages(context: Context, caller: Caller, request: shapes.MessageList, _key: Idempotency | None) -> Read:
    """A page of a queue's messages, in the order in which they came."""

    def run() -> shapes.MessagePage:
        queue = find_queue(context, caller, request.queue)
        limit = request.limit or limits.LIST_LIMIT_DEFAULT
        after = cursor_number(request.cursor)

        def look(reader: Reader) -> shapes.MessagePage:
            found = reader.messages(queue, request.state, request.since, after, limit + 1)
            page = found[:limit]
            items = [
                shapes.MessageItem(**each) for each in views(reader, [one for one in page if sound(one)])
            ]
            more = str(page[-1].facts.id) if len(found) > limit else None
            return shapes.MessagePage(items=items, next_cursor=more)

        return context.engine.read(look)

    return Read(run)


def message(context: Context, caller: Caller, request: shapes.MessageGet, _key: Idempotency | None) -> Read:
    """One message with its attempts and its stays in the dead letters."""

    def run() -> shapes.MessageRecord:
        def look(reader: Reader) -> Any:
            stored = reader.message(request.message_id)
            if stored is None or not may_see(caller, stored):
                return None
            if not sound(stored):
                raise MessageNotFound(f"message {request.message_id} is damaged on disk and cannot be shown")
            masked = Shown(stored, Paths(reader).of(stored))
            return (
                masked,
                views(reader, [stored])[0],
                reader.attempts(request.message_id),
                reader.records(request.message_id),
            )

        found = context.engine.read(look)
        if found is None:
            raise _not_found(context, caller, request.message_id)
        masked, fields, attempts, records = found
        return shapes.MessageRecord(
            **fields,
            attempts=[_attempt(attempt, masked) for attempt in attempts],
            lineage=[_lineage(row, fields["queue"], masked) for row in records],
        )

    return Read(run)


def _not_found(context: Context, caller: Caller, message_id: str) -> MessageNotFound:
    """With what is left of the message, if it was removed unfinished."""
    left = context.engine.read(lambda reader: reader.tombstone(message_id))
    if left is None or not caller.may_see(left.queue):
        return MessageNotFound(f"message {message_id} is not found: it is gone or never existed")
    return MessageNotFound(
        f"message {message_id} is not found: it was removed from {left.queue} ({left.cause})",
        details={
            "queue": left.queue,
            "job_key": left.job_key,
            "cause": left.cause,
            "reason": left.reason,
            "fingerprint": left.fingerprint,
            "enqueued_at": rfc3339(left.enqueued_ms),
            "first_failed_at": rfc3339_or_none(left.first_failed_ms),
            "dead_at": rfc3339_or_none(left.dead_ms),
            "removed_at": rfc3339(left.removed_ms),
            "checksum": left.body_hash.hex(),
            "archive": left.archive,
        },
    )


def sound(stored: StoredMessage) -> bool:
    """Whether the message is as it was published; one that is not cannot be shown, and is logged.

    When its turn comes, a damaged message becomes a dead letter with the reason ``checksum``.
    """
    if not stored.sound:
        _LOG.error("message %s of queue %s is damaged on disk", stored.facts.message_id, stored.queue)
    return stored.sound


def may_see(caller: Caller, stored: StoredMessage) -> bool:
    """By the message's own queue, or by its source."""
    origin = stored.record.origin if stored.record else None
    return caller.may_see(stored.queue) or (origin is not None and caller.may_see(origin))


def views(reader: Reader, page: list[StoredMessage]) -> list[dict[str, Any]]:
    """Sound messages as the contract shows them, masked as their queues say, and which plan sent them."""
    redriven = [stored.facts.message_id for stored in page if stored.facts.redriven]
    plans, paths = reader.plan_ids(redriven) if redriven else {}, Paths(reader)
    return [
        view(stored, Shown(stored, paths.of(stored)), reader.now_ms, plans.get(stored.facts.message_id))
        for stored in page
    ]


def view(stored: StoredMessage, masked: Shown, now_ms: int, plan_id: str | None = None) -> dict[str, Any]:
    """The fields of a message as the contract shows it. ``plan_id``: the plan that sent it last."""
    facts = stored.facts
    leased = facts.slot == Slot.LEASED
    return {
        "message_id": facts.message_id,
        "job_key": facts.job_key,
        "queue": stored.queue,
        "state": shown(facts, now_ms, at_head=stored.at_head),
        "payload": masked.payload,
        "attempt": facts.attempt,
        "delivery": facts.delivery,
        "previous": PREVIOUS[facts.ended],
        "enqueued_at": rfc3339(facts.enqueued_ms),
        "visible_at": None if leased else rfc3339(facts.due_ms),
        "lease_expires_at": rfc3339(facts.lease_until_ms) if leased else None,
        "expires_at": rfc3339(facts.expires_ms),
        "message_group_id": stored.group_key or None,
        "priority": facts.priority,
        "headers": masked.headers,
        "redrive": shapes.RedriveMark(plan_id=plan_id, count=facts.redriven) if facts.redriven else None,
    }


def cursor_number(cursor: str | None) -> int:
    """A cursor that is a number; ``InvalidRequest`` for another."""
    if cursor is None:
        return 0
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 18:
        raise InvalidRequest("cursor is not one that this list gave out", details={"field": "cursor"})
    return int(cursor)


def _attempt(row: Attempt, masked: Shown) -> shapes.AttemptRecord:
    return shapes.AttemptRecord(
        delivery=row.delivery,
        attempt=row.attempt,
        consumer_id=row.consumer_id,
        leased_at=rfc3339(row.leased_ms),
        ended_at=rfc3339(row.ended_ms),
        end=row.end,
        error=masked.error(row.error),
    )


def _lineage(row: DeadLetter, queue: str, masked: Shown) -> shapes.LineageRecord:
    return shapes.LineageRecord(
        queue=queue if row.origin is None else f"{row.origin}",
        origin=row.origin,
        reason=row.reason,
        error=masked.error(row.error),
        fingerprint=row.fingerprint,
        dead_at=rfc3339(row.dead_ms),
        closed_at=rfc3339_or_none(row.closed_ms),
        closed_by=row.closed_by,
    )
