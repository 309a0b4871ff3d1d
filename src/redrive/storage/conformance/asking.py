"""What the scenarios ask of a rig."""

from __future__ import annotations

from typing import Any

from redrive.domain.errors import RedriveError
from redrive.domain.fingerprint import error_info
from redrive.storage import commands as c
from redrive.storage.conformance.rig import Rig
from redrive.storage.values import DeadFilter


def refused(kind: type[RedriveError], action: Any, *arguments: Any, **fields: Any) -> RedriveError:
    """The refusal that an action must raise."""
    try:
        action(*arguments, **fields)
    except kind as refusal:
        return refusal
    raise AssertionError(f"{kind.__name__} was expected")


def key(name: str, request: bytes = b"request1") -> c.Idempotent:
    """An idempotency key."""
    return c.Idempotent("queue.publish", name, request)


def dead(rig: Rig, queue: str = "jobs", **fields: Any) -> list[Any]:
    """Open dead letters of a queue."""
    select = DeadFilter(queue=queue, **fields)
    return rig.engine.read(lambda reader: reader.dead_page(select, (0, ""), 100))


def bury(rig: Rig, count: int = 1, queue: str = "jobs", **fields: Any) -> list[str]:
    """Publish and reject messages; their ids."""
    ids = [rig.publish(queue, **fields) for _ in range(count)]
    for _ in range(count):
        [message] = rig.lease(queue, 1)
        rig.do(c.Reject(message.message_id, message.handle, error=error_info("bad input")))
    return ids
