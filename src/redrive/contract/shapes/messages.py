"""Messages: publish, consume, settle, look (sections 3 and 4 of the contract)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta, Raw, field

from redrive.contract.shapes.bounds import (
    Answer,
    Cursor,
    DelaySeconds,
    ExtendTimeout,
    Headers,
    Instant,
    Item,
    Key,
    ListLimit,
    MaxMessages,
    MessageId,
    Priority,
    QueueName,
    Reason,
    Receipt,
    Request,
    VisibilityTimeout,
    WaitSeconds,
)
from redrive.domain import limits
from redrive.domain.errors import RedriveError
from redrive.domain.standing import Shown

Previous = Literal["lost", "nack", "released"]
State = Shown
ErrorText = Annotated[
    str | dict[str, Any],
    Meta(description="A string or {`type`,`message`,`stack`}; cut at 16 KiB with a marker."),
]
ItemT = TypeVar("ItemT", bound=Item)


class PublishEntry(Request, kw_only=True):
    """One message to store. ``payload`` is the exact JSON text; ``headers`` include ``traceparent``."""

    payload: Raw
    delay_seconds: DelaySeconds | None = None
    priority: Priority | None = None
    message_group_id: Key | None = None
    deduplication_id: Key | None = None
    job_key: Key | None = None
    headers: Headers | None = None
    traceparent: Annotated[str, Meta(max_length=200)] | None = None
    batch: Annotated[dict[str, Any], Meta(description="Refused until batches exist.")] | None = None


class Publish(PublishEntry, kw_only=True):
    """Publish one message to ``queue``."""

    queue: QueueName


class PublishBatchWire(Request, kw_only=True):
    """Publish many, as sent. An entry may also be a bare value, which is then the payload."""

    queue: QueueName
    messages: Annotated[list[PublishEntry], Meta(max_length=limits.BATCH_ENTRIES_MAX)]


class PublishBatch(PublishBatchWire, kw_only=True):
    """Publish many. ``messages`` are the valid entries in order; ``refused`` maps a position of the
    request to the RedriveError with which the entry there was refused; see :func:`in_order`.
    ``entry_hashes`` maps an index of ``messages`` to the request hash of an entry that has a key of its own.
    """

    refused: dict[int, Any] = field(default_factory=dict)
    entry_hashes: dict[int, bytes] = field(default_factory=dict)


class PublishDone(Answer, kw_only=True):
    """``duplicate`` is true when a deduplication id was seen before and nothing new was stored."""

    message_id: str
    duplicate: bool = False


class PublishedItem(Item, kw_only=True, omit_defaults=True):
    """A stored entry of a batch, or ``error``; ``duplicate`` is present only when true."""

    message_id: str | None = None
    duplicate: bool = False


class PublishBatchDone(Answer, kw_only=True):
    """One item for every entry, in order."""

    items: list[PublishedItem]


class Consume(Request, kw_only=True):
    """Lease messages. Absent: 10 messages, the queue's timeout, no wait. ``concurrency``: how many jobs this
    consumer works on at once (1), for estimates of what the queue's consumers can do."""

    queue: QueueName
    max_messages: MaxMessages | None = None
    visibility_timeout: VisibilityTimeout | None = None
    wait_seconds: WaitSeconds | None = None
    consumer_id: Key | None = None
    concurrency: Annotated[int, Meta(ge=1, le=limits.CONCURRENCY_MAX)] | None = None
    view: Literal["messages", "items", "both"] | None = None


class RedriveMark(Answer, kw_only=True):
    """That a message came back from the dead letters, and how often."""

    plan_id: str | None
    count: int


class Delivered(Answer, kw_only=True):
    """A leased message."""

    message_id: str
    job_key: str
    payload: Raw
    receipt_handle: str
    attempt: int
    delivery: int
    previous: Previous | None
    enqueued_at: str
    lease_expires_at: str
    message_group_id: str | None
    priority: int
    headers: Raw | dict[str, str]
    redrive: RedriveMark | None = None


class Deliveries(Answer, kw_only=True):
    """A consume's answer. On the wire the list is written as ``messages`` and as ``items``."""

    messages: list[Delivered]
    lease_seconds: float


class AckItem(Request, kw_only=True):
    """One message to settle; without a handle it means the current lease."""

    message_id: MessageId
    receipt_handle: Receipt | None = None


class Ack(AckItem, kw_only=True):
    """The message is done: delete it."""

    queue: QueueName


class AckBatchWire(Request, kw_only=True):
    """Many acks, as sent."""

    items: Annotated[list[AckItem], Meta(max_length=limits.BATCH_ENTRIES_MAX)]
    queue: QueueName | None = None


