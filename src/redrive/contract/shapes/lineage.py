"""Lineage: everything that happened to a message, or to the messages of a job (section 5 of the contract)."""

from __future__ import annotations

from typing import Literal

from msgspec import Raw

from redrive.contract.shapes.bounds import Answer, Cursor, Key, ListLimit, MessageId, Request
from redrive.contract.shapes.messages import ErrorRecord, MessageItem

StepName = Literal["published", "attempt", "dead", "closed", "planned", "redriven", "outcome", "removed"]


class MessageLineageGet(Request, kw_only=True):
    """One message with everything that is known of it, also when it is gone; changes nothing."""

    message_id: MessageId


class JobLineageGet(Request, kw_only=True):
    """The messages of a job, oldest first, each with everything that is known of it; changes nothing."""

    job_key: Key
    limit: ListLimit | None = None
    cursor: Cursor | None = None


class LineageStep(Answer, kw_only=True):
    """One thing that happened; what does not belong to it is null.

    ``published``: ``queue``. ``attempt``: a delivery that ended without an ack (``delivery``, ``attempt``,
    ``consumer_id``, ``leased_at``, ``end``, ``error``, ``fingerprint``). ``dead``: with ``reason``,
    ``error``, ``fingerprint``. ``closed``: the dead-letter record, ``reason`` says by what. ``planned``: a
    plan took it up (``plan_id``, ``actor``, ``reason``). ``redriven``: the plan sent it, with ``edit``, the
    merge patch on its payload. ``outcome``: what became of the plan's member. ``removed``: unfinished, with
    ``reason``.
    """

    at: str
    step: StepName
    queue: str | None = None
    delivery: int | None = None
    attempt: int | None = None
    consumer_id: str | None = None
    leased_at: str | None = None
    end: str | None = None
    reason: str | None = None
    error: ErrorRecord | None = None
    fingerprint: str | None = None
    plan_id: str | None = None
    actor: str | None = None
    edit: Raw | None = None
    outcome: str | None = None
    detail: str | None = None


class Lineage(Answer, kw_only=True):
    """A message from its publish to now. ``state`` is ``gone`` when the queue does not hold it any more:
    acknowledged, or as the last step says. ``message`` is what the queue holds. The server keeps failures: a
    message that was acknowledged at its first delivery leaves nothing here, its receipt is in the ledger.
    ``left_out`` counts attempts that are too many to be told, the oldest ones; errors are without their
    stacks, and cut.
    """

    message_id: str
    job_key: str | None
    queue: str | None
    state: str
    message: MessageItem | None
    steps: list[LineageStep]
    left_out: int = 0


class JobLineage(Answer, kw_only=True):
    """The messages of a job. ``complete`` is false when the queues hold too many messages to look through in
    the time there is; then messages that were never dead letters may be missing."""

    job_key: str
    complete: bool
    items: list[Lineage]
    next_cursor: str | None = None
