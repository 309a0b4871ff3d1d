"""Snapshot reads on connections of their own; see ``storage.port.Reader`` for what each does."""

from __future__ import annotations

import msgspec

from redrive.domain.standing import ANY, STANDINGS, Shown
from redrive.storage import rows as r
from redrive.storage.postgres import binary as b
from redrive.storage.postgres.plans import PostgresPlanReader
from redrive.storage.postgres.records import filter_values, page_values
from redrive.storage.postgres.session import Session
from redrive.storage.values import (
    Attempt,
    AuditHead,
    AuditRow,
    DeadFilter,
    DeadGroup,
    DeadLetter,
    Ending,
    FingerprintRule,
    KeyRow,
    Queue,
    QueueCounts,
    StoredMessage,
    Tombstone,
)  # fmt: skip

_EVER = 2**63 - 1


def state_values(state: Shown | None, now_ms: int) -> tuple[b.Parameter, ...]:
    """A contract state as bounds on what is stored: slots, dead, at head, due after, due until."""
    wanted = ANY if state is None else STANDINGS[state]
    after_ms, until_ms = wanted.due_bounds(now_ms, _EVER)
    return (
        None if wanted.slots is None else b.int4s(wanted.slots),
        None if wanted.dead is None else b.boolean(wanted.dead),
        None if wanted.at_head is None else b.boolean(wanted.at_head),
        b.int8(after_ms),
        b.int8(until_ms),
    )


