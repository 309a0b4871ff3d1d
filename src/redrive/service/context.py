"""What every use case has at hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from redrive.contract.idempotency import Idempotency
from redrive.domain.errors import QueueNotFound
from redrive.egress.door import Door
from redrive.service.access import Access, Caller
from redrive.service.committer import Committer
from redrive.storage import commands as c
from redrive.storage.port import Engine
from redrive.storage.values import AuditRow, DeadFilter, Queue


class Context(msgspec.Struct):
    """The service's parts."""

    engine: Engine
    committer: Committer
    access: Access
    door: Door
    auto_create_queues: bool = True
    backup_directory: Path | None = None
    plans_changed: Callable[[], None] = lambda: None


def see(caller: Caller, queue: str) -> None:
    """A key that may not see a queue is told that it does not exist."""
    if not caller.may_see(queue):
        raise QueueNotFound(f"queue {queue} is not found")


def find_queue(context: Context, caller: Caller, name: str) -> Queue:
    """The queue, or ``QueueNotFound``."""
    see(caller, name)
    queue = context.engine.read(lambda reader: reader.queue(name))
    if queue is None or queue.state == "deleting":
        raise QueueNotFound(f"queue {name} is not found")
    return queue


def known_dead(context: Context, caller: Caller, name: str) -> None:
    """The queue exists, or dead letters stand under its name although it was deleted."""
    select = DeadFilter(queue=name)
    if caller.may_see(name) and context.engine.read(lambda reader: reader.dead_records(select, (0, ""), 1)):
        return
    find_queue(context, caller, name)


def audit(caller: Caller, action: str, target: str, reason: str | None = None) -> AuditRow:
    """An operator's action, to be written with its effect."""
    return AuditRow(0, caller.name, action, target, reason, None, "done", on_behalf_of=caller.on_behalf_of)


def idempotent(key: Idempotency | None) -> c.Idempotent | None:
    """The contract's idempotency as the store keeps it."""
    return None if key is None else c.Idempotent(key.route, key.key, key.request_hash)


def milliseconds(seconds: float) -> int:
    """Seconds as whole milliseconds."""
    return round(seconds * 1000)
