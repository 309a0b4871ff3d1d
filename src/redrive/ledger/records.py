"""What goes into the ledger and what comes out of it, as frozen values."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from redrive.domain import limits

GENERATION_HEADER = "redrive-generation"
"""The reserved header that carries a repaired job's generation, as decimal text."""

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Job:
    """One job to publish: ``key`` (its stable business key, at most 200 bytes) and ``payload`` (any JSON
    value).

    ``delay_seconds``, ``priority``, ``group``, ``deduplication_id`` and ``headers`` go to the queue as they
    are.
    """

    key: str
    payload: Any = None
    headers: Mapping[str, str] | None = None
    delay_seconds: float | None = None
    priority: int | None = None
    group: str | None = None
    deduplication_id: str | None = None


@dataclass(frozen=True, slots=True)
class Applied(Generic[R]):
    """The answer of ``apply_once``: truthy when the change ran now, falsy for a duplicate.

    ``result`` is what the change returned, now or (as JSON gives it back) when it ran; ``state`` is
    ``completed``, or ``cancelled`` for a job that must not run any more. It counts only once the
    transaction is committed.
    """

    ran: bool
    result: R
    state: str = "completed"

    def __bool__(self) -> bool:
        return self.ran


class Delivered(Protocol):
    """What the ledger reads of a delivery; the worker's own has more."""

    @property
    def job_key(self) -> str: ...
    @property
    def message_id(self) -> str: ...
    @property
    def delivery(self) -> int: ...
    @property
    def attempt(self) -> int: ...
    @property
    def queue(self) -> str: ...
    @property
    def headers(self) -> Mapping[str, str] | None: ...
    @property
    def previous(self) -> str | None: ...
    @property
    def generation(self) -> int: ...
    @property
    def consumer_id(self) -> str: ...


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job as the ledger knows it; times in ms since the epoch, ``result`` as JSON gives it back, ``batch``
    the key of the batch that it is a member of."""

    key: str
    queue: str
    state: str
    generation: int
    message_id: str | None
    delivery: int
    producer: str | None
    result: Any
    planned_at_ms: int | None
    accepted_at_ms: int | None
    completed_at_ms: int | None
    updated_at_ms: int
    batch: str | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """That a job is completed: when, in ms since the epoch, and the SHA-256 of its result's JSON text in
    hexadecimal; None where it has no result."""

    key: str
    completed_at_ms: int
    result_sha256: str | None


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """How one delivery ended: ``outcome`` is done, duplicate, retry, reject, lost, unrecorded or the
    worker's word.

    ``derived``: lost or unrecorded, known only from a later delivery; the delivery's own record may stand
    beside it.
    """

    message_id: str
    delivery: int
    derived: bool
    attempt: int | None
    generation: int
    worker: str | None
    outcome: str
    started_at_ms: int | None
    ended_at_ms: int
    error_type: str | None
    error_message: str | None
    error_stack: str | None
    fingerprint: str | None


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """A planned job as the relay publishes it; ``payload`` is its exact JSON text, ``msgspec.Raw``.

    ``idempotency_key`` is ``job_key#generation``: a second relay publishing the same row publishes nothing
    new.
    """

    job_key: str
    generation: int
    queue: str
    payload: msgspec.Raw
    headers: Mapping[str, str]
    delay_seconds: float | None
    priority: int | None
    group: str | None
    deduplication_id: str | None
    claim: str
    message_id: str | None = None

    @property
    def idempotency_key(self) -> str:
        """What the relay publishes it under."""
        return of_generation(self.job_key, self.generation)


def of_generation(name: str, generation: int) -> str:
    """``name#generation``, with the name's SHA-256 where that would be longer than a key may be."""
    key = f"{name}#{generation}"
    if len(key.encode()) <= limits.KEY_BYTES_MAX:
        return key
    return f"sha256:{hashlib.sha256(name.encode()).hexdigest()}#{generation}"


@dataclass(frozen=True, slots=True)
class LedgerStatus:
    """Jobs by state, what waits for a relay, and the age in seconds of the oldest planned job (0 when
    none)."""

    planned: int
    accepted: int
    completed: int
    isolated: int
    cancelled: int
    waiting_for_relay: int
    oldest_planned_seconds: float
