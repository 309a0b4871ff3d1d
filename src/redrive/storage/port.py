"""The engine protocol: selections and fenced moves. No business event is known below this line.

An :class:`Engine` runs a function inside one durable transaction and serves snapshot reads beside it. All
times are the engine's own milliseconds since the epoch (``Transaction.now_ms``, read once a transaction).
Every list argument may be empty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol, TypeVar

import msgspec

from redrive.domain.facts import Facts
from redrive.domain.standing import Shown
from redrive.storage.evidence_port import EvidenceReader, EvidenceTransaction
from redrive.storage.plan_port import PlanReader, PlanTransaction
from redrive.storage.values import (
    Acked,
    Attempt,
    Claimed,
    DeadFilter,
    DeadGroup,
    DeadLetter,
    Group,
    KeyRow,
    NewMessage,
    Queue,
    QueueCounts,
    Recorded,
    StoredMessage,
)  # fmt: skip

T = TypeVar("T")
# How a batch holds a queue until its end: against deletion; also, where the queue has a limit when leasing,
# against other leases; or against every other batch that reads its settings.
Hold = Literal["shared", "leasing", "alone"]


class Lost(Exception):
    """Disk, connection or commit failed: nothing of the batch may be answered as done. Never halved."""


class DiskFull(Lost):
    """The store has no room: nothing was written."""


class Unwritable(Lost):
    """The store takes no writes at present, and nothing was written; it may still be read."""


class UnknownOutcome(Lost):
    """The connection broke inside COMMIT and nobody could say what became of it."""


class Damaged(Exception):
    """Stored rows hold what was never written: who needs them is refused, others go on. Nothing was done."""


class LeaseTerms(msgspec.Struct, frozen=True):
    """How rows are leased: from and until when, for whom; ``handle`` gives fresh receipt handles, as many as
    may be leased."""

    leased_ms: int
    until_ms: int
    consumer_id: str | None
    handle: Callable[[], str]
    bytes_max: int


class Locked(msgspec.Struct, frozen=True):
    """Facts by message id, and the ids that exist but are held by another transaction."""

    facts: dict[str, Facts]
    busy: frozenset[str] = frozenset()


class Transaction(PlanTransaction, EvidenceTransaction, Protocol):
    """One write transaction. What it hands out is locked until the end."""

    @property
    def now_ms(self) -> int:
        """The engine's time, the same throughout."""
        ...

    def expect(self, names: Sequence[str], hold: Hold, acks: Sequence[tuple[str, str]]) -> None:
        """What will be asked for first, by ``queues(names, hold)`` and ``ack(acks)``, before anything else
        changes: a store that is far away may fetch it with the beginning. Nothing has to be done."""
        ...

    # -- clock
    def last_tick_ms(self) -> int | None:
        """The engine's time of the last liveness tick; None on a new store."""
        ...

    def write_tick(self, now_ms: int) -> None:
        """Record that the service was alive at ``now_ms``, unless another node has done so meanwhile."""
        ...

    def shift(self, gap_ms: int, since_ms: int) -> int | None:
        """Add ``gap_ms`` to every lease end, lease start, deduplication end, and to each backoff that was
        still to come at ``since_ms`` (at rest, attempt above 0, due later); returns the rows changed. None,
        and nothing done, when another node has written a tick since ``since_ms``."""
        ...

    # -- queues
    def queues(self, names: Sequence[str], hold: Hold = "shared") -> dict[str, Queue]:
        """The queues of these names, locked until the end as ``hold`` says."""
        ...

    def queues_by_id(self, ids: Sequence[int]) -> dict[int, Queue]:
        """The queues of these numbers, locked against deletion until the end."""
        ...

    def insert_queue(self, queue: Queue) -> Queue:
        """The queue with its new number."""
        ...

    def update_queue(self, queue: Queue) -> None:
        """Write every column of the row ``queue.id``."""
        ...

    def remove_queue(self, queue_id: int) -> None:
        """Delete the row with its groups, policies, deduplication and statistics; its messages are gone."""
        ...

    def queues_naming(self, dead_letter_queue: str) -> list[str]:
        """Names of the queues that name this one explicitly as their dead-letter queue."""
        ...

    # -- FIFO groups
    def groups(self, keys: Sequence[tuple[int, str]]) -> dict[tuple[int, str], Group]:
        """The groups by (queue id, key), made where missing, locked in key order."""
        ...

    def groups_by_id(self, ids: Sequence[int]) -> dict[int, Group]:
        """The groups by number, locked in order."""
        ...

    def blocked_groups(self, queue_id: int, limit: int) -> list[Group]:
        """Groups of the queue with ``blocked`` above 0, locked."""
        ...

    def write_groups(self, groups: Sequence[Group]) -> None:
        """Write live, next_position, head_due_ms, busy and blocked."""
        ...

    def head(self, group_id: int) -> tuple[int, int] | None:
        """Number and due time of the group's message at rest with the lowest position, or None."""
        ...

    # -- selections
    def claim(self, queue_id: int, levels: Sequence[int], limit: int, terms: LeaseTerms) -> list[Claimed]:
        """Lease up to ``limit`` due rows in slot READY: priority level by level as given, then due, then id.

        Skips rows that another transaction holds. A suspect (``ended`` LOST) at the head is the whole
        answer; otherwise the answer stops before the first one. It stops before ``bytes_max`` of bodies
        would be passed, but holds at least one message. attempt and delivery are counted up, the handle,
        consumer and times are set.
        """
        ...

    def claim_groups(self, queue_id: int, limit: int, terms: LeaseTerms) -> list[Claimed]:
        """The same for the due heads of FIFO groups, oldest head first, one message a group; sets
        ``head_due_ms`` None and ``busy`` of each group whose head was leased."""
        ...

    def next_due(self, queue_id: int, levels: Sequence[int], grouped: bool) -> int | None:
        """When the next message or group head at rest is due (may be past); None when there is none."""
        ...

    def leased_count(self, queue_id: int, limit: int) -> int:
        """How many of the queue's messages are leased, counted up to ``limit``."""
        ...

    def ack(self, items: Sequence[tuple[str, str]]) -> list[Acked]:
        """Remove each leased message whose handle matches, that has no group and no dead-letter record and
        no cancel mark; the others are left alone. (transition: leased → gone)"""
        ...

    def lock(self, message_ids: Sequence[str], beside: Sequence[tuple[int, str]] = ()) -> Locked:
        """The facts of these messages, locked in order (their groups first, together with the groups
        ``beside`` that the batch will touch anyway); unknown ids are absent, rows that another transaction
        holds are named as busy."""
        ...

    def due_leases(self, limit: int) -> list[Facts]:
        """Leased rows whose lease is over, oldest end first within a queue, locked; skips held rows."""
        ...

    def aged(self, limit: int, *, dead: bool) -> list[Facts]:
        """Rows not leased, of the dead side or the live one, whose retention is over, oldest first, locked;
        skips held rows."""
        ...

    def in_queue(self, queue_id: int, before_ms: int | None, limit: int) -> list[Facts]:
        """A slice of a queue's messages, whichever come first, enqueued not after ``before_ms``, locked;
        skips held rows."""
        ...

    def holds_any(self, queue_id: int, before_ms: int | None) -> bool:
        """Whether the queue holds any message enqueued not after ``before_ms``, held rows included."""
        ...

    # -- moves, fenced by (id, delivery)
    def insert(self, rows: Sequence[NewMessage]) -> None:
        """Store new messages."""
        ...

    def touch(self, rows: Sequence[Facts]) -> None:
        """Write lease_until_ms and cancelled."""
        ...

    def reschedule(self, rows: Sequence[Facts]) -> None:
        """Write slot, due_ms, attempt, releases, ended, first_failed_ms."""
        ...

    def transfer(self, rows: Sequence[Facts]) -> None:
        """Write slot, queue_id, priority, due_ms, expires_ms, attempt, releases, ended, cancelled, dead,
        group_id, position, first_failed_ms, redriven."""
        ...

    def remove(self, rows: Sequence[Facts]) -> None:
        """Delete the messages."""
        ...

    # -- records
    def insert_dead(self, rows: Sequence[DeadLetter]) -> None:
        """Store dead-letter records, as they are: one that the same batch closed is stored closed."""
        ...

    def open_records(self, message_ids: Sequence[str]) -> dict[str, DeadLetter]:
        """The open record of each message that has one."""
        ...

    def close_records(self, rows: Sequence[DeadLetter]) -> None:
        """Write closed_ms, closed_by, blocks and reason of these records."""
        ...

    def unblock(self, origin: str) -> None:
        """Clear ``blocks`` of every open record of this source."""
        ...

    def select_dead(self, select: DeadFilter, after: tuple[int, str], limit: int) -> list[DeadLetter]:
        """The open records that match, after (dead_ms, message id), oldest ``dead_ms`` first."""
        ...

    def insert_attempts(self, rows: Sequence[Attempt]) -> None:
        """Store attempts; a row that is there already stays as it is."""
        ...

    def find_recorded(self, hashes: Sequence[bytes], slots: Sequence[int]) -> dict[bytes, Recorded]:
        """Stored answers by key hash, looked for in these slots."""
        ...

    def record(self, rows: Sequence[tuple[int, bytes, Recorded]]) -> None:
        """Store (slot, key hash, answer)."""
        ...

    def find_duplicates(self, keys: Sequence[tuple[int, bytes]]) -> dict[tuple[int, bytes], str]:
        """Message ids by (queue id, deduplication hash) whose window is open at ``now_ms``."""
        ...

    def insert_duplicates(self, rows: Sequence[tuple[int, bytes, str, int]]) -> None:
        """Store (queue id, hash, message id, until_ms), replacing rows that are over."""
        ...

    def write_stats(self, node: str, rows: Sequence[tuple[int, int, bytes]]) -> None:
        """Write this node's counters: (queue id, slot, JSON)."""
        ...

    def prune(self, limit: int, slot_floor: int, record_floor_ms: int, stats_floor: int) -> int:
        """Remove one slice of what is over: idempotency slots below ``slot_floor``, deduplication windows,
        closed records and attempts of gone messages before ``record_floor_ms``, statistics slots below
        ``stats_floor``, empty groups without open records. Returns the rows removed."""
        ...

    def put_key(self, row: KeyRow) -> None:
        """Insert or replace one API key."""
        ...


