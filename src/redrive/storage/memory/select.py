"""Which dead letters a filter means, and which due rows one answer takes."""

from __future__ import annotations

from collections.abc import Iterable

from redrive.domain.facts import Ended
from redrive.storage.memory.tables import Row, Tables
from redrive.storage.values import DeadFilter, DeadLetter, FingerprintRule


def matching_dead(tables: Tables, select: DeadFilter) -> list[DeadLetter]:
    """Open records that match, oldest first."""
    dlq_ids = {queue.id for queue in tables.queues.values() if queue.name == select.queue}
    rows = [
        record
        for record in tables.dead.values()
        if record.closed_ms is None
        and (record.origin == select.queue or record.dlq_id in dlq_ids)
        and _matches(record, select)
        and not (select.without_held and _held(tables, record))
    ]
    return sorted(rows, key=lambda record: (record.dead_ms, record.message_id))


def policies_of(tables: Tables, queue_id: int) -> list[FingerprintRule]:
    """A queue's fingerprint policies, by fingerprint."""
    rows = (rule for (number, _), rule in tables.policies.items() if number == queue_id)
    return sorted(rows, key=lambda rule: rule.fingerprint)


def _held(tables: Tables, record: DeadLetter) -> bool:
    """Whether the record's source holds its fingerprint."""
    sources = (queue for queue in tables.queues.values() if queue.name == record.origin)
    rules = (rule for queue in sources for rule in policies_of(tables, queue.id))
    return any(rule.fingerprint == record.fingerprint and rule.policy == "hold" for rule in rules)


def _matches(record: DeadLetter, select: DeadFilter) -> bool:
    return (
        (select.message_ids is None or record.message_id in select.message_ids)
        and (select.reason is None or record.reason == select.reason)
        and (select.error_type is None or record.error_type == select.error_type)
        and (select.fingerprint is None or record.fingerprint == select.fingerprint)
        and (select.job_key is None or record.job_key == select.job_key)
        and (select.since_ms is None or record.dead_ms >= select.since_ms)
        and (select.until_ms is None or record.dead_ms < select.until_ms)
        and (select.attempts_min is None or record.attempts >= select.attempts_min)
        and (select.text is None or select.text.encode() in (record.error or b""))
    )


def portion(rows: Iterable[Row], limit: int, bytes_max: int) -> list[Row]:
    """How many of the due rows one answer takes: a suspect travels alone, and the bodies fit."""
    taken: list[Row] = []
    size = 0
    for row in rows:
        suspect = row.facts.ended == Ended.LOST
        size += len(row.body)
        if len(taken) == limit or (taken and (suspect or size > bytes_max)):
            break
        taken.append(row)
        if suspect:
            break
    return taken
