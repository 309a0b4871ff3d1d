"""The records beside the messages: dead letters, attempts, answers, deduplication, counters, keys."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from redrive.storage import rows as r
from redrive.storage.audit_chain import append
from redrive.storage.postgres import binary as b
from redrive.storage.postgres.failures import Again
from redrive.storage.postgres.floors import Floors
from redrive.storage.postgres.plans import PostgresPlans
from redrive.storage.postgres.session import Session
from redrive.storage.values import (
    Attempt,
    AuditHead,
    AuditRow,
    DeadFilter,
    DeadLetter,
    FingerprintRule,
    KeyRow,
    Queue,
    Recorded,
    Tombstone,
)  # fmt: skip

_FIRST_ID = "00000000-0000-0000-0000-000000000000"


def filter_values(select: DeadFilter, limit: int) -> tuple[b.Parameter, ...]:
    """A filter as the first eleven parameters of the dead-letter statements."""
    ids = None
    if select.message_ids is not None:
        ids = b.uuids([i for i in select.message_ids if b.is_message_id(i)])
    return (
        b.text(select.queue), b.text(select.reason), b.text(select.error_type), b.text(select.fingerprint),
        b.text(select.job_key), b.int8(select.since_ms), b.int8(select.until_ms), b.int8(select.attempts_min),
        b.text(select.text), ids, b.int8(limit),
    )  # fmt: skip


def page_values(select: DeadFilter, after: tuple[int, str], limit: int) -> tuple[b.Parameter, ...]:
    """A filter, and the record after which the page begins."""
    after_id = after[1] if b.is_message_id(after[1]) else _FIRST_ID
    return (
        *filter_values(select, limit), b.int8(after[0]), b.uuid(after_id), b.boolean(select.without_held),
    )  # fmt: skip


def queue_values(queue: Queue) -> tuple[b.Parameter, ...]:
    """Every column of ``queues`` but the number. ``limited``: leasing from it needs the row for oneself."""
    policy = queue.policy
    return (
        b.text(queue.name), b.text(queue.kind), b.text(queue.state), b.text(r.policy_text(policy)),
        b.text(queue.dead_letter_queue), b.boolean(queue.implicit), b.boolean(queue.holds_dead),
        b.int8(queue.created_ms), b.float8(queue.tokens), b.int8(queue.tokens_at_ms),
        b.boolean(policy.max_in_flight is not None or policy.max_per_second is not None),
        b.int4(queue.policy_count),
    )  # fmt: skip


class Records(PostgresPlans):
    """The part of a transaction that keeps records; see ``storage.port.Transaction`` for what each does."""

    def __init__(self, session: Session, floors: Floors, *, ahead: bool) -> None:
        super().__init__(session, floors, ahead=ahead)
        self._recorded: set[bytes] = set()

    def insert_dead(self, rows: Sequence[DeadLetter]) -> None:
        self._write(
            "insert_dead",
            b.uuids([d.message_id for d in rows]),
            b.int8s([d.delivery for d in rows]),
            b.int8s([d.dlq_id for d in rows]),
            b.texts([d.origin for d in rows]),
            b.texts([d.source_group for d in rows]),
            b.int8s([d.source_position for d in rows]),
            b.booleans([d.blocks for d in rows]),
            b.texts([d.job_key for d in rows]),
            b.texts([d.reason for d in rows]),
            b.texts([d.error_type for d in rows]),
            b.byteas([d.error for d in rows]),
            b.texts([d.fingerprint for d in rows]),
            b.int8s([d.attempts for d in rows]),
            b.int8s([d.first_failed_ms for d in rows]),
            b.int8s([d.dead_ms for d in rows]),
            b.int8s([d.expires_ms for d in rows]),
            b.int4s([d.redrive_count for d in rows]),
            b.int8s_or_null([d.closed_ms for d in rows]),
            b.texts([d.closed_by for d in rows]),
        )

    def open_records(self, message_ids: Sequence[str]) -> dict[str, DeadLetter]:
        rows = self._session.fetch("open_records", b.uuids(message_ids))
        return {row[0]: r.dead_from(row) for row in rows}

    def close_records(self, rows: Sequence[DeadLetter]) -> None:
        self._write(
            "close_records",
            b.uuids([d.message_id for d in rows]),
            b.int4s([d.redrive_count for d in rows]),
            b.int8s_or_null([d.closed_ms for d in rows]),
            b.texts([d.closed_by for d in rows]),
            b.booleans([d.blocks for d in rows]),
            b.texts([d.reason for d in rows]),
        )

    def unblock(self, origin: str) -> None:
        self._write("unblock", b.text(origin))

    def select_dead(self, select: DeadFilter, after: tuple[int, str], limit: int) -> list[DeadLetter]:
        """As the protocol says. What another node redrives between the two statements is left out, and what
        has died once more meanwhile has its new place: others follow, so that only the last page is short."""
        taken: list[DeadLetter] = []
        while len(taken) < limit:
            wanted = limit - len(taken)
            values = page_values(select, after, wanted)
            found: dict[str, int] = {}
            for name in ("dead_page_by_origin", "dead_page_by_queue"):
                found.update(self._session.fetch(name, *values))
            page = sorted((dead_ms, message_id) for message_id, dead_ms in found.items())[:wanted]
            records = self.open_records([message_id for _, message_id in page])
            same = ((records.get(message_id), dead_ms) for dead_ms, message_id in page)
            taken += [record for record, dead_ms in same if record is not None and record.dead_ms == dead_ms]
            if len(page) < wanted:
                break
            after = page[-1]
        return taken

    def fingerprint_policies(self, queue_id: int) -> list[FingerprintRule]:
        rows = self._session.fetch("fingerprint_policies", b.int8(queue_id))
        return [FingerprintRule(*row) for row in rows]

    def put_fingerprint_policy(self, queue_id: int, rule: FingerprintRule) -> None:
        self._write(
            "put_fingerprint_policy", b.int8(queue_id), b.text(rule.fingerprint), b.text(rule.policy),
            b.text(rule.reason), b.text(rule.actor), b.int8(rule.set_ms),
        )  # fmt: skip

    def drop_fingerprint_policy(self, queue_id: int, fingerprint: str) -> None:
        self._write("drop_fingerprint_policy", b.int8(queue_id), b.text(fingerprint))

    def insert_attempts(self, rows: Sequence[Attempt]) -> None:
        self._write(
            "insert_attempts",
            b.uuids([a.message_id for a in rows]),
            b.int8s([a.delivery for a in rows]),
            b.int8s([a.attempt for a in rows]),
            b.texts([a.consumer_id for a in rows]),
            b.int8s([a.leased_ms for a in rows]),
            b.int8s([a.ended_ms for a in rows]),
            b.texts([a.end for a in rows]),
            b.byteas([a.error for a in rows]),
            b.texts([a.fingerprint for a in rows]),
        )

    def insert_tombstones(self, rows: Sequence[Tombstone]) -> None:
        self._write(
            "insert_tombstones",
            b.uuids([t.message_id for t in rows]),
            b.texts([t.queue for t in rows]),
            b.texts([t.job_key for t in rows]),
            b.texts([t.cause for t in rows]),
            b.texts([t.reason for t in rows]),
            b.texts([t.fingerprint for t in rows]),
            b.int8s([t.enqueued_ms for t in rows]),
            b.int8s([t.removed_ms for t in rows]),
            b.byteas([t.body_hash for t in rows]),
            b.int8s_or_null([t.first_failed_ms for t in rows]),
            b.int8s_or_null([t.dead_ms for t in rows]),
            b.texts([t.archive for t in rows]),
        )

    def insert_audit(self, rows: Sequence[AuditRow]) -> None:
        """Append, holding the end of the chain from here to the commit; what is put down goes out first."""
        found = self._session.fetch("lock_audit_head")
        end, chained = append([AuditHead(*row[:-1]) for row in found], rows)
        self.xid = found[0][-1]
        self._write(
            "insert_audit",
            b.int8s([a.at_ms for a in chained]),
            b.texts([a.actor for a in chained]),
            b.texts([a.action for a in chained]),
            b.texts([a.target for a in chained]),
            b.texts([a.reason for a in chained]),
            b.texts([a.selection_hash for a in chained]),
            b.texts([a.outcome for a in chained]),
            b.byteas([a.detail for a in chained]),
            b.int8s([a.id for a in chained]),
            b.texts([a.on_behalf_of for a in chained]),
            b.byteas([a.hash for a in chained]),
        )
        self._write("write_audit_head", b.int8(end.number), end.hash)

    def find_recorded(self, hashes: Sequence[bytes], slots: Sequence[int]) -> dict[bytes, Recorded]:
        rows = self._session.fetch("find_recorded", b.int8s(slots), b.byteas(hashes))
        found = {digest: Recorded(request, answer) for _, digest, request, answer in rows}
        self._recorded.update(found)
        return found

    def record(self, rows: Sequence[tuple[int, bytes, Recorded]]) -> None:
        """Store answers. A key that another node has recorded since it was looked for makes the batch run
        again, and then find the answer: the same request is never carried out twice."""
        known = self._recorded
        stored = self._store(
            "record",
            b.int8s([slot for slot, _, _ in rows]),
            b.byteas([digest for _, digest, _ in rows]),
            b.byteas([recorded.request_hash for _, _, recorded in rows]),
            b.byteas([recorded.answer for _, _, recorded in rows]),
            b.byteas([digest for _, digest, _ in rows if digest in known]),
        )
        if stored != len(rows):
            raise Again("another node has just answered a request with the same idempotency key")
        known.update(digest for _, digest, _ in rows)

    def find_duplicates(self, keys: Sequence[tuple[int, bytes]]) -> dict[tuple[int, bytes], str]:
        rows = self._session.fetch(
            "find_duplicates",
            b.int8s([queue_id for queue_id, _ in keys]),
            b.byteas([digest for _, digest in keys]),
            b.int8(self.now_ms),
        )
        return {(queue_id, digest): message_id for queue_id, digest, message_id in rows}

    def insert_duplicates(self, rows: Sequence[tuple[int, bytes, str, int]]) -> None:
        """Open windows. One that another node has opened since makes the batch run again, and find it."""
        stored = self._store(
            "insert_duplicates",
            b.int8s([queue_id for queue_id, _, _, _ in rows]),
            b.byteas([digest for _, digest, _, _ in rows]),
            b.uuids([message_id for _, _, message_id, _ in rows]),
            b.int8s([until_ms for _, _, _, until_ms in rows]),
            b.int8(self.now_ms),
        )
        if stored != len(rows):
            raise Again("another node has just published under the same deduplication key")

    def _store(self, name: str, *values: b.Parameter) -> int:
        self.wrote = True
        return len(self._session.fetch(name, *values))

    def write_stats(self, node: str, rows: Sequence[tuple[int, int, bytes]]) -> None:
        self._write(
            "write_stats",
            b.text(node),
            b.int8s([queue_id for queue_id, _, _ in rows]),
            b.int8s([slot for _, slot, _ in rows]),
            b.byteas([raw for _, _, raw in rows]),
        )

    def prune(self, limit: int, slot_floor: int, record_floor_ms: int, stats_floor: int) -> int:
        self.wrote = True
        removed = 0
        for name, *values in (
            ("prune_idempotency", slot_floor, limit),
            ("prune_dedup", self.now_ms, limit),
            ("prune_dead", record_floor_ms, limit),
            ("prune_attempts", record_floor_ms, limit),
            ("prune_stats", stats_floor, limit),
            ("prune_groups", limit),
        ):
            [(count,)] = self._session.fetch(str(name), *(b.int8(int(value)) for value in values))
            removed += count
        return removed + self.prune_plans(limit, record_floor_ms)

    def put_key(self, row: KeyRow) -> None:
        detail = msgspec.json.encode(row).decode()
        self._write("put_key", b.text(row.key_id), b.text(row.name), b.int8(row.created_ms), b.text(detail))
