"""Selections and moves over dictionaries, written for plainness: this is what the SQL must equal."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from itertools import islice

import msgspec

from redrive.domain.facts import Ended, Facts, Slot
from redrive.storage.memory.evidence import MemoryEvidence
from redrive.storage.memory.plans import MemoryPlans
from redrive.storage.memory.select import matching_dead, portion
from redrive.storage.memory.tables import K, Row, Tables, V
from redrive.storage.port import Hold, LeaseTerms, Locked
from redrive.storage.values import (
    Acked,
    Attempt,
    Claimed,
    DeadFilter,
    DeadLetter,
    Group,
    KeyRow,
    NewMessage,
    Queue,
    Recorded,
)  # fmt: skip

#: What each move writes, as ``storage.port`` says; nothing else of the facts may reach the store.
_TOUCHED = ("lease_until_ms", "cancelled")
_RESCHEDULED = ("slot", "due_ms", "attempt", "releases", "ended", "first_failed_ms")
_TRANSFERRED = (
    "slot", "queue_id", "priority", "due_ms", "expires_ms", "attempt", "releases", "ended", "cancelled",
    "dead", "group_id", "position", "first_failed_ms", "redriven",
)  # fmt: skip


class MemoryTransaction(MemoryPlans, MemoryEvidence):
    """One write transaction over :class:`Tables`; see ``storage.port.Transaction`` for what each does."""

    def __init__(self, tables: Tables, now_ms: int) -> None:
        self.now_ms = now_ms
        self._t = tables

    def expect(self, names: Sequence[str], hold: Hold, acks: Sequence[tuple[str, str]]) -> None:
        pass  # nothing is far away

    # -- clock
    def last_tick_ms(self) -> int | None:
        return self._t.clock.get("tick")

    def write_tick(self, now_ms: int) -> None:
        self._t.put(self._t.clock, "tick", now_ms)

    def shift(self, gap_ms: int, since_ms: int) -> int:
        changed = 0
        for row in list(self._t.messages.values()):
            facts = copy(row.facts)
            if facts.slot == Slot.LEASED:
                facts.lease_until_ms += gap_ms
                facts.leased_ms += gap_ms
            elif facts.attempt > 0 and facts.due_ms > since_ms and facts.slot != Slot.HELD:
                facts.due_ms += gap_ms
            else:
                continue
            self._write(facts)
            changed += 1
        for group in list(self._t.groups.values()):
            if group.head_due_ms is not None:
                head = self._head(group.id)
                due_ms = None if head is None else head.due_ms
                self._t.put(self._t.groups, group.id, msgspec.structs.replace(group, head_due_ms=due_ms))
        for key, (message_id, until_ms) in list(self._t.duplicates.items()):
            self._t.put(self._t.duplicates, key, (message_id, until_ms + gap_ms))
        return changed

    # -- queues
    def queues(self, names: Sequence[str], hold: Hold = "shared") -> dict[str, Queue]:
        del hold  # there is nobody to hold it against
        return {q.name: copy(q) for q in self._t.queues.values() if q.name in names}

    def queues_by_id(self, ids: Sequence[int]) -> dict[int, Queue]:
        return {number: copy(self._t.queues[number]) for number in ids if number in self._t.queues}

    def insert_queue(self, queue: Queue) -> Queue:
        made = msgspec.structs.replace(queue, id=self._t.number())
        self._t.put(self._t.queues, made.id, made)
        return copy(made)

    def update_queue(self, queue: Queue) -> None:
        self._t.put(self._t.queues, queue.id, copy(queue))

    def remove_queue(self, queue_id: int) -> None:
        assert not any(row.facts.queue_id == queue_id for row in self._t.messages.values())
        self._t.drop(self._t.queues, queue_id)
        for group in [g for g in self._t.groups.values() if g.queue_id == queue_id]:
            self._t.drop(self._t.groups, group.id)
        for rule in [k for k in self._t.policies if k[0] == queue_id]:
            self._t.drop(self._t.policies, rule)
        for key in [k for k in self._t.duplicates if k[0] == queue_id]:
            self._t.drop(self._t.duplicates, key)
        for stat in [k for k in self._t.stats if k[0] == queue_id]:
            self._t.drop(self._t.stats, stat)

    def queues_naming(self, dead_letter_queue: str) -> list[str]:
        return sorted(q.name for q in self._t.queues.values() if q.dead_letter_queue == dead_letter_queue)

    # -- FIFO groups
    def groups(self, keys: Sequence[tuple[int, str]]) -> dict[tuple[int, str], Group]:
        known = {(g.queue_id, g.key): g for g in self._t.groups.values()}
        found = {}
        for queue_id, key in keys:
            group = known.get((queue_id, key))
            if group is None:
                group = Group(self._t.number(), queue_id, key)
                self._t.put(self._t.groups, group.id, group)
            found[queue_id, key] = copy(group)
        return found

    def groups_by_id(self, ids: Sequence[int]) -> dict[int, Group]:
        return {number: copy(self._t.groups[number]) for number in ids}

    def blocked_groups(self, queue_id: int, limit: int) -> list[Group]:
        rows = [copy(g) for g in self._t.groups.values() if g.queue_id == queue_id and g.blocked]
        return rows[:limit]

    def write_groups(self, groups: Sequence[Group]) -> None:
        for group in groups:
            self._t.put(self._t.groups, group.id, copy(group))

    def head(self, group_id: int) -> tuple[int, int] | None:
        head = self._head(group_id)
        return None if head is None else (head.id, head.due_ms)

    # -- selections
    def claim(self, queue_id: int, levels: Sequence[int], limit: int, terms: LeaseTerms) -> list[Claimed]:
        due = [
            row
            for row in self._t.messages.values()
            if row.facts.queue_id == queue_id
            and row.facts.slot == Slot.READY
            and row.facts.priority in levels
            and row.facts.due_ms <= self.now_ms
        ]
        due.sort(key=lambda row: (-row.facts.priority, row.facts.due_ms, row.facts.id))
        return [self._lease(row, terms) for row in portion(due, limit, terms.bytes_max)]

    def claim_groups(self, queue_id: int, limit: int, terms: LeaseTerms) -> list[Claimed]:
        due = [
            group
            for group in self._t.groups.values()
            if group.queue_id == queue_id
            and group.head_due_ms is not None
            and group.head_due_ms <= self.now_ms
        ]
        due.sort(key=lambda group: (group.head_due_ms, group.id))
        heads = [self._t.messages[head.id] for g in due if (head := self._head(g.id)) is not None]
        claimed = []
        for row in portion(heads, limit, terms.bytes_max):
            assert row.facts.group_id is not None
            group = self._t.groups[row.facts.group_id]
            taken = msgspec.structs.replace(group, head_due_ms=None, busy=row.facts.id)
            self._t.put(self._t.groups, group.id, taken)
            claimed.append(self._lease(row, terms, group.key))
        return claimed

    def next_due(self, queue_id: int, levels: Sequence[int], grouped: bool) -> int | None:
        if grouped:
            heads = (g.head_due_ms for g in self._t.groups.values() if g.queue_id == queue_id)
            return min((due for due in heads if due is not None), default=None)
        return min(
            (
                row.facts.due_ms
                for row in self._t.messages.values()
                if row.facts.queue_id == queue_id
                and row.facts.slot == Slot.READY
                and row.facts.priority in levels
            ),
            default=None,
        )

    def leased_count(self, queue_id: int, limit: int) -> int:
        rows = (r for r in self._t.messages.values() if r.facts.queue_id == queue_id)
        return min(limit, sum(1 for row in rows if row.facts.slot == Slot.LEASED))

    def ack(self, items: Sequence[tuple[str, str]]) -> list[Acked]:
        acked = []
        for message_id, handle in items:
            number = self._t.numbers.get(message_id)
            if number is None:
                continue
            facts = self._t.messages[number].facts
            plain = facts.slot == Slot.LEASED and facts.group_id is None
            free = not (facts.dead or facts.cancelled or facts.redriven)
            if plain and free and facts.handle == handle:
                acked.append(Acked(message_id, facts.queue_id, facts.leased_ms, facts.attempt))
                self.remove([facts])
        return acked

    def lock(self, message_ids: Sequence[str], beside: Sequence[tuple[int, str]] = ()) -> Locked:
        del beside  # there is nobody to wait for
        numbers = (self._t.numbers.get(message_id) for message_id in message_ids)
        rows = (self._t.messages[number].facts for number in numbers if number is not None)
        return Locked({facts.message_id: copy(facts) for facts in rows})

    def due_leases(self, limit: int) -> list[Facts]:
        over = (
            row.facts
            for row in self._t.messages.values()
            if row.facts.slot == Slot.LEASED and row.facts.lease_until_ms <= self.now_ms
        )
        rows = sorted(over, key=lambda facts: (facts.queue_id, facts.lease_until_ms, facts.id))
        return [copy(facts) for facts in rows[:limit]]

    def aged(self, limit: int, *, dead: bool) -> list[Facts]:
        over = (
            row.facts
            for row in self._t.messages.values()
            if row.facts.slot != Slot.LEASED
            and row.facts.dead == dead
            and row.facts.expires_ms <= self.now_ms
        )
        rows = sorted(over, key=lambda facts: (facts.expires_ms, facts.id))
        return [copy(facts) for facts in rows[:limit]]

    def in_queue(self, queue_id: int, before_ms: int | None, limit: int) -> list[Facts]:
        rows = (
            row.facts
            for row in self._t.messages.values()
            if row.facts.queue_id == queue_id and (before_ms is None or row.facts.enqueued_ms <= before_ms)
        )
        return [copy(facts) for facts in sorted(rows, key=lambda facts: facts.id)[:limit]]

    def holds_any(self, queue_id: int, before_ms: int | None) -> bool:
        return bool(self.in_queue(queue_id, before_ms, 1))

    # -- moves
    def insert(self, rows: Sequence[NewMessage]) -> None:
        for new in rows:
            facts = Facts(
                id=self._t.number(), message_id=new.message_id, queue_id=new.queue_id, slot=new.slot,
                priority=new.priority, due_ms=new.due_ms, expires_ms=new.expires_ms, attempt=0, releases=0,
                delivery=0, handle=None, leased_ms=0, lease_until_ms=0, ended=Ended.NEVER, cancelled=False,
                dead=False, group_id=new.group_id, position=new.position,
                job_key=new.job_key or new.message_id, enqueued_ms=new.enqueued_ms, consumer_id=None,
                first_failed_ms=0, redriven=0, body_hash=new.body_hash,
            )  # fmt: skip
            self._t.put(self._t.numbers, facts.message_id, facts.id)
            self._t.put(self._t.messages, facts.id, Row(facts, new.job_key, new.headers, new.body))

    def touch(self, rows: Sequence[Facts]) -> None:
        self._move(rows, _TOUCHED)

    def reschedule(self, rows: Sequence[Facts]) -> None:
        self._move(rows, _RESCHEDULED)

    def transfer(self, rows: Sequence[Facts]) -> None:
        self._move(rows, _TRANSFERRED)

    def remove(self, rows: Sequence[Facts]) -> None:
        for facts in rows:
            self._t.drop(self._t.messages, facts.id)
            self._t.drop(self._t.numbers, facts.message_id)

    # -- records
    def insert_dead(self, rows: Sequence[DeadLetter]) -> None:
        for record in rows:
            key = record.message_id, record.redrive_count
            assert key not in self._t.dead, f"a second dead-letter record for {key}"
            self._t.put(self._t.dead, key, copy(record))

    def open_records(self, message_ids: Sequence[str]) -> dict[str, DeadLetter]:
        rows = (r for r in self._t.dead.values() if r.closed_ms is None and r.message_id in message_ids)
        return {record.message_id: copy(record) for record in rows}

    def close_records(self, rows: Sequence[DeadLetter]) -> None:
        for record in rows:
            key = record.message_id, record.redrive_count
            if key in self._t.dead:
                self._t.put(self._t.dead, key, copy(record))

    def unblock(self, origin: str) -> None:
        for key, record in list(self._t.dead.items()):
            if record.origin == origin and record.closed_ms is None:
                self._t.put(self._t.dead, key, msgspec.structs.replace(record, blocks=False))

    def select_dead(self, select: DeadFilter, after: tuple[int, str], limit: int) -> list[DeadLetter]:
        rows = (r for r in matching_dead(self._t, select) if (r.dead_ms, r.message_id) > after)
        return [copy(record) for record in islice(rows, limit)]

    def insert_attempts(self, rows: Sequence[Attempt]) -> None:
        for attempt in rows:
            key = attempt.message_id, attempt.delivery
            if key not in self._t.attempts:
                self._t.put(self._t.attempts, key, attempt)

    def find_recorded(self, hashes: Sequence[bytes], slots: Sequence[int]) -> dict[bytes, Recorded]:
        found = {}
        for slot in sorted(slots):
            for digest in hashes:
                if (slot, digest) in self._t.recorded:
                    found[digest] = self._t.recorded[slot, digest]
        return found

    def record(self, rows: Sequence[tuple[int, bytes, Recorded]]) -> None:
        for slot, digest, recorded in rows:
            self._t.put(self._t.recorded, (slot, digest), recorded)

    def find_duplicates(self, keys: Sequence[tuple[int, bytes]]) -> dict[tuple[int, bytes], str]:
        rows = ((key, self._t.duplicates[key]) for key in keys if key in self._t.duplicates)
        return {key: message_id for key, (message_id, until_ms) in rows if until_ms > self.now_ms}

    def insert_duplicates(self, rows: Sequence[tuple[int, bytes, str, int]]) -> None:
        for queue_id, digest, message_id, until_ms in rows:
            self._t.put(self._t.duplicates, (queue_id, digest), (message_id, until_ms))

    def write_stats(self, node: str, rows: Sequence[tuple[int, int, bytes]]) -> None:
        for queue_id, slot, raw in rows:
            self._t.put(self._t.stats, (queue_id, node, slot), raw)

    def prune(self, limit: int, slot_floor: int, record_floor_ms: int, stats_floor: int) -> int:
        t, held = self._t, self._t.numbers.keys()
        return (
            self._drop(t.recorded, [k for k in t.recorded if k[0] < slot_floor], limit)
            + self._drop(
                t.duplicates, [k for k, (_, until) in t.duplicates.items() if until <= self.now_ms], limit
            )
            + self._drop(
                t.dead,
                [
                    key
                    for key, record in t.dead.items()
                    if record.closed_ms and record.closed_ms < record_floor_ms and key[0] not in held
                ],
                limit,
            )
            + self._drop(
                t.attempts,
                [k for k, a in t.attempts.items() if a.ended_ms < record_floor_ms and k[0] not in held],
                limit,
            )
            + self._drop(t.stats, [k for k in t.stats if 0 < k[2] < stats_floor], limit)
            + self.prune_plans(limit, record_floor_ms)
            + self._drop(t.groups, [k for k, g in t.groups.items() if not g.live and not g.blocked], limit)
        )

    def put_key(self, row: KeyRow) -> None:
        self._t.put(self._t.keys, row.key_id, copy(row))

    # -- within
    def _drop(self, table: dict[K, V], keys: list[K], limit: int) -> int:
        for key in keys[:limit]:
            self._t.drop(table, key)
        return len(keys[:limit])

    def _write(self, facts: Facts) -> None:
        self._t.put(
            self._t.messages, facts.id, msgspec.structs.replace(self._t.messages[facts.id], facts=copy(facts))
        )

    def _move(self, rows: Sequence[Facts], fields: Sequence[str]) -> None:
        for facts in rows:
            stored = self._t.messages[facts.id].facts
            assert stored.delivery == facts.delivery
            self._write(msgspec.structs.replace(stored, **{name: getattr(facts, name) for name in fields}))

    def _head(self, group_id: int) -> Facts | None:
        members = (
            row.facts
            for row in self._t.messages.values()
            if row.facts.group_id == group_id and row.facts.slot == Slot.IN_GROUP
        )
        return min(members, key=lambda facts: (facts.position, facts.id), default=None)

    def _lease(self, row: Row, terms: LeaseTerms, group_key: str | None = None) -> Claimed:
        before = row.facts
        facts = msgspec.structs.replace(
            before,
            slot=Slot.LEASED,
            attempt=before.attempt + 1,
            delivery=before.delivery + 1,
            handle=terms.handle(),
            leased_ms=terms.leased_ms,
            lease_until_ms=terms.until_ms,
            consumer_id=terms.consumer_id,
        )
        self._write(facts)
        assert facts.handle is not None
        return Claimed(
            facts.id, facts.message_id, row.job_key, facts.priority, facts.attempt, facts.delivery,
            before.ended, facts.enqueued_ms, facts.group_id, row.headers, row.body, facts.body_hash,
            facts.dead, facts.redriven, facts.handle, group_key,
        )  # fmt: skip
