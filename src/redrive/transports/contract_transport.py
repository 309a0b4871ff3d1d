"""The port over any carrier of the contract: the one implementation behind ``rest`` and ``local``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from redrive.domain import limits
from redrive.domain.errors import RedriveError, error_from
from redrive.domain.reconcile import Fate, Held
from redrive.transports import listing
from redrive.transports.port import Delivery, Entry, Lease, Nacked, Published, exact_json

Answer = TypeVar("Answer")
RELEASE_SECONDS = 5.0
CONSUME_SECONDS = (5.0, 30.0)


class Carrier(Protocol):
    """Takes one request to the contract and brings the answer's ``data`` back as JSON bytes.

    A carrier that repeats a request whose answer did not come makes the repetition harmless itself.
    """

    def call(
        self, capability_id: str, request: Mapping[str, Any], *, deadline_seconds: float | None = None
    ) -> bytes:
        """The answer; raises :class:`RedriveError` for a refusal, ``Unreachable`` when none came."""

    def close(self) -> None:
        """Give connections back."""


class _WireError(msgspec.Struct):
    code: str = "INTERNAL"
    message: str = ""
    hint: str = ""
    details: dict[str, Any] | None = None

    def exception(self) -> RedriveError:
        return error_from(self.code, self.message, hint=self.hint, details=self.details)


class _PublishItem(msgspec.Struct):
    message_id: str | None = None
    duplicate: bool = False
    error: _WireError | None = None

    def result(self) -> Published | RedriveError:
        if self.message_id is None:
            return (self.error or _WireError()).exception()
        return Published(self.message_id, self.duplicate)


class _PublishItems(msgspec.Struct):
    items: list[_PublishItem]


class _AckItem(msgspec.Struct):
    acknowledged: bool | None = None
    error: _WireError | None = None

    def result(self) -> bool | RedriveError:
        if self.acknowledged is None:
            return (self.error or _WireError()).exception()
        return self.acknowledged


class _AckItems(msgspec.Struct):
    items: list[_AckItem]


class _Consumed(msgspec.Struct):
    messages: list[Delivery]
    lease_seconds: float


class _Extended(msgspec.Struct):
    lease_seconds: float


class ContractTransport:
    """A :class:`~redrive.transports.port.Transport` that speaks the contract through ``carrier``."""

    def __init__(self, carrier: Carrier) -> None:
        self._carrier = carrier

    def __repr__(self) -> str:
        return f"ContractTransport({self._carrier!r})"

    def call(self, capability_id: str, request: Mapping[str, Any] | None = None) -> Any:
        """Any route of the contract by its capability's id; the answer's ``data`` as Python values."""
        return msgspec.json.decode(self._carrier.call(capability_id, request or {}))

    def _typed(
        self,
        capability_id: str,
        request: Mapping[str, Any],
        answer: type[Answer],
        deadline_seconds: float | None = None,
    ) -> Answer:
        data = self._carrier.call(capability_id, request, deadline_seconds=deadline_seconds)
        return msgspec.json.decode(data, type=answer)

    def publish(self, queue: str, entries: Sequence[Entry]) -> list[Published | RedriveError]:
        """Store ``entries``; one result for each, in order. A stored one is durable."""
        results: list[Published | RedriveError | None] = [None] * len(entries)
        ready: list[tuple[int, dict[str, Any]]] = []
        for place, entry in enumerate(entries):
            try:
                ready.append((place, _entry_fields(entry)))
            except RedriveError as refusal:
                results[place] = refusal
        for chunk in _chunks(ready):
            stored = self._publish_chunk(queue, [fields for _, fields in chunk])
            for (place, _), result in zip(chunk, stored, strict=True):
                results[place] = result
        return [result for result in results if result is not None]

    def _publish_chunk(self, queue: str, messages: list[dict[str, Any]]) -> list[Published | RedriveError]:
        if len(messages) == 1:
            try:
                return [self._typed("queue.publish", {"queue": queue, **messages[0]}, _PublishItem).result()]
            except RedriveError as refusal:
                if refusal.retryable:
                    raise
                return [refusal]
        request = {"queue": queue, "messages": messages}
        answer = self._typed("queue.publish_batch", request, _PublishItems)
        return [item.result() for item in answer.items]

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
        """Lease up to ``max_messages``, waiting up to ``wait_seconds`` for the first."""
        request = {
            "queue": queue,
            "max_messages": max_messages,
            "visibility_timeout": visibility_timeout,
            "wait_seconds": min(wait_seconds, limits.WAIT_SECONDS_MAX),
            "consumer_id": consumer_id,
            "concurrency": min(concurrency, limits.CONCURRENCY_MAX),
            "view": "messages",
        }
        answer = self._typed("queue.consume", request, _Consumed, _useful_seconds(visibility_timeout))
        return Lease(answer.messages, answer.lease_seconds)

    def ack(self, queue: str, items: Sequence[tuple[str, str]]) -> list[bool | RedriveError]:
        """Acknowledge (message_id, receipt_handle)s: True, False when it was gone before, or the refusal."""
        results: list[bool | RedriveError] = []
        for start in range(0, len(items), limits.BATCH_ENTRIES_MAX):
            batch = items[start : start + limits.BATCH_ENTRIES_MAX]
            fields = [{"message_id": message_id, "receipt_handle": handle} for message_id, handle in batch]
            answer = self._typed("queue.ack_batch", {"queue": queue, "items": fields}, _AckItems)
            results += [item.result() for item in answer.items]
        return results

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
        request = _settle(queue, message_id, receipt_handle)
        request |= {"delay_seconds": delay_seconds, "error": error, "permanent": permanent or None}
        return self._typed("queue.nack", request, Nacked)

    def extend(self, queue: str, message_id: str, receipt_handle: str, visibility_timeout: float) -> float:
        """Prolong the lease; its new length in seconds, measured from sending the request."""
        request = _settle(queue, message_id, receipt_handle)
        request["visibility_timeout"] = visibility_timeout
        # an answer that comes after the next heartbeat is due proves nothing any more
        return self._typed("queue.extend", request, _Extended, visibility_timeout / 3).lease_seconds

    def release(self, queue: str, message_id: str, receipt_handle: str) -> None:
        """Give an untouched message back at once; its attempt is not spent."""
        request = _settle(queue, message_id, receipt_handle)
        # a courtesy: without it the lease runs out, and a worker that stops must not wait for it long
        self._carrier.call("queue.release", request, deadline_seconds=RELEASE_SECONDS)

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
        request = _settle(queue, message_id, receipt_handle)
        request |= {"reason": reason[: limits.REASON_CHARS_MAX], "error": error}
        self._carrier.call("queue.dead_letter", request)

    def held(self, queue: str) -> Iterator[Sequence[Held]]:
        """Pages of the messages of ``queue`` and of its dead letters; changes nothing."""
        return listing.held(self._carrier.call, queue)

    def fate(self, queue: str, job_key: str, message_id: str | None) -> Fate:
        """What became of the message, or without its id of the job's messages; changes nothing."""
        return listing.fate(self._carrier.call, queue, job_key, message_id)

    def withdraw(
        self, queue: str, items: Sequence[tuple[Held, int | None]], reason: str
    ) -> list[bool | RedriveError]:
        """Take out messages whose jobs are final; see :class:`~redrive.transports.port.Withdraws`."""
        return listing.withdraw(self._carrier.call, queue, items, reason)

    def close(self) -> None:
        """Give connections back; the transport is not used again."""
        self._carrier.close()


