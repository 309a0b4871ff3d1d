"""A small queue in memory behind the transport's port: the worker's tests run on it, with real leases.

It passes the transports' own conformance suite, which is what makes it an honest stand-in.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from redrive import seams
from redrive.domain.errors import LimitExceeded, MessageNotFound, RedriveError, StaleReceipt
from redrive.transports import Delivery, Entry, Lease, Nacked, Published, Unreachable, exact_json

VISIBILITY_SECONDS = 30.0


@dataclass
class Message:
    """One stored message; instants are monotonic seconds."""

    message_id: str
    entry: Entry
    payload: msgspec.Raw
    due: float
    attempt: int = 0
    delivery: int = 0
    previous: str | None = None
    handle: str = ""
    lease_until: float | None = None
    settled_as: str = ""


@dataclass
class Queue:
    """One queue's messages, what died, and what happened to it, for assertions."""

    messages: dict[str, Message] = field(default_factory=dict)
    dead: dict[str, tuple[str, dict[str, str] | None]] = field(default_factory=dict)
    dedup: dict[str, str] = field(default_factory=dict)


class MemoryQueue:
    """A transport. ``broken`` makes every call fail as unreachable; ``events`` lists (verb, message id)."""

    def __init__(self, *, max_retries: int = 5, visibility_seconds: float = VISIBILITY_SECONDS) -> None:
        self.max_retries = max_retries
        self.visibility_seconds = visibility_seconds
        self.broken = threading.Event()
        self.events: list[tuple[str, str]] = []
        self.consumer_ids: set[str] = set()
        self.changed = threading.Condition(threading.RLock())
        self._queues: dict[str, Queue] = {}
        self._keys: dict[tuple[str, str], str] = {}
        self._numbers = itertools.count(1)

    def queue(self, name: str) -> Queue:
        """The queue ``name``, made on first use."""
        return self._queues.setdefault(name, Queue())

    def saw(self, verb: str) -> list[str]:
        """The message ids of every ``verb`` so far."""
        with self.changed:
            return [message_id for happened, message_id in self.events if happened == verb]

    def wait_for(self, verb: str, count: int = 1, seconds: float = 10.0) -> None:
        """Wait until ``verb`` happened ``count`` times; fails after ``seconds``."""
        with self.changed:
            came = self.changed.wait_for(lambda: len(self.saw(verb)) >= count, seconds)
        assert came, f"{verb} did not happen {count} times: {self.events}"

    def _note(self, verb: str, message_id: str = "") -> None:
        self.events.append((verb, message_id))
        self.changed.notify_all()

    def _reach(self) -> None:
        if self.broken.is_set():
            self._note("unreachable")
            raise Unreachable("memory: broken on purpose", sent=False)

    def publish(self, queue: str, entries: Sequence[Entry]) -> list[Published | RedriveError]:
        with self.changed:
            self._reach()
            return [self._store(queue, entry) for entry in entries]

    def _store(self, name: str, entry: Entry) -> Published | RedriveError:
        try:
            payload = exact_json(entry.payload)
        except RedriveError as refusal:
            return refusal
        if entry.job_key is not None and len(entry.job_key.encode()) > 200:
            return LimitExceeded("job_key must be at most 200 bytes")
        queue = self.queue(name)
        key = (name, entry.idempotency_key or "")
        if entry.idempotency_key is not None and key in self._keys:
            return Published(self._keys[key])
        if entry.deduplication_id is not None and entry.deduplication_id in queue.dedup:
            return Published(queue.dedup[entry.deduplication_id], duplicate=True)
        message_id = f"m{next(self._numbers)}"
        due = seams.monotonic() + (entry.delay_seconds or 0)
        queue.messages[message_id] = Message(message_id, entry, payload, due)
        self._keys[key] = message_id
        if entry.deduplication_id is not None:
            queue.dedup[entry.deduplication_id] = message_id
        self._note("publish", message_id)
        return Published(message_id)

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
        seconds = visibility_timeout or self.visibility_seconds
        ends_at = seams.monotonic() + wait_seconds
        with self.changed:
            self.consumer_ids.add(consumer_id)
            while True:
                self._reach()
                leased = self._claim(self.queue(queue), max_messages, seconds)
                left = ends_at - seams.monotonic()
                if leased or left <= 0:
                    return Lease(leased, seconds)
                self.changed.wait(min(left, 0.02))

    def _claim(self, queue: Queue, count: int, seconds: float) -> list[Delivery]:
        now = seams.monotonic()
        for message in list(queue.messages.values()):
            if message.lease_until is not None and message.lease_until <= now:
                self._back(queue, message, "lost", 0)
        leased: list[Delivery] = []
        blocked = {m.entry.message_group_id for m in queue.messages.values() if m.lease_until is not None}
        for message in list(queue.messages.values()):
            group = message.entry.message_group_id
            if message.lease_until is not None or message.due > now or (group and group in blocked):
                continue
            suspect = message.previous == "lost"
            if len(leased) == count or (suspect and leased):
                break
            leased.append(self._lease(message, now, seconds))
            blocked.add(group)
            if suspect:
                break
        return leased

    def _lease(self, message: Message, now: float, seconds: float) -> Delivery:
        message.attempt += 1
        message.delivery += 1
        message.handle = f"{message.message_id}.{message.delivery}"
        message.lease_until = now + seconds
        message.settled_as = ""
        self._note("lease", message.message_id)
        return Delivery(
            message_id=message.message_id,
            receipt_handle=message.handle,
            payload=message.payload,
            job_key=message.entry.job_key or message.message_id,
            attempt=message.attempt,
            delivery=message.delivery,
            previous=message.previous,
            headers=message.entry.headers,
        )

    def _back(self, queue: Queue, message: Message, ended: str, delay: float) -> str:
        message.lease_until = None
        message.previous = ended
        message.due = seams.monotonic() + delay
        if message.attempt > self.max_retries:
            return self._die(queue, message, "lease_expired" if ended == "lost" else "max_attempts", None)
        return "ready"

    def _die(self, queue: Queue, message: Message, reason: str, error: dict[str, str] | None) -> str:
        queue.messages.pop(message.message_id, None)
        queue.dead[message.message_id] = (reason, error)
        self._note("dead", message.message_id)
        return "dead"

    def _held(self, name: str, message_id: str, handle: str, *, late: bool = False) -> Message:
        message = self.queue(name).messages.get(message_id)
        if message is None:
            raise MessageNotFound(f"message {message_id} not found")
        if message.lease_until is not None and message.lease_until <= seams.monotonic() and not late:
            self._back(self.queue(name), message, "lost", 0)
        over = message.lease_until is None and not (late and message.previous == "lost")
        if message.handle != handle or over:
            raise StaleReceipt(f"the handle of {message_id} is stale")
        return message

    def ack(self, queue: str, items: Sequence[tuple[str, str]]) -> list[bool | RedriveError]:
        with self.changed:
            self._reach()
            return [self._ack(queue, *pair) for pair in items]

    def _ack(self, name: str, message_id: str, handle: str) -> bool | RedriveError:
        if message_id not in self.queue(name).messages:
            return False
        try:
            self._held(name, message_id, handle, late=True)
        except RedriveError as refusal:
            return refusal
        del self.queue(name).messages[message_id]
        self._note("ack", message_id)
        return True

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
        with self.changed:
            self._reach()
            message = self._held(queue, message_id, receipt_handle)
            self._note("nack", message_id)
            if permanent:
                return Nacked(self._die(self.queue(queue), message, "rejected", error))
            state = self._back(self.queue(queue), message, "nack", delay_seconds or 0)
            if state == "dead":
                self.queue(queue).dead[message_id] = ("max_attempts", error)
            return Nacked(state)

    def extend(self, queue: str, message_id: str, receipt_handle: str, visibility_timeout: float) -> float:
        with self.changed:
            self._reach()
            message = self._held(queue, message_id, receipt_handle)
            message.lease_until = seams.monotonic() + visibility_timeout
            self._note("extend", message_id)
            return visibility_timeout

    def release(self, queue: str, message_id: str, receipt_handle: str) -> None:
        with self.changed:
            self._reach()
            message = self._held(queue, message_id, receipt_handle)
            message.attempt -= 1
            self._back(self.queue(queue), message, "released", 0)
            self._note("release", message_id)

    def dead_letter(
        self,
        queue: str,
        message_id: str,
        receipt_handle: str,
        *,
        reason: str,
        error: dict[str, str] | None = None,
    ) -> None:
        with self.changed:
            self._reach()
            message = self._held(queue, message_id, receipt_handle)
            self._die(self.queue(queue), message, reason, error)

    def close(self) -> None:
        """Nothing is held."""
