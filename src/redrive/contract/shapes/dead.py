"""Dead letters and redrive (section 5 of the contract)."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Raw

from redrive.contract.shapes.bounds import (
    Answer,
    Cursor,
    Instant,
    Key,
    ListLimit,
    MessageId,
    QueueName,
    Reason,
    Request,
)
from redrive.contract.shapes.messages import ErrorRecord
from redrive.domain import limits
from redrive.domain.facts import Obstacle
from redrive.domain.policy import FingerprintPolicy

DeadReason = Literal["max_attempts", "rejected", "lease_expired", "undecodable", "expired", "checksum"]
DEAD_REASONS: tuple[str, ...] = (
    "max_attempts", "rejected", "lease_expired", "undecodable", "expired", "checksum",
)  # fmt: skip
SearchText = Annotated[str, Meta(min_length=1, max_length=500)]


class DeadLetterFilter(Request, kw_only=True):
    """The filters of section 5, all of which must hold; ``queue`` is the source or the dead-letter queue."""

    queue: QueueName
    error_type: SearchText | None = None
    fingerprint: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    job_key: Key | None = None
    since: Instant | None = None
    until: Instant | None = None
    attempts_min: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None
    text: SearchText | None = None


class DeadLetterList(DeadLetterFilter, kw_only=True):
    """Page through dead letters, oldest ``dead_at`` first."""

    reason: DeadReason | None = None
    limit: ListLimit | None = None
    cursor: Cursor | None = None


class DeadLetterGroups(DeadLetterFilter, kw_only=True):
    """Dead letters grouped by fingerprint, largest group first."""

    reason: DeadReason | None = None
    limit: ListLimit | None = None
    cursor: Cursor | None = None


class DeadLetterRedrive(DeadLetterFilter, kw_only=True):
    """Send dead letters back. ``reason`` is the operator's; ``dead_reason`` filters by the record's
    (a ``reason`` that is exactly one of the records' reasons is read as that filter too).
    """

    message_ids: Annotated[list[MessageId], Meta(max_length=limits.BATCH_ENTRIES_MAX)] | None = None
    max_messages: Annotated[int, Meta(ge=1, le=limits.BATCH_ENTRIES_MAX)] | None = None
    reason: Reason | None = None
    dead_reason: DeadReason | None = None


class FingerprintPolicySet(Request, kw_only=True):
    """What becomes of failures of one fingerprint in ``queue``, the source: ``retry`` as ever (takes another
    policy back), ``reject`` a dead letter at the first failure, ``hold`` that too, and no redrive takes it
    along that does not name its fingerprint or its message_id.
    """

    queue: QueueName
    fingerprint: Annotated[
        str,
        Meta(min_length=1, max_length=limits.FINGERPRINT_CHARS, description="As dlq/groups shows it."),
    ]
    policy: FingerprintPolicy
    reason: Reason | None = None


class FingerprintPolicyList(Request, kw_only=True):
    """Page through the fingerprint policies of a queue."""

    queue: QueueName
    limit: ListLimit | None = None
    cursor: Cursor | None = None


class FingerprintPolicyRecord(Answer, kw_only=True):
    """The policy of one fingerprint: who set it, when, and why."""

    queue: str
    fingerprint: str
    policy: FingerprintPolicy
    reason: str | None
    actor: str
    set_at: str


class FingerprintPolicyPage(Answer, kw_only=True):
    """A page of the policies other than ``retry``, by fingerprint."""

    items: list[FingerprintPolicyRecord]
    next_cursor: str | None = None


class DeadLetterItem(Answer, kw_only=True):
    """A dead letter with why; ``origin`` is the source queue, null when published there by hand."""

    message_id: str
    job_key: str
    queue: str
    payload: Raw
    attempt: int
    delivery: int
    enqueued_at: str
    message_group_id: str | None
    priority: int
    headers: Raw | dict[str, str]
    reason: str | None
    error: ErrorRecord | None
    fingerprint: str | None
    attempts: int
    first_failed_at: str | None
    dead_at: str
    expires_at: str | None
    redrive_count: int
    origin: str | None


class DeadLetterPage(Answer, kw_only=True):
    """A page of dead letters."""

    items: list[DeadLetterItem]
    next_cursor: str | None = None


class DeadLetterGroup(Answer, kw_only=True):
    """The dead letters of one fingerprint: how many, when first and last. ``reason`` and ``error`` are those
    of the sample, ``policy`` is what its queue does with such failures.
    """

    fingerprint: str | None
    count: int
    first_dead_at: str
    last_dead_at: str
    reason: str
    error: ErrorRecord | None
    sample_message_id: str
    sample_job_key: str
    policy: FingerprintPolicy


class GroupList(Answer, kw_only=True):
    """A page of groups."""

    items: list[DeadLetterGroup]
    next_cursor: str | None = None


class SkippedMember(Answer, kw_only=True):
    """A member that was not redriven. ``reason``: ``in_use`` (leased from the dead-letter queue),
    ``skipped`` (a limit or policy forbids it), ``gone`` or ``moved_elsewhere``; ``detail`` is for people.
    """

    message_id: str
    reason: Obstacle
    detail: str


class Redriven(Answer, kw_only=True):
    """How many members the plan ``plan_id`` has accepted, which sends them. ``skipped_count`` says how many
    of the selected it has not, ``skipped`` names the first of them.
    """

    redriven: int
    plan_id: str | None = None
    skipped_count: int
    skipped: Annotated[list[SkippedMember], Meta(max_length=limits.REDRIVE_SKIPPED_MAX)]
