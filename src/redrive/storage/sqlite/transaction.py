"""Selections and moves as prepared statements over the one writing connection."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import apsw
import msgspec

from redrive.domain.facts import Ended, Facts
from redrive.storage import rows as r
from redrive.storage.audit_chain import append
from redrive.storage.port import Hold, LeaseTerms, Locked
from redrive.storage.sqlite import rows as out
from redrive.storage.sqlite.plans import SqlitePlans
from redrive.storage.statements import Statement, load
from redrive.storage.values import (
    Acked,
    Attempt,
    AuditHead,
    AuditRow,
    Claimed,
    DeadFilter,
    DeadLetter,
    FingerprintRule,
    Group,
    KeyRow,
    NewMessage,
    Queue,
    Recorded,
    Tombstone,
)  # fmt: skip

SQL: dict[str, Statement] = load("redrive.storage.sqlite")


class SqliteTransaction(SqlitePlans):
    """One write transaction; see ``storage.port.Transaction`` for what each does."""

    def __init__(self, connection: apsw.Connection, now_ms: int) -> None:
        self.now_ms = now_ms
        self._connection = connection
        self._run = connection.execute
        self._many = connection.executemany

    def _one(self, name: str, *values: Any) -> Any:
        """The first column of the first row, or None."""
        for row in self._run(SQL[name].sql, values):
            return row[0]
        return None

    def _all(self, name: str, *values: Any) -> list[Any]:
        return list(self._run(SQL[name].sql, values))

    def _each(self, name: str, rows: Iterable[Sequence[Any]]) -> None:
        self._many(SQL[name].sql, rows)

    def expect(self, names: Sequence[str], hold: Hold, acks: Sequence[tuple[str, str]]) -> None:
        pass  # nothing is far away

    # -- clock
    def last_tick_ms(self) -> int | None:
        found: int | None = self._one("last_tick")
        return found

    def write_tick(self, now_ms: int) -> None:
        self._run(SQL["write_tick"].sql, (now_ms,))

    def shift(self, gap_ms: int, since_ms: int) -> int:
        before = self._connection.total_changes()
        self._run(SQL["shift_leases"].sql, {"gap": gap_ms})
        self._run(SQL["shift_backoffs"].sql, {"gap": gap_ms, "since": since_ms})
        changed = self._connection.total_changes() - before
        self._run(SQL["shift_heads"].sql)
        self._run(SQL["shift_dedup"].sql, {"gap": gap_ms})
        return changed

    # -- queues
    def queues(self, names: Sequence[str], hold: Hold = "shared") -> dict[str, Queue]:
        del hold  # there is nobody to hold it against
        return {row[1]: r.queue_from(row) for row in self._all("queues_by_name", out.json_list(names))}

    def queues_by_id(self, ids: Sequence[int]) -> dict[int, Queue]:
        return {row[0]: r.queue_from(row) for row in self._all("queues_by_id", out.json_list(ids))}

    def insert_queue(self, queue: Queue) -> Queue:
        number = self._one("insert_queue", *out.queue_columns(queue))
        return msgspec.structs.replace(queue, id=number)

    def update_queue(self, queue: Queue) -> None:
        self._run(SQL["update_queue"].sql, (*out.queue_columns(queue), queue.id))

    def remove_queue(self, queue_id: int) -> None:
        for name in (
            "remove_queue_groups",
            "remove_queue_dedup",
            "remove_queue_stats",
            "remove_queue_policies",
            "remove_queue",
        ):
            self._run(SQL[name].sql, (queue_id,))

    def queues_naming(self, dead_letter_queue: str) -> list[str]:
        return [row[0] for row in self._all("queues_naming", dead_letter_queue)]

    def fingerprint_policies(self, queue_id: int) -> list[FingerprintRule]:
        return [FingerprintRule(*row) for row in self._all("fingerprint_policies", queue_id)]

    def put_fingerprint_policy(self, queue_id: int, rule: FingerprintRule) -> None:
        self._run(SQL["put_fingerprint_policy"].sql, (queue_id, *msgspec.structs.astuple(rule)))

    def drop_fingerprint_policy(self, queue_id: int, fingerprint: str) -> None:
        self._run(SQL["drop_fingerprint_policy"].sql, (queue_id, fingerprint))

    # -- FIFO groups
    def groups(self, keys: Sequence[tuple[int, str]]) -> dict[tuple[int, str], Group]:
        found = {}
        for queue_id, key in keys:
            rows = self._all("group_by_key", queue_id, key)
            if not rows:
                self._run(SQL["insert_group"].sql, (queue_id, key))
                rows = self._all("group_by_key", queue_id, key)
            found[queue_id, key] = r.group_from(rows[0])
        return found

    def groups_by_id(self, ids: Sequence[int]) -> dict[int, Group]:
        return {row[0]: r.group_from(row) for row in self._all("groups_by_id", out.json_list(ids))}

    def blocked_groups(self, queue_id: int, limit: int) -> list[Group]:
        return [r.group_from(row) for row in self._all("blocked_groups", queue_id, limit)]

    def write_groups(self, groups: Sequence[Group]) -> None:
        self._each(
            "write_group",
            [(g.live, g.next_position, g.head_due_ms, g.busy, g.blocked, g.id) for g in groups],
        )

    def head(self, group_id: int) -> tuple[int, int] | None:
        rows = self._all("head", group_id)
        return rows[0] if rows else None

    # -- selections
    def claim(self, queue_id: int, levels: Sequence[int], limit: int, terms: LeaseTerms) -> list[Claimed]:
        portion = _Portion(limit, terms)
        for level in levels:
            if portion.full:
                break
            parameters = (queue_id, level, self.now_ms, limit - len(portion.rows))
            portion.fill(self._run(SQL["claim"].sql, parameters))
        return self._lease(portion.rows, terms)

    def claim_groups(self, queue_id: int, limit: int, terms: LeaseTerms) -> list[Claimed]:
        portion = _Portion(limit, terms)
        taken = []
        for group_id, key in self._all("due_groups", queue_id, self.now_ms, limit):
            heads = self._all("group_head", group_id)
            if heads and portion.fill([(*heads[0], key)]):
                taken.append((heads[0][0], group_id))
            if portion.full:
                break
        self._each("busy_group", taken)
        return self._lease(portion.rows, terms)

    def _lease(self, portion: list[Claimed], terms: LeaseTerms) -> list[Claimed]:
        leased_ms, until_ms, consumer_id = terms.leased_ms, terms.until_ms, terms.consumer_id
        self._each("lease", [(row.handle, leased_ms, until_ms, consumer_id, row.id) for row in portion])
        return portion

    def next_due(self, queue_id: int, levels: Sequence[int], grouped: bool) -> int | None:
        if grouped:
            found: int | None = self._one("next_due_group", queue_id)
            return found
        times = (self._one("next_due", queue_id, level) for level in levels)
        return min((due for due in times if due is not None), default=None)

    def leased_count(self, queue_id: int, limit: int) -> int:
        return int(self._one("leased_count", queue_id, limit))

    def ack(self, items: Sequence[tuple[str, str]]) -> list[Acked]:
        gone = list(self._many(SQL["ack"].sql, items))
        numbers = [(row[0],) for row in gone]
        self._each("remove_acked", numbers)
        self._each("remove_body", numbers)
        return [
            Acked(message_id, queue_id, leased, attempt) for _, message_id, queue_id, leased, attempt in gone
        ]

    def lock(self, message_ids: Sequence[str], beside: Sequence[tuple[int, str]] = ()) -> Locked:
        del beside  # there is nobody to wait for
        rows = self._all("lock", out.json_list(message_ids))
        return Locked({row[1]: r.facts_from(row) for row in rows})

    def due_leases(self, limit: int) -> list[Facts]:
        found: list[Facts] = []
        for (queue_id,) in self._all("queue_ids"):
            if len(found) == limit:
                break
            rows = self._all("due_leases", queue_id, self.now_ms, limit - len(found))
            found.extend(map(r.facts_from, rows))
        return found

    def aged(self, limit: int, *, dead: bool) -> list[Facts]:
        rows = self._all("aged_dead" if dead else "aged", self.now_ms, limit)
        return [r.facts_from(row) for row in rows]

    def in_queue(self, queue_id: int, before_ms: int | None, limit: int) -> list[Facts]:
        return [r.facts_from(row) for row in self._all("in_queue", queue_id, before_ms, limit)]

    def holds_any(self, queue_id: int, before_ms: int | None) -> bool:
        return bool(self._all("in_queue", queue_id, before_ms, 1))

    # -- moves
    def insert(self, rows: Sequence[NewMessage]) -> None:
        first = 1 + (self._one("last_message") or 0)  # the only writer may number; RETURNING costs twice that
        numbered = list(enumerate(rows, first))
        columns = (
            (
                n, m.message_id, m.queue_id, m.slot, m.priority, m.due_ms, m.expires_ms, m.group_id,
                m.position, m.job_key, m.enqueued_ms, m.headers, m.body_hash,
            )
            for n, m in numbered
        )  # fmt: skip
        self._each("insert_message", columns)
        self._each("insert_body", [(n, m.body) for n, m in numbered])

    def touch(self, rows: Sequence[Facts]) -> None:
        self._each("touch", [(f.lease_until_ms, f.cancelled, f.id, f.delivery) for f in rows])

    def reschedule(self, rows: Sequence[Facts]) -> None:
        self._each(
            "reschedule",
            [
                (f.slot, f.due_ms, f.attempt, f.releases, f.ended, f.first_failed_ms, f.id, f.delivery)
                for f in rows
            ],
        )

    def transfer(self, rows: Sequence[Facts]) -> None:
        self._each(
            "transfer",
            [
                (
                    f.slot, f.queue_id, f.priority, f.due_ms, f.expires_ms, f.attempt, f.releases, f.ended,
                    f.cancelled, f.dead, f.group_id, f.position, f.first_failed_ms, f.redriven, f.id,
                    f.delivery,
                )
                for f in rows
            ],
        )  # fmt: skip

    def remove(self, rows: Sequence[Facts]) -> None:
        self._each("remove", [(f.id, f.delivery) for f in rows])
        self._each("remove_body", [(f.id,) for f in rows])

    # -- records
    def insert_dead(self, rows: Sequence[DeadLetter]) -> None:
        self._each("insert_dead", map(out.dead_columns, rows))

    def open_records(self, message_ids: Sequence[str]) -> dict[str, DeadLetter]:
        rows = self._all("open_records", out.json_list(message_ids))
        return {row[0]: r.dead_from(row) for row in rows}

    def close_records(self, rows: Sequence[DeadLetter]) -> None:
        self._each(
            "close_record",
            [(d.closed_ms, d.closed_by, d.blocks, d.reason, d.message_id, d.redrive_count) for d in rows],
        )

    def unblock(self, origin: str) -> None:
        self._run(SQL["unblock"].sql, (origin,))

    def select_dead(self, select: DeadFilter, after: tuple[int, str], limit: int) -> list[DeadLetter]:
        parameters = out.filter_parameters(select, after_ms=after[0], after_id=after[1], limit=limit)
        found: dict[str, int] = {}
        for name in ("dead_page_by_origin", "dead_page_by_queue"):
            found.update(self._run(SQL[name].sql, parameters))
        page = sorted(found, key=lambda message_id: (found[message_id], message_id))[:limit]
        records = self.open_records(page)
        return [records[message_id] for message_id in page]

    def insert_attempts(self, rows: Sequence[Attempt]) -> None:
        self._each("insert_attempt", map(msgspec.structs.astuple, rows))

    def insert_tombstones(self, rows: Sequence[Tombstone]) -> None:
        self._each("insert_tombstone", map(msgspec.structs.astuple, rows))

    def insert_audit(self, rows: Sequence[AuditRow]) -> None:
        head, chained = append([AuditHead(*row) for row in self._all("audit_head")], rows)
        self._each("insert_audit", map(msgspec.structs.astuple, chained))
        self._run(SQL["write_audit_head"].sql, (head.number, head.hash))

    def find_recorded(self, hashes: Sequence[bytes], slots: Sequence[int]) -> dict[bytes, Recorded]:
        found = {}
        for digest in hashes:
            for slot in sorted(slots, reverse=True):
                rows = self._all("find_recorded", slot, digest)
                if rows:
                    found[digest] = Recorded(*rows[0])
                    break
        return found

    def record(self, rows: Sequence[tuple[int, bytes, Recorded]]) -> None:
        self._each("record", [(slot, digest, a.request_hash, a.answer) for slot, digest, a in rows])

    def find_duplicates(self, keys: Sequence[tuple[int, bytes]]) -> dict[tuple[int, bytes], str]:
        found = ((key, self._one("find_duplicate", *key, self.now_ms)) for key in keys)
        return {key: message_id for key, message_id in found if message_id is not None}

    def insert_duplicates(self, rows: Sequence[tuple[int, bytes, str, int]]) -> None:
        self._each("insert_duplicate", rows)

    def write_stats(self, node: str, rows: Sequence[tuple[int, int, bytes]]) -> None:
        self._each("write_stats", [(queue_id, slot, node, raw) for queue_id, slot, raw in rows])

    def prune(self, limit: int, slot_floor: int, record_floor_ms: int, stats_floor: int) -> int:
        before = self._connection.total_changes()
        for name, values in (
            ("prune_idempotency", (slot_floor, limit)),
            ("prune_dedup", (self.now_ms, limit)),
            ("prune_dead", (record_floor_ms, limit)),
            ("prune_attempts", (record_floor_ms, limit)),
            ("prune_stats", (stats_floor, limit)),
            ("prune_groups", (limit,)),
        ):
            self._run(SQL[name].sql, values)
        return self._connection.total_changes() - before + self.prune_plans(limit, record_floor_ms)

    def put_key(self, row: KeyRow) -> None:
        detail = msgspec.json.encode(row).decode()
        self._run(SQL["put_key"].sql, (row.key_id, row.name, row.created_ms, detail))


class _Portion:
    """How many of the due rows one answer takes: a suspect travels alone, and the bodies fit."""

    def __init__(self, limit: int, terms: LeaseTerms) -> None:
        self.rows: list[Claimed] = []
        self.full = False
        self._limit = limit
        self._terms = terms
        self._size = 0

    def fill(self, rows: Iterable[Sequence[Any]]) -> bool:
        """Take these, until the answer ends before or with one of them; whether one was taken."""
        held, terms, before = self.rows, self._terms, len(self.rows)
        handle, size, most = terms.handle, self._size, terms.bytes_max
        for row in rows:
            suspect = row[6] == Ended.LOST
            size += len(row[10])
            if held and (suspect or size > most):
                self.full = True
                break
            columns = (*row[:12], bool(row[12]), row[13], handle(), *row[14:])
            held.append(Claimed(*columns))
            if suspect or len(held) >= self._limit:
                self.full = True
                break
        self._size = size
        return len(held) > before
