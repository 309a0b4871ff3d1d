"""What engines hand out and take in. Times are the engine's milliseconds since the epoch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Literal

import msgspec

from redrive.domain import limits
from redrive.domain.facts import AttemptEnd, Facts, Reason
from redrive.domain.policy import QueuePolicy

Type = Literal["standard", "fifo"]
Kind = Literal["standard", "fifo", "unset"]  # unset: made by a consume; the first message or create decides
QueueState = Literal["active", "paused", "deleting"]
_CHECKSUM = hashlib.blake2b(digest_size=8, usedforsecurity=False)  # a copy costs less than a new one
CONSUMERS_KEPT = 1_000  # distinct consumers of one slot that are told apart
PRIORITIES = tuple(range(limits.PRIORITY_MAX, limits.PRIORITY_MIN - 1, -1))


class Queue(msgspec.Struct):
    """One queue row. ``dead_letter_queue`` is an explicit name or None (then ``<name>.dlq``, on first use).

    ``holds_dead``: this queue is (or was made as) a dead-letter queue. ``tokens``/``tokens_at_ms`` are the
    allowance of ``max_per_second``.
    """

    id: int
    name: str
    kind: Kind
    state: QueueState
    policy: QueuePolicy
    dead_letter_queue: str | None
    implicit: bool
    holds_dead: bool
    created_ms: int
    tokens: float = 1.0
    tokens_at_ms: int = 0

    @property
    def title(self) -> str:
        """The name that it was made under; a queue being deleted has given its name up already."""
        return self.name.split("/", 2)[2] if self.state == "deleting" else self.name

    @property
    def type(self) -> Type:
        """Its kind as the contract shows it."""
        return "fifo" if self.grouped else "standard"

    @property
    def grouped(self) -> bool:
        """Whether its messages stand in FIFO groups."""
        return self.kind == "fifo"

    @property
    def levels(self) -> tuple[int, ...]:
        """The priority levels in use, highest first; dead letters keep the level that they came with."""
        return PRIORITIES if self.policy.enable_priority or self.holds_dead else (0,)

    @property
    def dead_letter_name(self) -> str:
        """Where its dead letters go: a dead-letter queue without one of its own keeps them itself."""
        if self.dead_letter_queue:
            return self.dead_letter_queue
        return self.name if self.holds_dead else f"{self.title}.dlq"


class Group(msgspec.Struct):
    """One FIFO group. ``head_due_ms`` is None while the group is empty, busy or blocked.

    ``live`` counts its messages, ``busy`` is the id of the leased head, ``blocked`` counts the open
    dead-letter records that hold it.
    """

    id: int
    queue_id: int
    key: str
    live: int = 0
    next_position: int = 1
    head_due_ms: int | None = None
    busy: int | None = None
    blocked: int = 0


class NewMessage(msgspec.Struct, gc=False):
    """A message to insert. ``job_key`` None stands for the message id; ``headers`` is JSON or None."""

    message_id: str
    queue_id: int
    slot: int
    priority: int
    due_ms: int
    expires_ms: int
    group_id: int | None
    position: int
    job_key: str | None
    enqueued_ms: int
    headers: bytes | None
    body: bytes
    body_hash: bytes


class Claimed(msgspec.Struct, gc=False):
    """A message as it was leased: the values after the lease, ``ended`` of the delivery before it."""

    id: int
    message_id: str
    job_key: str | None
    priority: int
    attempt: int
    delivery: int
    ended: int
    enqueued_ms: int
    group_id: int | None
    headers: bytes | None
    body: bytes
    body_hash: bytes
    dead: bool
    redriven: int
    handle: str
    group_key: str | None = None
    plan_id: str | None = None  # the plan that sent it last, if it was redriven


class Acked(msgspec.Struct, gc=False):
    """What a set-based ack removed."""

    message_id: str
    queue_id: int
    leased_ms: int
    attempt: int


class DeadLetter(msgspec.Struct):
    """An open or closed dead-letter record; key: message id and redrive count.

    ``origin`` is the source queue's name, None for a message published into the dead-letter queue by hand;
    ``source_group``/``source_position`` its place there; ``blocks`` whether it holds that group.
    """

    message_id: str
    delivery: int
    dlq_id: int
    origin: str | None
    source_group: str | None
    source_position: int
    blocks: bool
    job_key: str
    reason: Reason
    error_type: str | None
    error: bytes | None  # JSON {type, message, stack}
    fingerprint: str | None
    attempts: int
    first_failed_ms: int
    dead_ms: int
    expires_ms: int
    redrive_count: int
    closed_ms: int | None = None
    closed_by: str | None = None


class Attempt(msgspec.Struct):
    """One failed (or later evidenced) delivery of a message."""

    message_id: str
    delivery: int
    attempt: int
    consumer_id: str | None
    leased_ms: int
    ended_ms: int
    end: AttemptEnd
    error: bytes | None  # JSON {type, message, stack}
    fingerprint: str | None


class Tombstone(msgspec.Struct):
    """What is left of a message that was removed unfinished."""

    message_id: str
    queue: str
    job_key: str
    cause: str
    reason: str | None
    fingerprint: str | None
    enqueued_ms: int
    removed_ms: int
    body_hash: bytes


class AuditRow(msgspec.Struct):
    """One operator action. ``detail`` is JSON."""

    at_ms: int
    actor: str
    action: str
    target: str
    reason: str | None
    selection_hash: str | None
    outcome: str
    detail: bytes = b"{}"
    id: int = 0


class KeyRow(msgspec.Struct):
    """One API key. ``secrets`` maps the SHA-256 of each live secret to its creation time."""

    key_id: str
    name: str
    scopes: tuple[str, ...]
    queues: tuple[str, ...]
    created_ms: int
    expires_ms: int | None = None
    revoked_ms: int | None = None
    secrets: dict[str, int] = {}


class Recorded(msgspec.Struct, frozen=True):
    """The stored first answer to an idempotent request."""

    request_hash: bytes
    answer: bytes


class DeadFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which open dead-letter records: ``queue`` is the source's name or the dead-letter queue's own."""

    queue: str
    message_ids: tuple[str, ...] | None = None
    reason: str | None = None
    error_type: str | None = None
    fingerprint: str | None = None
    job_key: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    attempts_min: int | None = None
    text: str | None = None