def _useful_seconds(visibility_timeout: float | None) -> float | None:
    """How long an answer with leases is worth waiting for: no longer than they last. The sooner a connection
    that fell silent is given up, the sooner another one works."""
    if visibility_timeout is None:
        return None
    least, most = CONSUME_SECONDS
    return min(max(visibility_timeout, least), most)


def _settle(queue: str, message_id: str, receipt_handle: str) -> dict[str, Any]:
    return {"queue": queue, "message_id": message_id, "receipt_handle": receipt_handle}


def _entry_fields(entry: Entry) -> dict[str, Any]:
    fields = {name: value for name in entry.__struct_fields__ if (value := getattr(entry, name)) is not None}
    fields["payload"] = exact_json(entry.payload)
    return fields


def _chunks(entries: Sequence[tuple[int, dict[str, Any]]]) -> Iterator[list[tuple[int, dict[str, Any]]]]:
    """Cut ``entries`` so that each chunk is a legal batch by count and bytes."""
    chunk: list[tuple[int, dict[str, Any]]] = []
    room = limits.BATCH_BYTES_MAX
    for place, fields in entries:
        cost = len(bytes(fields["payload"])) + 1024  # keys and headers; a longer one is refused by the server
        cost += sum(len(name) + len(value) for name, value in (fields.get("headers") or {}).items())
        if chunk and (len(chunk) == limits.BATCH_ENTRIES_MAX or cost > room):
            yield chunk
            chunk, room = [], limits.BATCH_BYTES_MAX
        chunk.append((place, fields))
        room -= cost
    if chunk:
        yield chunk
