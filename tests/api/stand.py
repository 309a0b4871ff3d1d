"""A stand-in for the service, for what concerns the edge alone: parked polls, failing work, slow replies.

It keeps no queue. What it should answer is told to it by a test; everything about queues is tested against
the real service.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from redrive.contract import Idempotency, shapes
from redrive.domain.errors import Overloaded, RedriveError, Unauthenticated
from redrive.service import Caller, Commit
from redrive.service.access import SYSTEM
from redrive.service.retention import Retention
from redrive.storage.memory import MemoryEngine

KEY = "stand-in-key-of-20-chars"


def caller(key_id: str = "k1", *scopes: str) -> Caller:
    """A caller with ``scopes``; none is admin."""
    return Caller(key_id, key_id, scopes or ("admin",))


class StandAccess:
    """Knows :data:`KEY` and whatever a test adds to ``callers``."""

    system = SYSTEM

    def __init__(self) -> None:
        self.callers = {KEY: caller()}

    def authenticate(self, secret: str) -> Caller:
        """The caller with ``secret``; raises Unauthenticated."""
        try:
            return self.callers[secret]
        except KeyError:
            raise Unauthenticated("the key is not known") from None


class StandTicket:
    """A parked command; ``cancelled`` is set when the edge gave it up."""

    def __init__(self, reply: Callable[[Any], None]) -> None:
        self.reply = reply
        self.cancelled = threading.Event()

    def cancel(self) -> bool:
        """Give it up."""
        self.cancelled.set()
        return True


@dataclass
class StandService:
    """Answers at once with ``answers[capability_id]`` (a value, an error, or a function of the request);
    ``parked`` ids never answer by themselves, their tickets are in ``tickets``.
    """

    answers: dict[str, Any] = field(default_factory=dict)
    parked: set[str] = field(default_factory=set)
    crowded: bool = False
    unready: str | None = None
    disk: str | None = None

    def __post_init__(self) -> None:
        self.access = StandAccess()
        self.committer = self
        self.retention = Retention(MemoryEngine(), None, 0)
        self.tickets: list[StandTicket] = []
        self.seen: list[tuple[str, Any, Idempotency | None]] = []
        self.parked_now = threading.Event()

    def prepare(self, capability_id: str, _: Any, request: Any, idempotency: Idempotency | None) -> Any:
        """Work that carries the request to :meth:`submit`."""
        self.seen.append((capability_id, request, idempotency))
        command: Any = (capability_id, request)
        return Commit(command, lambda result: result, getattr(request, "wait_seconds", None) or 0.0)

    def submit(self, command: tuple[str, Any], reply: Callable[[Any], None]) -> StandTicket:
        """Answer from another thread, or park."""
        if self.crowded:
            raise Overloaded("the queue of work is full", retry_after=2)
        ticket = StandTicket(reply)
        self.tickets.append(ticket)
        if command[0] in self.parked:
            self.parked_now.set()
        else:
            answer = self.answers.get(command[0], shapes.AckDone(acknowledged=True))
            value = answer(command[1]) if callable(answer) else answer
            threading.Thread(target=reply, args=(value,)).start()
        return ticket

    def submit_all(self, asked: Sequence[tuple[tuple[str, Any], Callable[[Any], None]]]) -> None:
        """Each for itself; a refusal goes to its reply."""
        for command, reply in asked:
            try:
                self.submit(command, reply)
            except Overloaded as error:
                reply(error)

    def ready(self) -> str | None:
        """Why it is not ready."""
        return self.unready

    def full(self) -> str | None:
        """Why it takes no new work although it is ready."""
        return self.disk

    def call(self, capability_id: str, request: Any, *, caller: Any) -> Any:
        """The blocking form."""
        answer = self.answers[capability_id]
        value = answer(request) if callable(answer) else answer
        if isinstance(value, RedriveError):
            raise value
        return value


def delivered(payload: bytes) -> shapes.Delivered:
    """A delivered message with the exact JSON text ``payload``."""
    return shapes.Delivered(
        message_id="019a1f3c-5a10-7000-8000-00000000002a",
        job_key="k",
        payload=msgspec.Raw(payload),
        receipt_handle="h",
        attempt=1,
        delivery=1,
        previous=None,
        enqueued_at="2026-10-23T02:00:00.000Z",
        lease_expires_at="2026-10-23T02:00:30.000Z",
        message_group_id=None,
        priority=0,
        headers=msgspec.Raw(b"{}"),
    )