class AckBatch(AckBatchWire, kw_only=True):
    """Many acks. ``items`` are the valid ones in order, ``refused`` as in :class:`PublishBatch`."""

    refused: dict[int, Any] = field(default_factory=dict)


class AckDone(Answer, kw_only=True):
    """``acknowledged`` is false when the message was already gone; it is settled either way."""

    acknowledged: bool


class AckedItem(Item, kw_only=True, omit_defaults=True):
    """``acknowledged`` as in :class:`AckDone`, or ``error``."""

    acknowledged: bool | None = None


class AckBatchDone(Answer, kw_only=True):
    """One item for every ack, in order."""

    items: list[AckedItem]


class Nack(AckItem, kw_only=True):
    """The delivery failed. ``error`` goes through ``domain.fingerprint.error_info``."""

    queue: QueueName | None = None
    delay_seconds: DelaySeconds | None = None
    error: ErrorText | None = None
    permanent: bool | None = None


class NackDone(Answer, kw_only=True):
    """Where the message is now; ``visible_at`` is null when dead."""

    state: State
    visible_at: str | None
    attempts_left: int | None


class Extend(Request, kw_only=True):
    """Prolong a lease to ``visibility_timeout`` seconds from now."""

    queue: QueueName
    message_id: MessageId
    receipt_handle: Receipt
    visibility_timeout: ExtendTimeout


class ExtendDone(Answer, kw_only=True):
    """``lease_seconds``: measure from sending the request, by a monotonic clock."""

    lease_expires_at: str
    lease_seconds: float


class Release(Request, kw_only=True):
    """Give a lease back at once; spends no attempt."""

    queue: QueueName
    message_id: MessageId
    receipt_handle: Receipt


class ReleaseDone(Answer, kw_only=True):
    """Where the message is now."""

    state: State


class DeadLetter(AckItem, kw_only=True):
    """Move a leased message to the dead letters at once."""

    queue: QueueName
    reason: Reason
    error: ErrorText | None = None


class DeadLetterDone(Answer, kw_only=True):
    """``state`` is ``dead`` (or as the dead-letter queue's own rule says)."""

    state: State


class Cancel(Request, kw_only=True):
    """Cancel a message: at once, or when its lease ends without an ack."""

    queue: QueueName
    message_id: MessageId


class CancelDone(Answer, kw_only=True):
    """``cancelled`` now, or ``requested`` because it is leased."""

    cancelled: bool
    requested: bool


class MessageList(Request, kw_only=True):
    """Look at the messages of a queue; changes nothing."""

    queue: QueueName
    state: State | None = None
    since: Instant | None = None
    limit: ListLimit | None = None
    cursor: Cursor | None = None


class MessageGet(Request, kw_only=True):
    """Look at one message with its history; changes nothing."""

    message_id: MessageId


class ErrorRecord(Answer, kw_only=True):
    """A stored error; clean, bounded text."""

    type: str
    message: str
    stack: str = ""


class MessageItem(Answer, kw_only=True):
    """A message as seen without leasing it. ``payload`` may have redacted fields."""

    message_id: str
    job_key: str
    queue: str
    state: State
    payload: Raw
    attempt: int
    delivery: int
    previous: Previous | None
    enqueued_at: str
    visible_at: str | None
    lease_expires_at: str | None
    expires_at: str | None
    message_group_id: str | None
    priority: int
    headers: Raw | dict[str, str]
    redrive: RedriveMark | None = None


class MessagePage(Answer, kw_only=True):
    """A page of messages."""

    items: list[MessageItem]
    next_cursor: str | None = None


class AttemptRecord(Answer, kw_only=True):
    """One delivery that ended; a first-time success leaves none."""

    delivery: int
    attempt: int
    consumer_id: str | None
    leased_at: str | None
    ended_at: str
    end: Literal["acked", "nacked", "rejected", "expired", "released"]
    error: ErrorRecord | None = None


class LineageRecord(Answer, kw_only=True):
    """One stay in the dead letters."""

    queue: str
    origin: str | None
    reason: str
    error: ErrorRecord | None
    fingerprint: str | None
    dead_at: str
    closed_at: str | None
    closed_by: str | None


class MessageRecord(MessageItem, kw_only=True):
    """A message with its attempts, oldest first, and its stays in the dead letters."""

    attempts: list[AttemptRecord]
    lineage: list[LineageRecord]


def in_order(kind: type[ItemT], done: Iterable[ItemT], refused: Mapping[int, RedriveError]) -> list[ItemT]:
    """The answer's items in the request's order: ``done`` for the valid ones, an error where refused."""
    if not refused:
        return list(done)
    woven: list[ItemT] = []
    for item in done:
        while len(woven) in refused:
            woven.append(kind.refused(refused[len(woven)]))
        woven.append(item)
    while len(woven) in refused:
        woven.append(kind.refused(refused[len(woven)]))
    return woven
