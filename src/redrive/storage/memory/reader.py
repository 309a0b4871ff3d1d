"""Snapshot reads over dictionaries; see ``storage.port.Reader`` for what each does."""

from __future__ import annotations

from functools import cached_property

from redrive.domain.facts import Slot
from redrive.domain.standing import Shown, shown
from redrive.storage.memory.plans import MemoryPlanReader
from redrive.storage.memory.select import matching_dead
from redrive.storage.memory.tables import Row, Tables
from redrive.storage.values import (
    Attempt,
    AuditRow,
    DeadFilter,
    DeadGroup,
    DeadLetter,
    KeyRow,
    Queue,
    QueueCounts,
    StoredMessage,
    Tombstone,
    merged_groups,
)  # fmt: skip


class MemoryReader(MemoryPlanReader):
    """Reads under the engine's lock."""

    def __init__(self, tables: Tables, now_ms: int) -> None:
        self.now_ms = now_ms
        self._t = tables

    def queue(self, name: str) -> Queue | None:
        return next((q for q in self._t.queues.values() if q.name == name), None)

    def queue_page(self, after: str, limit: int) -> list[Queue]:
        rows = sorted((q for q in self._t.queues.values() if q.name > after), key=lambda q: q.name)
        return [queue for queue in rows if queue.state != "deleting"][:limit]

    def deleting(self, limit: int) -> list[str]:
        return [queue.name for queue in self._t.queues.values() if queue.state == "deleting"][:limit]

    def counts(self, queue: Queue) -> QueueCounts:
        counts = QueueCounts()
        heads = {}
        for group in (g for g in self._t.groups.values() if g.queue_id == queue.id):
            counts.blocked_groups += 1 if group.blocked else 0
            if group.head_due_ms is not None:
                heads[group.id] = group.head_due_ms
        for row in (r for r in self._t.messages.values() if r.facts.queue_id == queue.id):
            facts = row.facts
            if facts.slot == Slot.LEASED:
                counts.leased += 1
            elif facts.slot == Slot.READY:
                if facts.due_ms <= self.now_ms:
                    counts.ready += 1
                    counts.oldest_ready_ms = min(counts.oldest_ready_ms or facts.due_ms, facts.due_ms)
                else:
                    counts.delayed += 1
            elif facts.slot == Slot.IN_GROUP:
                counts.waiting += 1
            if not facts.dead:
                counts.attempts[facts.attempt] = counts.attempts.get(facts.attempt, 0) + 1
        for due_ms in heads.values():
            counts.waiting -= 1
            if due_ms <= self.now_ms:
                counts.ready += 1
                counts.oldest_ready_ms = min(counts.oldest_ready_ms or due_ms, due_ms)
            else:
                counts.delayed += 1
        dead = matching_dead(self._t, DeadFilter(queue=queue.name))
        counts.dead = len(dead)
        counts.oldest_dead_ms = dead[0].dead_ms if dead else None
        return counts

    def stats(self, queue_id: int, since_slot: int) -> list[tuple[int, bytes]]:
        rows = self._t.stats.items()
        return [
            (slot, raw) for (number, _, slot), raw in rows
            if number == queue_id and (slot >= since_slot or slot == 0)
        ]  # fmt: skip

    def messages(
        self, queue: Queue, state: Shown | None, since_ms: int | None, after_id: int, limit: int
    ) -> list[StoredMessage]:
        rows = sorted(self._t.messages.items())
        found = [
            self._stored(row)
            for number, row in rows
            if number > after_id
            and row.facts.queue_id == queue.id
            and (since_ms is None or row.facts.enqueued_ms >= since_ms)
            and (state is None or shown(row.facts, self.now_ms, at_head=self._at_head(row)) == state)
        ]
        return found[:limit]

    def message(self, message_id: str) -> StoredMessage | None:
        number = self._t.numbers.get(message_id)
        return None if number is None else self._stored(self._t.messages[number])

    def attempts(self, message_id: str) -> list[Attempt]:
        rows = [a for a in self._t.attempts.values() if a.message_id == message_id]
        return sorted(rows, key=lambda attempt: attempt.delivery)

    def records(self, message_id: str) -> list[DeadLetter]:
        rows = [r for r in self._t.dead.values() if r.message_id == message_id]
        return sorted(rows, key=lambda record: record.redrive_count)

    def slice_end(self, after_id: int, limit: int) -> int | None:
        return max(sorted(number for number in self._t.messages if number > after_id)[:limit], default=None)

    def held_of_job(self, job_key: str, after_id: int, until_id: int) -> list[str]:
        rows = (row.facts for n, row in sorted(self._t.messages.items()) if after_id < n <= until_id)
        return [facts.message_id for facts in rows if facts.job_key == job_key]

    def dead_of_job(self, job_key: str, after: str, limit: int) -> list[str]:
        rows: list[DeadLetter | Tombstone] = [*self._t.dead.values(), *self._t.tombstones.values()]
        found = {row.message_id for row in rows if row.job_key == job_key and row.message_id > after}
        return sorted(found)[:limit]

    def tombstone(self, message_id: str) -> Tombstone | None:
        return self._t.tombstones.get(message_id)

    def dead_page(self, select: DeadFilter, after: tuple[int, str], limit: int) -> list[StoredMessage]:
        rows = [r for r in matching_dead(self._t, select) if (r.dead_ms, r.message_id) > after]
        page = (self._stored(self._t.messages[self._t.numbers[r.message_id]], r) for r in rows[:limit])
        return list(page)

    def dead_records(self, select: DeadFilter, after: tuple[int, str], limit: int) -> list[DeadLetter]:
        return [r for r in matching_dead(self._t, select) if (r.dead_ms, r.message_id) > after][:limit]

    def dead_groups(self, select: DeadFilter, limit: int) -> list[DeadGroup]:
        each = (
            DeadGroup(d.fingerprint, d.reason, d.error_type, 1, d.dead_ms, d.dead_ms, d.message_id)
            for d in matching_dead(self._t, select)
        )
        return merged_groups(each, limit)

    def keys(self) -> list[KeyRow]:
        return sorted(self._t.keys.values(), key=lambda row: row.created_ms)

    def audit_page(self, after_id: int, limit: int) -> list[AuditRow]:
        rows = sorted(self._t.audit.values(), key=lambda row: -row.id)
        return [row for row in rows if not after_id or row.id < after_id][:limit]

    @cached_property
    def _heads(self) -> dict[int, int]:
        """The number of the first message at rest by group, of groups that nothing holds."""
        rows = [row.facts for row in self._t.messages.values() if row.facts.slot == Slot.IN_GROUP]
        rows.sort(key=lambda facts: (facts.position, facts.id), reverse=True)
        heads = {facts.group_id: facts.id for facts in rows if facts.group_id is not None}
        return {n: head for n, head in heads.items() if self._t.groups[n].head_due_ms is not None}

    def _at_head(self, row: Row) -> bool:
        group_id = row.facts.group_id
        return group_id is None or self._heads.get(group_id) == row.facts.id

    def _stored(self, row: Row, record: DeadLetter | None = None) -> StoredMessage:
        facts = row.facts
        queue = self._t.queues[facts.queue_id]
        group = None if facts.group_id is None else self._t.groups[facts.group_id].key
        if facts.dead and record is None:
            record = next(
                (r for r in self._t.dead.values() if r.message_id == facts.message_id and not r.closed_ms),
                None,
            )
        return StoredMessage(
            facts, queue.title, group, row.headers, row.body, facts.body_hash, self._at_head(row), record
        )