class PostgresReader(PostgresPlanReader):
    """One snapshot."""

    def __init__(self, session: Session, now_ms: int) -> None:
        self.now_ms = now_ms
        self._session = session
        self._fetch = session.fetch

    def queue(self, name: str) -> Queue | None:
        rows = self._fetch("queue_by_name", b.text(name))
        return r.queue_from(rows[0]) if rows else None

    def queue_page(self, after: str, limit: int) -> list[Queue]:
        return [r.queue_from(row) for row in self._fetch("queue_page", b.text(after), b.int8(limit))]

    def deleting(self, limit: int) -> list[str]:
        return [row[0] for row in self._fetch("deleting", b.int8(limit))]

    def fingerprint_policies(self, queue_id: int) -> list[FingerprintRule]:
        return [FingerprintRule(*row) for row in self._fetch("fingerprint_policies", b.int8(queue_id))]

    def counts(self, queue: Queue) -> QueueCounts:
        number, now = b.int8(queue.id), b.int8(self.now_ms)
        ready, delayed, oldest = self._fetch("count_ready", number, now)[0]
        heads, later, oldest_head, blocked = self._fetch("count_groups", number, now)[0]
        grouped = self._fetch("count_in_group", number)[0][0]
        by_origin = self._fetch("count_dead_by_origin", b.text(queue.name))[0]
        by_queue = self._fetch("count_dead_by_queue", number)[0]
        oldest_dead = [at for at in (by_origin[1], by_queue[1]) if at is not None]
        oldest_ready = [at for at in (oldest, oldest_head) if at is not None]
        return QueueCounts(
            ready=ready + heads,
            delayed=delayed + later,
            waiting=grouped - heads - later,
            leased=self._fetch("leased_count", number, b.int8(_EVER))[0][0],
            dead=by_origin[0] + by_queue[0],
            oldest_ready_ms=min(oldest_ready, default=None),
            oldest_dead_ms=min(oldest_dead, default=None),
            blocked_groups=blocked,
            attempts=dict(self._fetch("count_attempts", number)),
        )

    def stats(self, queue_id: int, since_slot: int) -> list[tuple[int, bytes]]:
        return [(slot, raw) for slot, raw in self._fetch("stats", b.int8(queue_id), b.int8(since_slot))]

    def messages(
        self, queue: Queue, state: Shown | None, since_ms: int | None, after_id: int, limit: int
    ) -> list[StoredMessage]:
        bounds = b.int8(queue.id), b.int8(since_ms), b.int8(after_id)
        rows = self._fetch("messages", *bounds, *state_values(state, self.now_ms), b.int8(limit))
        return self._with_records([r.stored_from(row) for row in rows])

    def message(self, message_id: str) -> StoredMessage | None:
        return self._by_id([message_id]).get(message_id)

    def _by_id(self, message_ids: list[str]) -> dict[str, StoredMessage]:
        known = [message_id for message_id in message_ids if b.is_message_id(message_id)]
        if not known:
            return {}
        rows = self._fetch("messages_by_id", b.uuids(known))
        stored = self._with_records([r.stored_from(row) for row in rows])
        return {message.facts.message_id: message for message in stored}

    def _with_records(self, stored: list[StoredMessage]) -> list[StoredMessage]:
        dead = [message.facts.message_id for message in stored if message.facts.dead]
        if dead:
            rows = self._fetch("open_records", b.uuids(dead))
            records = {row[0]: r.dead_from(row) for row in rows}
            for message in stored:
                message.record = records.get(message.facts.message_id)
        return stored

    def attempts(self, message_id: str) -> list[Attempt]:
        if not b.is_message_id(message_id):
            return []
        return [r.attempt_from(row) for row in self._fetch("message_attempts", b.uuid(message_id))]

    def records(self, message_id: str) -> list[DeadLetter]:
        if not b.is_message_id(message_id):
            return []
        return [r.dead_from(row) for row in self._fetch("message_records", b.uuid(message_id))]

    def slice_end(self, after_id: int, limit: int) -> int | None:
        last: int | None = self._fetch("slice_end", b.int8(after_id), b.int8(limit))[0][0]
        return last

    def held_of_job(self, job_key: str, after_id: int, until_id: int) -> list[str]:
        values = b.text(job_key), b.int8(after_id), b.int8(until_id)
        return [row[0] for row in self._fetch("held_of_job", *values)]

    def dead_of_job(self, job_key: str, after: str, limit: int) -> list[str]:
        first = b.uuid(after) if after else None
        return [row[0] for row in self._fetch("dead_of_job", b.text(job_key), first, b.int8(limit))]

    def tombstone(self, message_id: str) -> Tombstone | None:
        if not b.is_message_id(message_id):
            return None
        rows = self._fetch("tombstone", b.uuid(message_id))
        return Tombstone(*rows[0]) if rows else None

    def dead_page(self, select: DeadFilter, after: tuple[int, str], limit: int) -> list[StoredMessage]:
        page = self._dead_ids(select, after, limit)
        stored = self._by_id(page)
        return [stored[message_id] for message_id in page if message_id in stored]

    def dead_records(self, select: DeadFilter, after: tuple[int, str], limit: int) -> list[DeadLetter]:
        page = self._dead_ids(select, after, limit)
        records = {row[0]: r.dead_from(row) for row in self._fetch("open_records", b.uuids(page))}
        return [records[message_id] for message_id in page]

    def _dead_ids(self, select: DeadFilter, after: tuple[int, str], limit: int) -> list[str]:
        values = page_values(select, after, limit)
        found: dict[str, int] = {}
        for name in ("dead_page_by_origin", "dead_page_by_queue"):
            found.update(self._fetch(name, *values))
        return sorted(found, key=lambda message_id: (found[message_id], message_id))[:limit]

    def over_age(self, limit: int) -> list[StoredMessage]:
        ids = [row[0] for row in self._fetch("over_age", b.int8(self.now_ms), b.int8(limit))]
        stored = self._by_id(ids)
        return [stored[message_id] for message_id in ids if message_id in stored]

    def ending(self, until_ms: int, limit: int) -> list[Ending]:
        return [Ending(*row) for row in self._fetch("ending", b.int8(until_ms), b.int8(limit))]

    def dead_groups(self, select: DeadFilter, limit: int, offset: int = 0) -> list[DeadGroup]:
        rows = self._fetch("dead_groups", *filter_values(select, limit), b.int8(offset))
        return [DeadGroup(*row) for row in rows]

    def keys(self) -> list[KeyRow]:
        return [msgspec.json.decode(row[0], type=KeyRow) for row in self._fetch("keys")]

    def audit_page(self, after_id: int, limit: int) -> list[AuditRow]:
        return [AuditRow(*row) for row in self._fetch("audit_page", b.int8(after_id), b.int8(limit))]

    def audit_chain(self, after: int, limit: int) -> list[AuditRow]:
        return [AuditRow(*row) for row in self._fetch("audit_chain", b.int8(after), b.int8(limit))]

    def audit_head(self) -> AuditHead | None:
        rows = self._fetch("audit_head")
        return AuditHead(*rows[0]) if rows else None
