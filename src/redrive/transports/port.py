"""The port: what a worker, a relay or a program asks of any queue, and the values that cross it.

Every method is synchronous and thread-safe, and returns within a deadline. Refusals are
:class:`~redrive.domain.errors.RedriveError`; a queue that cannot be reached is :class:`Unreachable`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from redrive.domain.errors import InvalidRequest, RedriveError
from redrive.domain.reconcile import Fate, Held

Call = Callable[[str, Mapping[str, Any]], bytes]
"""One route of the contract by its capability's id: the answer's ``data`` as JSON."""


class Unreachable(ConnectionError):
    """The queue did not answer in time. ``sent`` tells whether the request may have reached it."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message to publish.

    ``payload`` is any JSON value, or ``msgspec.Raw`` with its exact text. ``delay_seconds`` in seconds.
    ``idempotency_key`` makes a repeated publish answer the first message (24 h); ``deduplication_id`` and
    ``message_group_id`` belong to FIFO queues, ``priority`` (0-9, higher first) to standard ones.
    """

    payload: Any
    job_key: str | None = None
    idempotency_key: str | None = None
    headers: dict[str, str] | None = None
    delay_seconds: float | None = None
    priority: int | None = None
    message_group_id: str | None = None
    deduplication_id: str | None = None


class Published(msgspec.Struct, frozen=True):
    """A stored message. ``duplicate``: it was there before, nothing was added."""

    message_id: str
    duplicate: bool = False


class Redriven(msgspec.Struct, frozen=True):
    """That a message came back from the dead letters: by which plan (or None), and how often so far."""

    plan_id: str | None = None
    count: int = 0


class Delivery(msgspec.Struct, frozen=True):
    """One lease of one message.

    ``attempt`` (1-based) is the budget's count, ``delivery`` counts every lease for life. ``previous``
    tells how the last one ended: ``lost``, ``nack``, ``released`` or None. Instants are RFC 3339 text.
    """

    message_id: str
    receipt_handle: str
    payload: msgspec.Raw
    job_key: str
    attempt: int
    delivery: int
    previous: str | None = None
    enqueued_at: str | None = None
    lease_expires_at: str | None = None
    message_group_id: str | None = None
    priority: int | None = None
    headers: dict[str, str] | None = None
    redrive: Redriven | None = None

    def json(self) -> Any:
        """The payload as Python values; raises ``msgspec.DecodeError`` when it is not JSON."""
        return msgspec.json.decode(self.payload)


class Lease(msgspec.Struct, frozen=True):
    """The answer of consume: what was leased, and for how many seconds from sending the request on."""

    messages: list[Delivery]
    lease_seconds: float


class Nacked(msgspec.Struct, frozen=True):
    """What became of a nacked message: ``state`` (``dead`` when its budget is spent), the next due time."""

    state: str
    visible_at: str | None = None
    attempts_left: int | None = None


class Transport(Protocol):
    """A queue, as the application's side sees it."""

    def publish(self, queue: str, entries: Sequence[Entry]) -> list[Published | RedriveError]:
        """Store ``entries``; one result for each, in order. A stored one is durable."""

    def consume(
        self,
        queue: str,
        *,
        max_messages: int,
        visibility_timeout: float | None,
        wait_seconds: float,
        consumer_id: str,
        concurrency: int = 1,
    ) -> Lease:
        """Lease up to ``max_messages``, waiting up to ``wait_seconds`` for the first. ``concurrency``: how
        many jobs this consumer works on at once, where the queue wants to know."""

    def ack(self, queue: str, items: Sequence[tuple[str, str]]) -> list[bool | RedriveError]:
        """Acknowledge (message_id, receipt_handle)s: True, False when it was gone before, or the refusal."""

    def nack(
        self,
        queue: str,
        message_id: str,
        receipt_handle: str,
        *,
        delay_seconds: float | None = None,
        error: dict[str, str] | None = None,
        permanent: bool = False,
    ) -> Nacked:
        """Give a failed message back; ``error`` has ``type``, ``message``, ``stack``."""

    def extend(self, queue: str, message_id: str, receipt_handle: str, visibility_timeout: float) -> float:
        """Prolong the lease; its new length in seconds, measured from sending the request."""

    def release(self, queue: str, message_id: str, receipt_handle: str) -> None:
        """Give an untouched message back at once; its attempt is not spent."""

    def dead_letter(
        self,
        queue: str,
        message_id: str,
        receipt_handle: str,
        *,
        reason: str,
        error: dict[str, str] | None = None,
    ) -> None:
        """Move the message to the dead letters."""

    def close(self) -> None:
        """Give connections back; the transport is not used again."""


class Lists(Protocol):
    """What a transport offers beside :class:`Transport` when it can list what it holds. Reading changes
    nothing. Without this a reconciliation says what cannot be known."""

    def held(self, queue: str) -> Iterator[Sequence[Held]]:
        """Pages of the messages of ``queue`` and of its dead letters. What moves under the listing may be
        missing or stand there twice."""


class Tells(Protocol):
    """What a transport offers when it can tell what became of a message."""

    def fate(self, queue: str, job_key: str, message_id: str | None) -> Fate:
        """The fate of the message, or without its id that of the job's messages."""


class Withdraws(Protocol):
    """What a transport offers when single messages can be taken out."""

    def withdraw(
        self, queue: str, items: Sequence[tuple[Held, int | None]], reason: str
    ) -> list[bool | RedriveError]:
        """Remove messages whose jobs are final, each with the job's completion in ms since the epoch (None:
        it was cancelled). For each: True, False when it was gone before, or the refusal."""


def exact_json(value: Any) -> msgspec.Raw:
    """``value`` as JSON text that means the same everywhere; raises InvalidRequest.

    NaN, infinities and lone surrogates are refused, never replaced; integers keep all their digits.
    """
    if isinstance(value, msgspec.Raw):
        return value
    try:
        text = json.dumps(
            value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=msgspec.to_builtins
        )
        return msgspec.Raw(text.encode("utf-8"))
    except (ValueError, TypeError, RecursionError) as error:  # UnicodeEncodeError is a ValueError
        raise InvalidRequest(f"payload cannot be written as JSON: {error}") from error
