"""Everything that can be asked of the store: one command a request, applied in batches.

A command is a value. Its result is a value too: an answer, or a refusal (``RedriveError``) for that command
alone. Result types stand behind each class.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from redrive.domain.errors import RedriveError
from redrive.domain.fingerprint import ErrorInfo
from redrive.storage.values import AuditRow, Claimed, KeyRow, Queue, QueueState, Type

Visible = Callable[[str], bool]


class Idempotent(msgspec.Struct, frozen=True):
    """An idempotency key with its route and the hash of the request it came with."""

    route: str
    key: str
    request_hash: bytes


class Command(msgspec.Struct):
    """The base of all; ``cost`` is the command's share of a batch (rows + bytes / 4 KiB)."""

    @property
    def cost(self) -> float:
        """Rows that the command may touch, and its bytes by pages of 4 KiB."""
        return 1.0


class Entry(msgspec.Struct):
    """One message to publish. ``delay_ms`` from now; ``job_key`` None: the message id."""

    body: bytes
    headers: bytes | None = None
    job_key: str | None = None
    delay_ms: int = 0
    priority: int | None = None
    group: str | None = None
    deduplication_id: str | None = None
    idempotent: Idempotent | None = None


class Published(msgspec.Struct):
    """The outcome for one entry. ``replayed``: the first answer to an idempotent request again."""

    message_id: str
    duplicate: bool = False
    replayed: bool = False


class Publish(Command):
    """→ ``list[Published | RedriveError]``, in order."""

    queue: str
    entries: list[Entry | RedriveError]
    auto_create: bool = True
    idempotent: Idempotent | None = None

    @property
    def cost(self) -> float:
        """One for each entry, and the bodies."""
        size = sum(len(e.body) for e in self.entries if isinstance(e, Entry))
        return len(self.entries) + size / 4096


class Lease(Command):
    """→ :class:`Leased`. ``visibility_ms`` None: the queue's default. ``wait_seconds`` is the committer's:
    how long the command may wait for a first message; ``concurrency`` are
    the jobs that this consumer works on at once, ``company`` those of consumers who wait with it."""

    queue: str
    max_messages: int
    visibility_ms: int | None = None
    consumer_id: str | None = None
    auto_create: bool = True
    wait_seconds: float = 0.0
    concurrency: int = 1
    company: dict[str, int] = {}

    @property
    def cost(self) -> float:
        """One for each message that it may take."""
        return float(self.max_messages)


class Leased(msgspec.Struct):
    """What a lease handed out; when it is empty, ``next_due_ms`` is when it could next hold something."""

    messages: list[Claimed]
    leased_ms: int
    visibility_ms: int
    next_due_ms: int | None = None


class Ack(Command):
    """→ ``list[bool | RedriveError]``: acknowledged now, or gone already."""

    items: list[tuple[str, str | None]]  # message id, receipt handle
    visible: Visible | None = None
    acknowledged: frozenset[str] = frozenset()  # by an earlier batch, which deferred the rest

    @property
    def cost(self) -> float:
        """One for each item."""
        return float(len(self.items))


class Settle(Command):
    """The base of the commands on one delivery."""

    message_id: str
    handle: str | None
    visible: Visible | None = None


class Nack(Settle):
    """→ :class:`Settled`. ``delay_ms`` None: the queue's backoff."""

    delay_ms: int | None = None
    error: ErrorInfo | None = None


class Reject(Settle):
    """→ :class:`Settled`. ``undecodable``: the payload could not be read."""

    error: ErrorInfo | None = None
    undecodable: bool = False


class Extend(Settle):
    """→ :class:`Settled`; ``visibility_ms`` 0 gives the message back and keeps the attempt spent."""

    visibility_ms: int = 0


class Release(Settle):
    """→ :class:`Settled`."""


class Settled(msgspec.Struct):
    """``state`` is the contract's message state; ``visible_ms`` when it is due; ``attempts_left``."""

    state: str
    visible_ms: int
    attempts_left: int
    now_ms: int
    lease_until_ms: int = 0


class Cancel(Command):
    """→ bool: True when cancelled now, False when it waits for the lease."""

    message_id: str
    visible: Visible | None = None
    audit: AuditRow | None = None


class Expire(Command):
    """→ int: leases ended. One slice of those whose time is over."""

    limit: int = 500


class Age(Command):
    """→ int: messages whose retention is over, moved or removed. One slice."""

    limit: int = 500


class Tick(Command):
    """→ int: the outage taken out of leases and backoffs, in ms (0: none). Also writes statistics."""

    stats: dict[tuple[int, int], bytes] = {}  # (queue id, slot) → the node's counters as JSON
    node: str = ""


class Prune(Command):
    """→ int: rows of finished bookkeeping removed. One slice."""

    limit: int = 500


class CreateQueue(Command):
    """→ :class:`Created`. ``settings`` are the given ones only, by policy field."""

    name: str
    kind: Type | None
    dead_letter_queue: str | None
    settings: dict[str, object]
    idempotent: Idempotent | None = None
    audit: AuditRow | None = None


class Created(msgspec.Struct):
    """The queue after the call."""

    queue: Queue
    replayed: bool = False


class UpdateQueue(Command):
    """→ :class:`Queue`."""

    name: str
    settings: dict[str, object]
    dead_letter_queue: str | None = None
    audit: AuditRow | None = None


class SetQueueState(Command):
    """→ :class:`Queue`."""

    name: str
    state: QueueState
    audit: AuditRow | None = None


class Purge(Command):
    """→ :class:`Purged`. One slice; the caller repeats until ``more`` is false."""

    name: str
    limit: int = 500
    before_ms: int | None = None  # messages enqueued after the purge began stay
    deleting: bool = False
    audit: AuditRow | None = None


class Purged(msgspec.Struct):
    """How many went, and whether there are more."""

    removed: int
    more: bool


class WriteAudit(Command):
    """→ None."""

    row: AuditRow


class PutKey(Command):
    """→ None. Inserts or replaces one key row."""

    row: KeyRow
    audit: AuditRow | None = None