class Reader(PlanReader, EvidenceReader, Protocol):
    """Snapshot reads beside the writer; they change nothing and never wait for it."""

    now_ms: int

    def queue(self, name: str) -> Queue | None:
        """The queue of this name."""
        ...

    def queue_page(self, after: str, limit: int) -> list[Queue]:
        """Queues by name, after ``after``."""
        ...

    def deleting(self, limit: int) -> list[str]:
        """Names of queues that are being deleted."""
        ...

    def counts(self, queue: Queue) -> QueueCounts:
        """What the queue holds now, counted."""
        ...

    def stats(self, queue_id: int, since_slot: int) -> list[tuple[int, bytes]]:
        """(slot, JSON) of every node since ``since_slot``; slot 0 holds the totals of pruned slots."""
        ...

    def messages(
        self, queue: Queue, state: Shown | None, since_ms: int | None, after_id: int, limit: int
    ) -> list[StoredMessage]:
        """Messages by number after ``after_id``, of one contract state if given."""
        ...

    def message(self, message_id: str) -> StoredMessage | None:
        """One message; None when it is gone, or never was."""
        ...

    def attempts(self, message_id: str) -> list[Attempt]:
        """Its failed deliveries, oldest first."""
        ...

    def records(self, message_id: str) -> list[DeadLetter]:
        """Every dead-letter record of the message, oldest first."""
        ...

    def slice_end(self, after_id: int, limit: int) -> int | None:
        """The number of the last of the next ``limit`` messages after this number, of all queues; None when
        there are no more."""
        ...

    def held_of_job(self, job_key: str, after_id: int, until_id: int) -> list[str]:
        """Ids of messages with this job key, numbered above ``after_id`` up to ``until_id``. It reads every
        row of the slice: an index over job keys would cost each publish more than it is worth here."""
        ...

    def dead_of_job(self, job_key: str, after: str, limit: int) -> list[str]:
        """Ids of messages with this job key that were dead letters or left a tombstone, sorted, after
        ``after``."""
        ...

    def dead_page(self, select: DeadFilter, after: tuple[int, str], limit: int) -> list[StoredMessage]:
        """Open dead letters after (dead_ms, message id), oldest first; ``record`` is set."""
        ...

    def dead_records(self, select: DeadFilter, after: tuple[int, str], limit: int) -> list[DeadLetter]:
        """As ``dead_page``, the records alone."""
        ...

    def dead_groups(self, select: DeadFilter, limit: int, offset: int = 0) -> list[DeadGroup]:
        """Open dead letters by fingerprint, largest group first, after ``offset`` of them."""
        ...

    def keys(self) -> list[KeyRow]:
        """Every API key, oldest first."""
        ...


class Engine(Protocol):
    """One store."""

    name: str

    def run(self, work: Callable[[Transaction], T]) -> T:
        """Run ``work`` in one transaction; when this returns, its effects are durable.

        An exception of ``work`` rolls everything back and comes out as it is. Failures of disk, connection
        or commit come out as :class:`Lost`. Called from one thread at a time.
        """
        ...

    def read(self, work: Callable[[Reader], T]) -> T:
        """Run ``work`` over one snapshot; from any thread."""
        ...

    def migrate(self) -> list[str]:
        """Bring the schema up to date; the names of the migrations applied."""
        ...

    def check(self) -> list[str]:
        """Problems found in the stored data; empty when it is sound."""
        ...

    def close(self) -> None: ...