class StoredMessage(msgspec.Struct):
    """One message as an operator sees it: facts, body, and its open dead-letter record if any.

    ``at_head``: as ``domain.standing`` has it.
    """

    facts: Facts
    queue: str
    group_key: str | None
    headers: bytes | None
    body: bytes
    body_hash: bytes
    at_head: bool
    record: DeadLetter | None = None

    @property
    def sound(self) -> bool:
        """Whether id, job key, headers and body are what was published."""
        message_id = self.facts.message_id
        job_key = None if self.facts.job_key == message_id else self.facts.job_key  # None stands for the id
        return is_sound(message_id, job_key, self.headers, self.body, self.body_hash)


class DeadGroup(msgspec.Struct):
    """Open dead letters of one fingerprint."""

    fingerprint: str | None
    reason: str
    error_type: str | None
    count: int
    first_ms: int
    last_ms: int
    sample: str  # the id of the message that was published first


class QueueCounts(msgspec.Struct):
    """What a queue holds now; ages are instants of the oldest, None when there is none."""

    ready: int = 0
    delayed: int = 0
    waiting: int = 0
    leased: int = 0
    dead: int = 0
    oldest_ready_ms: int | None = None
    oldest_dead_ms: int | None = None
    blocked_groups: int = 0
    attempts: dict[int, int] = {}


_SUMS = ("published", "acked", "dead", "redriven", "expired", "unfenced", "service_total_ms")


class StatsDelta(msgspec.Struct):
    """What happened in one queue during one 10-second slot on one node; ``service_ms`` is a histogram,
    ``slots`` maps consumers to the jobs that each works on at once."""

    published: int = 0
    acked: int = 0
    dead: int = 0
    redriven: int = 0
    expired: int = 0
    unfenced: int = 0
    service_total_ms: int = 0
    attempts_settled: dict[int, int] = {}
    service_ms: dict[int, int] = {}  # bucket index → count
    slots: dict[str, int] = {}

    def add(self, other: StatsDelta) -> None:
        """Count what ``other`` counted."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for mine, theirs in (
            (self.attempts_settled, other.attempts_settled),
            (self.service_ms, other.service_ms),
        ):
            for key, count in theirs.items():
                mine[key] = mine.get(key, 0) + count
        self.see(other.slots)

    def see(self, slots: dict[str, int]) -> None:
        """Consumers were there; of so many as are kept."""
        for consumer, concurrency in slots.items():
            if consumer in self.slots:
                self.slots[consumer] = max(self.slots[consumer], concurrency)
            elif len(self.slots) < CONSUMERS_KEPT:
                self.slots[consumer] = concurrency


def body_hash(message_id: str, job_key: str | None, headers: bytes | None, body: bytes) -> bytes:
    """The checksum over everything that a delivery hands out: 8 bytes."""
    hashed = _CHECKSUM.copy()
    hashed.update(
        b"%b\x00%b\x00%b\x00%b" % (message_id.encode(), (job_key or "").encode(), headers or b"", body)
    )
    return hashed.digest()


def is_sound(
    message_id: str, job_key: str | None, headers: bytes | None, body: bytes, checksum: bytes
) -> bool:
    """Whether the checksum is right; of a damaged row the values may not even have their types."""
    try:
        return body_hash(message_id, job_key, headers, body) == checksum
    except (AttributeError, TypeError):
        return False


def merged_groups(groups: Iterable[DeadGroup], limit: int) -> list[DeadGroup]:
    """Groups of one cause that were counted apart, made one; largest first."""
    merged: dict[tuple[str | None, str, str | None], DeadGroup] = {}
    for group in groups:
        known = merged.setdefault((group.fingerprint, group.reason, group.error_type), group)
        if known is not group:
            known.count += group.count
            known.sample = min(known.sample, group.sample)
            known.first_ms = min(known.first_ms, group.first_ms)
            known.last_ms = max(known.last_ms, group.last_ms)
    order = sorted(
        merged.values(), key=lambda g: (-g.count, g.fingerprint or "", g.error_type or "", g.reason)
    )
    return order[:limit]
