"""Selections and moves: one statement each, whatever the number of rows.

What holds no other transaction up: messages are locked with SKIP LOCKED only, so that nobody ever waits for
a message. Queues, groups, answers and windows are waited for, in this order, each kind in key order. Groups
are waited for once, at the first lock that a batch takes on any, and then for all that it is known to touch,
after the queues of all these; what a later phase finds in a group that another node holds is left for the
next batch, and one more queue, if another node holds it alone, makes the batch run again. The end of the
audit log's chain comes after all that: who holds it waits for nobody.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from redrive.domain.facts import Facts, Slot
from redrive.storage import rows as r
from redrive.storage.port import Hold, LeaseTerms, Locked
from redrive.storage.postgres import binary as b
from redrive.storage.postgres import columns
from redrive.storage.postgres.failures import Again
from redrive.storage.postgres.floors import AGED, AGED_DEAD, HEADS, LEASES, Floors, Key
from redrive.storage.postgres.records import Records, queue_values
from redrive.storage.postgres.session import Session
from redrive.storage.values import Acked, Claimed, Group, NewMessage, Queue

_HOLDS: dict[Hold, str] = {
    "shared": "queues_shared",
    "leasing": "queues_leasing",
    "alone": "queues_alone",
}
_AT_ONCE = {"queues_shared": "queues_shared_now", "queues_by_id": "queues_by_id_now"}
_GROUP_ROUNDS = 2  # of looking for groups that other nodes make or prune at this very moment


class PostgresTransaction(Records):
    """One write transaction; see ``storage.port.Transaction`` for what each does."""

    def __init__(self, session: Session, floors: Floors, *, ahead: bool) -> None:
        super().__init__(session, floors, ahead=ahead)
        self._versions: dict[int, int] = {}  # queue id → the row version that was read
        self._held_groups: dict[int, Group] = {}  # locked with their messages, not changed since
        self._acks: Sequence[tuple[str, str]] | None = None
        self._ack_values = b"", b""  # of those: made for `expect`, asked for once more by `ack`
        self._waited = False  # for groups: from now on others' are skipped

    def expect(self, names: Sequence[str], hold: Hold, acks: Sequence[tuple[str, str]]) -> None:
        if names:
            self._ask_early(_HOLDS[hold], b.texts(names))
        if acks:
            self._acks, self._ack_values = acks, columns.ack_values(acks)
            self._ask_early("ack", *self._ack_values)

    # -- clock
    def write_tick(self, now_ms: int) -> None:
        self._write("write_tick", b.int8(now_ms), b.int8(self._tick_ms))
        self._tick_ms = now_ms

    def shift(self, gap_ms: int, since_ms: int) -> int | None:
        """As the protocol says, by one node alone."""
        self.not_too_early()
        [(tick_ms,)] = self._session.fetch("last_tick")
        if tick_ms != since_ms:
            self._tick_ms = tick_ms
            self._floors.forget()
            return None
        self.wrote = True
        self._floors.forget()
        self._session.fetch("all_queues")  # before all the groups that are shifted
        gap, since = b.int8(gap_ms), b.int8(since_ms)
        [(leases,)] = self._session.fetch("shift_leases", gap)
        [(backoffs,)] = self._session.fetch("shift_backoffs", gap, since)
        self._write("shift_heads")
        self._write("shift_dedup", gap)
        return int(leases + backoffs)

    # -- queues
    def queues(self, names: Sequence[str], hold: Hold = "shared") -> dict[str, Queue]:
        found = {queue.name: queue for queue in self._queues(self._patient(_HOLDS[hold]), b.texts(names))}
        missing = [name for name in names if name not in found]
        if missing and hold != "shared":  # got or lost its limit while it was waited for: as it is now
            found.update((queue.name, queue) for queue in self._queues(_HOLDS[hold], b.texts(missing)))
        return found

    def queues_by_id(self, ids: Sequence[int]) -> dict[int, Queue]:
        return {queue.id: queue for queue in self._queues(self._patient("queues_by_id"), b.int8s(ids))}

    def _patient(self, name: str) -> str:
        """The statement that waits for queues, as long as none of them and no group is held."""
        return _AT_ONCE.get(name, name) if self._waited or self._versions else name

    def _queues(self, name: str, keys: bytes) -> list[Queue]:
        rows = self._fetch(name, keys)
        self._versions.update((row[0], row[-2]) for row in rows)
        if rows:
            self.xid = rows[0][-1]  # locking a row has given us one
        return [r.queue_from(row[:-2]) for row in rows]

    def insert_queue(self, queue: Queue) -> Queue:
        """The queue with its number. When another node has just made one of this name, the batch runs
        again and finds it."""
        self.wrote = True
        rows = self._session.fetch("insert_queue", *queue_values(queue))
        if not rows:
            raise Again(f"another node has just made the queue {queue.name}")
        [(number, version)] = rows
        self._versions[number] = version
        return msgspec.structs.replace(queue, id=number)

    def update_queue(self, queue: Queue) -> None:
        """Write the row. When another node has changed it since it was read, the batch runs again."""
        self.wrote = True
        version = b.int8(self._versions[queue.id])
        if self._waited:
            self._session.later("queue_now", b.int8(queue.id))
        rows = self._session.fetch("update_queue", *queue_values(queue), b.int8(queue.id), version)
        if not rows:
            raise Again(f"another node has just changed the queue {queue.name}")
        self._versions[queue.id] = rows[0][0]

    def remove_queue(self, queue_id: int) -> None:
        for name in (
            "remove_queue_groups",
            "remove_queue_dedup",
            "remove_queue_stats",
            "remove_queue_policies",
            "remove_queue",
        ):
            self._write(name, b.int8(queue_id))

    def queues_naming(self, dead_letter_queue: str) -> list[str]:
        return [row[0] for row in self._session.fetch("queues_naming", b.text(dead_letter_queue))]

    # -- FIFO groups
    def groups(self, keys: Sequence[tuple[int, str]]) -> dict[tuple[int, str], Group]:
        if not keys:
            return {}
        self.wrote = True
        for _ in range(_GROUP_ROUNDS):
            name = "groups_by_key_free" if self._waited else "groups_by_key"
            self._waited = True
            found = [r.group_from(row) for row in self._session.fetch(name, *columns.key_columns(keys))]
            if len(found) == len(set(keys)):
                return {(group.queue_id, group.key): group for group in found}
        raise Again("groups were in the hands of other nodes")

    def groups_by_id(self, ids: Sequence[int]) -> dict[int, Group]:
        wanted = [number for number in ids if number not in self._held_groups]
        if wanted:
            rows = self._session.fetch("groups_by_id", b.int8s(wanted))
            self._held_groups.update((row[0], r.group_from(row)) for row in rows)
        held = self._held_groups
        return {number: msgspec.structs.replace(held[number]) for number in ids if number in held}

    def _hold(
        self,
        ids: set[int],
        message_ids: Sequence[str],
        queue_ids: set[int],
        beside: Sequence[tuple[int, str]] = (),
    ) -> set[int]:
        """Lock these groups, those that a move of these messages may touch, and those ``beside``, after the
        queues of them all and ``queue_ids``; which of ``ids`` are ours now, with all that belongs to them."""
        rows = self._session.fetch(
            "group_partners", b.int8s(sorted(ids)), b.uuids(message_ids), *columns.key_columns(beside),
            b.int8s(sorted(queue_ids)),
        )  # fmt: skip
        self._session.later(
            self._patient("queues_by_id"), b.int8s(sorted(queue_ids | {queue_id for *_, queue_id in rows}))
        )
        name = "groups_by_id_free" if self._waited else "groups_by_id"
        self._waited = True
        partners = {partner for _, partner, _ in rows if partner is not None}
        held = {
            row[0]: r.group_from(row) for row in self._session.fetch(name, b.int8s(sorted(ids | partners)))
        }
        lacking = {own for own, partner, _ in rows if partner is not None and partner not in held}
        self._held_groups.update((number, held[number]) for number in ids & held.keys())
        return (ids & held.keys()) - lacking

    def _unheld(self, facts: dict[str, Facts]) -> list[Facts]:
        """Those of these rows whose groups nobody else holds; they are ours from now on."""
        groups = {row.group_id for row in facts.values() if row.group_id is not None}
        queues = {row.queue_id for row in facts.values() if row.group_id is None}
        held = self._hold(groups, sorted(facts), queues) if groups else set()
        return [row for row in facts.values() if row.group_id is None or row.group_id in held]

    def blocked_groups(self, queue_id: int, limit: int) -> list[Group]:
        self._waited = True
        rows = self._session.fetch("blocked_groups", b.int8(queue_id), b.int8(limit))
        return [r.group_from(row) for row in rows]

    def write_groups(self, groups: Sequence[Group]) -> None:
        for group in groups:
            self._held_groups.pop(group.id, None)
            if group.head_due_ms is not None:
                self._floors.put((group.queue_id, HEADS), group.head_due_ms)
        self._write(
            "write_groups",
            b.int8s([g.id for g in groups]),
            b.int8s([g.live for g in groups]),
            b.int8s([g.next_position for g in groups]),
            b.int8s_or_null([g.head_due_ms for g in groups]),
            b.int8s_or_null([g.busy for g in groups]),
            b.int8s([g.blocked for g in groups]),
        )

    def head(self, group_id: int) -> tuple[int, int] | None:
        rows = self._session.fetch("head", b.int8(group_id))
        return (rows[0][0], rows[0][1]) if rows else None

    # -- selections
    def claim(self, queue_id: int, levels: Sequence[int], limit: int, terms: LeaseTerms) -> list[Claimed]:
        asked = (
            b.int8(queue_id), b.int4s(levels), b.int8(self.now_ms), b.int8(limit), b.int8(terms.bytes_max),
            self._level_floors(queue_id, levels), b.texts([terms.handle() for _ in range(limit)]),
            b.int8(terms.leased_ms), b.int8(terms.until_ms), b.text(terms.consumer_id),
        )  # fmt: skip
        rows = self._session.fetch("claim", *asked)
        if rows and rows[0][0] is None:  # not all that is due may go together
            rows = self._session.fetch("claim_part", *asked)
        if rows:
            self.wrote = True
            rows.sort(key=columns.place_in_queue)
            for row in reversed(rows):  # the first row of each level stays
                self._floors.reached((queue_id, row[3]), row[-1])
        else:
            for level in levels:
                self._floors.reached((queue_id, level), self.now_ms)
        return [Claimed(*row[:-1]) for row in rows]

    def _level_floors(self, queue_id: int, levels: Sequence[int]) -> bytes:
        return b.int8s([self._floors.of((queue_id, level)) for level in levels])

    def claim_groups(self, queue_id: int, limit: int, terms: LeaseTerms) -> list[Claimed]:
        """Lock the due groups, then read their heads in a fresh snapshot: under one snapshot, a head that is
        raced for is skipped and its group marked busy, stranded."""
        floor = self._floors.of((queue_id, HEADS))
        groups = self._due_groups(queue_id, limit, floor)
        if floor and not groups:  # what another node has made a head may be due before all that we know
            groups = self._due_groups(queue_id, limit, 0)
        if not groups:
            return []
        self._floors.reached((queue_id, HEADS), groups[0][2])
        ids, keys = b.int8s([row[0] for row in groups]), b.texts([row[1] for row in groups])
        rows = self._session.fetch("group_heads", ids, keys, b.int8(terms.bytes_max))
        claimed = [Claimed(*[*row[:-2], terms.handle(), row[-1]]) for row in rows]
        if claimed:
            places = {row[0]: row[3] for row in groups}
            busy = [(c.group_id, c.id) for c in claimed if c.group_id is not None]
            self._held_groups = {n: g for n, g in self._held_groups.items() if n not in places}
            self._write("busy_groups", b.tids([places[g] for g, _ in busy]), b.int8s([m for _, m in busy]))
            self._write(
                "lease", b.tids([row[-2] for row in rows]), b.texts([c.handle for c in claimed]),
                b.int8(terms.leased_ms), b.int8(terms.until_ms), b.text(terms.consumer_id),
            )  # fmt: skip
        return claimed

    def _due_groups(self, queue_id: int, limit: int, floor: int) -> list[tuple[int, str, int, bytes]]:
        return self._session.fetch("due_groups", *map(b.int8, (queue_id, self.now_ms, limit, floor)))

    def next_due(self, queue_id: int, levels: Sequence[int], grouped: bool) -> int | None:
        if grouped:
            rows = self._session.fetch("next_due_group", b.int8(queue_id))
        else:
            floors = self._level_floors(queue_id, levels)
            rows = self._session.fetch("next_due", b.int8(queue_id), b.int4s(levels), floors)
        return rows[0][0] if rows else None

    def leased_count(self, queue_id: int, limit: int) -> int:
        return int(self._session.fetch("leased_count", b.int8(queue_id), b.int8(limit))[0][0])

    def ack(self, items: Sequence[tuple[str, str]]) -> list[Acked]:
        rows = self._fetch("ack", *(self._ack_values if items is self._acks else columns.ack_values(items)))
        if rows:
            self.wrote, self.xid = True, rows[0][4]
        return [Acked(*row[:4]) for row in rows]

    def lock(self, message_ids: Sequence[str], beside: Sequence[tuple[int, str]] = ()) -> Locked:
        """As the protocol says. Messages without a group take one statement; the others have their groups
        locked first."""
        missing = {message_id for message_id in message_ids if b.is_message_id(message_id)}
        found = self._facts("lock", b.uuids(sorted(missing)))
        missing -= found.keys()
        if not missing:
            return Locked(found)
        existing = dict(self._session.fetch("existing", b.uuids(sorted(missing))))
        groups = {group_id for group_id in existing.values() if group_id is not None}
        if groups:
            queues = {row.queue_id for row in found.values()}
            held = self._hold(groups, sorted(existing.keys() | found.keys()), queues, beside)
            free = [message_id for message_id, group_id in existing.items() if group_id in held]
            found |= self._facts("lock_grouped", b.uuids(sorted(free)))
        return Locked(found, frozenset(existing.keys() - found.keys()))

    def _facts(self, name: str, *values: b.Parameter) -> dict[str, Facts]:
        return {row[1]: r.facts_from(row) for row in self._session.fetch(name, *values)}

    def due_leases(self, limit: int) -> list[Facts]:
        return self._over("due_leases", LEASES, limit)

    def aged(self, limit: int, *, dead: bool) -> list[Facts]:
        return self._over("aged_dead", AGED_DEAD, limit) if dead else self._over("aged", AGED, limit)

    def _over(self, name: str, key: Key, limit: int) -> list[Facts]:
        """What is over by now, of all queues; the floor rises when a slice was not full."""
        found = self._facts(name, b.int8(self.now_ms), b.int8(limit), b.int8(self._floors.of(key)))
        if len(found) < limit:
            self._floors.reached(key, self.now_ms)
        return self._unheld(found)

    def in_queue(self, queue_id: int, before_ms: int | None, limit: int) -> list[Facts]:
        rows = self._facts("in_queue", b.int8(queue_id), b.int8(before_ms), b.int8(limit))
        return self._unheld(rows)

    def holds_any(self, queue_id: int, before_ms: int | None) -> bool:
        [(answer,)] = self._session.fetch("holds_any", b.int8(queue_id), b.int8(before_ms))
        return bool(answer)

    # -- moves
    def _put(self, rows: Sequence[NewMessage] | Sequence[Facts]) -> None:
        for level in {(row.queue_id, row.priority, row.due_ms) for row in rows if row.slot == Slot.READY}:
            self._floors.put(level[:2], level[2])
        for key in (AGED, AGED_DEAD):
            self._floors.put(key, min(row.expires_ms for row in rows))

    def insert(self, rows: Sequence[NewMessage]) -> None:
        self._put(rows)
        self._write(
            "insert_messages",
            b.uuids([m.message_id for m in rows]),
            b.int8s([m.queue_id for m in rows]),
            b.int4s([m.slot for m in rows]),
            b.int4s([m.priority for m in rows]),
            b.int8s([m.due_ms for m in rows]),
            b.int8s([m.expires_ms for m in rows]),
            b.int8s_or_null([m.group_id for m in rows]),
            b.int8s([m.position for m in rows]),
            b.texts([m.job_key for m in rows]),
            b.int8s([m.enqueued_ms for m in rows]),
            b.byteas([m.headers for m in rows]),
            b.byteas([m.body for m in rows]),
            b.byteas([m.body_hash for m in rows]),
        )

    def touch(self, rows: Sequence[Facts]) -> None:
        for row in rows:
            self._floors.put(LEASES, row.lease_until_ms)
        until, cancelled = b.int8s([f.lease_until_ms for f in rows]), b.booleans([f.cancelled for f in rows])
        self._write("touch", *columns.fence(rows), until, cancelled)

    def reschedule(self, rows: Sequence[Facts]) -> None:
        self._put(rows)
        self._write(
            "reschedule",
            *columns.fence(rows),
            b.int4s([f.slot for f in rows]),
            b.int8s([f.due_ms for f in rows]),
            b.int4s([f.attempt for f in rows]),
            b.int4s([f.releases for f in rows]),
            b.int4s([f.ended for f in rows]),
            b.int8s([f.first_failed_ms for f in rows]),
        )

    def transfer(self, rows: Sequence[Facts]) -> None:
        self._put(rows)
        self._write(
            "transfer",
            *columns.fence(rows),
            b.int4s([f.slot for f in rows]),
            b.int8s([f.queue_id for f in rows]),
            b.int4s([f.priority for f in rows]),
            b.int8s([f.due_ms for f in rows]),
            b.int8s([f.expires_ms for f in rows]),
            b.int4s([f.attempt for f in rows]),
            b.int4s([f.releases for f in rows]),
            b.int4s([f.ended for f in rows]),
            b.booleans([f.cancelled for f in rows]),
            b.booleans([f.dead for f in rows]),
            b.int8s_or_null([f.group_id for f in rows]),
            b.int8s([f.position for f in rows]),
            b.int8s([f.first_failed_ms for f in rows]),
            b.int4s([f.redriven for f in rows]),
        )

    def remove(self, rows: Sequence[Facts]) -> None:
        self._write("remove", *columns.fence(rows))
