"""Queues: their policy, their record, their numbers (sections 3 and 6 of the contract)."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from redrive.contract.shapes.bounds import (
    Answer,
    BackoffSeconds,
    Cursor,
    ListLimit,
    MaxRetries,
    NewQueueName,
    QueueName,
    Reason,
    Request,
    RetentionDays,
    RetentionSeconds,
    VisibilityTimeout,
)

RATE_MIN = 0.001  # a message in a quarter of an hour; slower is a schedule, not a rate
QueueType = Literal["standard", "fifo"]
RedactPath = Annotated[str, Meta(min_length=1, max_length=200)]
Ceiling = Annotated[int, Meta(ge=0, le=1_000_000, description="Enforced when leasing; 0 is no limit.")]
Rate = Annotated[
    float,
    Meta(
        ge=0, le=1_000_000, description=f"Enforced when leasing; 0 is no limit, else at least {RATE_MIN:g}."
    ),
]


class RetryPolicyFields(Struct, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A queue's backoff as requested; an absent part keeps its default (create) or its value (update)."""

    base_seconds: BackoffSeconds | None = None
    factor: Annotated[float, Meta(ge=1, le=100)] | None = None
    max_seconds: BackoffSeconds | None = None
    jitter: bool | None = None


class QueuePolicy(Request, kw_only=True):
    """The policy fields of a queue. ``message_retention_days`` is read into ``retention_seconds``."""

    type: QueueType | None = None
    dead_letter_queue: QueueName | None = None
    max_retries: MaxRetries | None = None
    retention_seconds: RetentionSeconds | None = None
    message_retention_days: RetentionDays | None = None
    visibility_timeout_default: VisibilityTimeout | None = None
    enable_priority: bool | None = None
    retry_policy: RetryPolicyFields | None = None
    fifo_on_dead: Literal["block", "continue"] | None = None
    content_deduplication: bool | None = None
    max_in_flight: Ceiling | None = None
    max_per_second: Rate | None = None
    max_lease_seconds: VisibilityTimeout | None = None
    max_redrives: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None
    redrive_policy: Literal["free", "review", "forbidden"] | None = None
    require_receipt_handle: bool | None = None
    redact: Annotated[list[RedactPath], Meta(max_length=64)] | None = None


class QueueCreate(QueuePolicy, kw_only=True):
    """Make a queue, or confirm that it exists with every given value."""

    name: NewQueueName


class QueueUpdate(QueuePolicy, kw_only=True):
    """Change the policy of a queue; holds at once, except retention. ``type`` must be the queue's own."""

    name: QueueName


class QueueList(Request, kw_only=True):
    """Page through the queues that the key may see."""

    limit: ListLimit | None = None
    cursor: Cursor | None = None


class QueueGet(Request, kw_only=True):
    """One queue's record."""

    queue: QueueName


class QueueDelete(QueueGet, kw_only=True):
    """Delete a queue and its messages."""

    reason: Reason | None = None


class QueuePause(QueueGet, kw_only=True):
    """Stop delivery; publishing goes on."""

    reason: Reason | None = None


class QueueResume(QueuePause, kw_only=True):
    """Start delivery again."""


class QueuePurge(QueueGet, kw_only=True):
    """Delete all messages of a queue; ``confirm`` is the token that the same call without it returns."""

    confirm: Annotated[str, Meta(max_length=200)] | None = None
    reason: Reason | None = None


class QueueStatsGet(QueueGet, kw_only=True):
    """The numbers of a queue."""


class RetryPolicyRecord(Answer, kw_only=True):
    """The effective backoff."""

    base_seconds: float
    factor: float
    max_seconds: float
    jitter: bool


class QueueRecord(Answer, kw_only=True):
    """A queue with every setting at its effective value; a limit that is not set is null."""

    name: str
    type: QueueType
    dead_letter_queue: str
    max_retries: int
    retention_seconds: int
    message_retention_days: float
    visibility_timeout_default: float
    enable_priority: bool
    retry_policy: RetryPolicyRecord
    fifo_on_dead: Literal["block", "continue"]
    content_deduplication: bool
    max_in_flight: int | None
    max_per_second: float | None
    max_lease_seconds: float
    max_redrives: int
    redrive_policy: Literal["free", "review", "forbidden"]
    require_receipt_handle: bool
    redact: list[str]
    created_at: str
    implicit: bool
    state: Literal["active", "paused", "deleting"]


class QueuePage(Answer, kw_only=True):
    """A page of queues."""

    items: list[QueueRecord]
    next_cursor: str | None = None


class QueueDeleted(Answer, kw_only=True):
    """What a delete took along."""

    deleted: bool
    messages: int
    leased: int


class QueuePurged(Answer, kw_only=True):
    """How many messages a purge took."""

    purged: int


class Percentiles(Answer, kw_only=True):
    """Milliseconds; null where nothing was measured."""

    p50: float | None = None
    p95: float | None = None
    p99: float | None = None


class QueueStats(Answer, kw_only=True):
    """Section 6. Counts, ages in seconds, rates a minute; at most 5 s old."""

    queue: str
    ready: int
    delayed: int
    leased: int
    waiting: int
    dead: int
    oldest_ready_age_seconds: float
    oldest_dead_age_seconds: float
    dead_per_minute: float
    attempts: dict[str, int]
    attempts_settled: dict[str, int]
    published_total: int
    acked_total: int
    dead_total: int
    redriven_total: int
    expired_total: int
    service_time_ms: Percentiles
    consumers: int
    arrivals_per_minute: float
    unfenced_settles_total: int
    blocked_groups: int
    paused: bool
