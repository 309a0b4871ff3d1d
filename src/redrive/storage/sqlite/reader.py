"""Snapshot reads on connections of their own; see ``storage.port.Reader`` for what each does."""

from __future__ import annotations

import sys
from typing import Any

import apsw
import msgspec

from redrive.domain.standing import ANY, STANDINGS, Shown
from redrive.storage import rows as r
from redrive.storage.sqlite import rows as out
from redrive.storage.sqlite.plans import SqlitePlanReader
from redrive.storage.sqlite.transaction import SQL
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

_EVER = sys.maxsize


def state_parameters(state: Shown | None, now_ms: int) -> dict[str, Any]:
    """A contract state as bounds on the stored columns."""
    wanted = ANY if state is None else STANDINGS[state]
    after_ms, until_ms = wanted.due_bounds(now_ms, _EVER)
    return {
        "slots": None if wanted.slots is None else out.json_list(wanted.slots),
        "dead": wanted.dead,
        "at_head": wanted.at_head,
        "due_after_ms": after_ms,
        "due_until_ms": until_ms,
    }


class SqliteReader(SqlitePlanReader):
    """One snapshot."""

    def __init__(self, connection: apsw.Connection, now_ms: int) -> None:
        self.now_ms = now_ms
        self._connection = connection

    def _all(self, name: str, values: Any = ()) -> list[Any]:
        return list(self._connection.execute(SQL[name].sql, values))

    def queue(self, name: str) -> Queue | None:
        rows = self._all("queue_by_name", (name,))
        return r.queue_from(rows[0]) if rows else None

    def queue_page(self, after: str, limit: int) -> list[Queue]:
        return [r.queue_from(row) for row in self._all("queue_page", (after, limit))]

    def deleting(self, limit: int) -> list[str]:
        return [row[0] for row in self._all("deleting", (limit,))]

    def fingerprint_policies(self, queue_id: int) -> list[FingerprintRule]:
        return [FingerprintRule(*row) for row in self._all("fingerprint_policies", (queue_id,))]

    def counts(self, queue: Queue) -> QueueCounts:
        bounds = {"queue": queue.id, "now": self.now_ms}
        ready, delayed, oldest = self._all("count_ready", bounds)[0]
        heads, later, oldest_head, blocked = self._all("count_groups", bounds)[0]
        grouped = self._all("count_in_group", (queue.id,))[0][0]
        by_origin = self._all("count_dead_by_origin", (queue.name,))[0]
        by_queue = self._all("count_dead_by_queue", (queue.id,))[0]
        oldest_dead = [at for at in (by_origin[1], by_queue[1]) if at is not None]
        oldest_ready = [at for at in (oldest, oldest_head) if at is not None]
        return QueueCounts(
            ready=ready + heads,
            delayed=delayed + later,
            waiting=grouped - heads - later,
            leased=self._all("leased_count", (queue.id, _EVER))[0][0],
            dead=by_origin[0] + by_queue[0],
            oldest_ready_ms=min(oldest_ready, default=None),
            oldest_dead_ms=min(oldest_dead, default=None),
            blocked_groups=blocked,
            attempts=dict(self._all("count_attempts", (queue.id,))),
        )

    def stats(self, queue_id: int, since_slot: int) -> list[tuple[int, bytes]]:
        return [(slot, raw) for slot, raw in self._all("stats", (queue_id, since_slot))]

    def messages(
        self, queue: Queue, state: Shown | None, since_ms: int | None, after_id: int, limit: int
    ) -> list[StoredMessage]:
        bounds = {"queue": queue.id, "since_ms": since_ms, "after": after_id, "limit": limit}
        rows = self._all("messages", bounds | state_parameters(state, self.now_ms))
        return [self._with_record(r.stored_from(row)) for row in rows]

    def message(self, message_id: str) -> StoredMessage | None:
        rows = self._all("message", (message_id,))
        return self._with_record(r.stored_from(rows[0])) if rows else None

    def _with_record(self, stored: StoredMessage) -> StoredMessage:
        if stored.facts.dead:
            rows = self._all("open_records", (out.json_list([stored.facts.message_id]),))
            stored.record = r.dead_from(rows[0]) if rows else None
        return stored

    def attempts(self, message_id: str) -> list[Attempt]:
        return [r.attempt_from(row) for row in self._all("message_attempts", (message_id,))]

    def records(self, message_id: str) -> list[DeadLetter]:
        return [r.dead_from(row) for row in self._all("message_records", (message_id,))]

    def slice_end(self, after_id: int, limit: int) -> int | None:
        last: int | None = self._all("slice_end", (after_id, limit))[0][0]
        return last

    def held_of_job(self, job_key: str, after_id: int, until_id: int) -> list[str]:
        return [row[0] for row in self._all("held_of_job", (job_key, after_id, until_id))]

    def dead_of_job(self, job_key: str, after: str, limit: int) -> list[str]:
        bounds = {"job_key": job_key, "after": after, "limit": limit}
        return [row[0] for row in self._all("dead_of_job", bounds)]

    def tombstone(self, message_id: str) -> Tombstone | None:
        rows = self._all("tombstone", (message_id,))
        return Tombstone(*rows[0]) if rows else None

    def dead_page(self, select: DeadFilter, after: tuple[int, str], limit: int) -> list[StoredMessage]:
        stored = (self.message(message_id) for message_id in self._dead_ids(select, after, limit))
        return [message for message in stored if message is not None]

    def dead_records(self, select: DeadFilter, after: tuple[int, str], limit: int) -> list[DeadLetter]:
        page = self._dead_ids(select, after, limit)
        records = {row[0]: r.dead_from(row) for row in self._all("open_records", (out.json_list(page),))}
        return [records[message_id] for message_id in page]

    def _dead_ids(self, select: DeadFilter, after: tuple[int, str], limit: int) -> list[str]:
        bounds = out.filter_parameters(select, after_ms=after[0], after_id=after[1], limit=limit)
        found: dict[str, int] = {}
        for name in ("dead_page_by_origin", "dead_page_by_queue"):
            found.update(self._all(name, bounds))
        return sorted(found, key=lambda message_id: (found[message_id], message_id))[:limit]

    def over_age(self, limit: int) -> list[StoredMessage]:
        stored = (self.message(row[0]) for row in self._all("over_age", (self.now_ms, limit)))
        return [message for message in stored if message is not None]

    def ending(self, until_ms: int, limit: int) -> list[Ending]:
        return [Ending(*row) for row in self._all("ending", (until_ms, limit))]

    def dead_groups(self, select: DeadFilter, limit: int, offset: int = 0) -> list[DeadGroup]:
        bounds = out.filter_parameters(select, limit=limit, offset=offset)
        return [DeadGroup(*row) for row in self._all("dead_groups", bounds)]

    def keys(self) -> list[KeyRow]:
        return [msgspec.json.decode(row[0], type=KeyRow) for row in self._all("keys")]

    def audit_page(self, after_id: int, limit: int) -> list[AuditRow]:
        return [AuditRow(*row) for row in self._all("audit_page", (after_id, limit))]

    def audit_chain(self, after: int, limit: int) -> list[AuditRow]:
        return [AuditRow(*row) for row in self._all("audit_chain", (after, limit))]

    def audit_head(self) -> AuditHead | None:
        rows = self._all("audit_head", ())
        return AuditHead(*rows[0]) if rows else None
