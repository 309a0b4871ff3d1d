"""What the ledger answers about batches and windows, as frozen values; times in ms since the epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Batched:
    """The answer of ``Ledger.batch``: truthy when the batch was made now, falsy when it was there already.

    ``members`` and ``open_members`` (those that are not completed) as they are in this transaction.
    """

    key: str
    made: bool
    state: str
    members: int
    open_members: int

    def __bool__(self) -> bool:
        return self.made


@dataclass(frozen=True, slots=True)
class BatchMember:
    """A member of a batch, and how its last delivery ended (None before the first one ended)."""

    key: str
    state: str
    queue: str
    message_id: str | None
    generation: int
    delivery: int
    updated_at_ms: int
    outcome: str | None = None
    error_type: str | None = None
    error_message: str | None = None
    worker: str | None = None
    ended_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A job that a batch publishes by itself; ``state`` None until it is planned."""

    key: str
    queue: str
    state: str | None


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """A batch. ``state``: open, overdue (open and past its deadline), complete or cancelled.

    ``open_members``: members that are not completed. ``window`` with its bounds: what the batch completes.
    """

    key: str
    state: str
    queue: str
    members: int
    open_members: int
    window: str | None
    window_start: datetime | None
    window_end: datetime | None
    deadline_at_ms: int | None
    created_at_ms: int
    completed_at_ms: int | None
    updated_at_ms: int


@dataclass(frozen=True, slots=True)
class BatchStatus:
    """A batch and what holds it open: ``counts`` of its members by state, the first isolated and cancelled
    ones in ``holding`` with why (more by ``Ledger.batch_members``), and its follow-ups."""

    batch: BatchRecord
    counts: Mapping[str, int]
    holding: Sequence[BatchMember]
    then: FollowUp | None
    on_deadline: FollowUp | None


@dataclass(frozen=True, slots=True)
class WindowRecord:
    """A window as it stands. ``mark``: the end of what is completed. ``open_until``: the cut of the open one,
    None when none is open; ``held_by``: ``run`` (a live run), ``batch`` or None; ``batch`` its key."""

    name: str
    mark: datetime
    open_until: datetime | None
    held_by: str | None
    batch: str | None
    opened_at_ms: int | None
    completed_at_ms: int | None


@dataclass(frozen=True, slots=True)
class WindowDone:
    """A window that was completed; ``batch`` the one that did it, None where a run did."""

    name: str
    start: datetime
    end: datetime
    batch: str | None
    opened_at_ms: int | None
    completed_at_ms: int
