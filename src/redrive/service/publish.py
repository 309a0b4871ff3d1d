"""Publish, one message or many."""

from __future__ import annotations

from typing import Any

import msgspec

from redrive.contract import shapes
from redrive.contract.idempotency import Idempotency
from redrive.domain.errors import RedriveError
from redrive.service.access import Caller
from redrive.service.context import Context, idempotent, milliseconds, see
from redrive.service.work import Commit
from redrive.storage import commands as c


def publish(context: Context, caller: Caller, request: shapes.Publish, key: Idempotency | None) -> Commit:
    """One message."""
    see(caller, request.queue)
    command = c.Publish(request.queue, [_entry(request)], context.auto_create_queues, idempotent(key))
    return Commit(command, _published)


def publish_batch(
    context: Context, caller: Caller, request: shapes.PublishBatch, key: Idempotency | None
) -> Commit:
    """Many; valid entries are stored even when others are refused."""
    see(caller, request.queue)
    entries: list[c.Entry | RedriveError] = []
    for index, entry in enumerate(request.messages):
        own = request.entry_hashes.get(index)
        one = None
        if own is not None and entry.idempotency_key is not None:
            one = c.Idempotent("queue.publish", entry.idempotency_key, own)
        entries.append(_entry(entry, one))
    command = c.Publish(request.queue, entries, context.auto_create_queues, idempotent(key))

    def finish(results: Any) -> Any:
        if isinstance(results, RedriveError):
            raise results
        items = [
            shapes.PublishedItem(message_id=r.message_id, duplicate=r.duplicate)
            if isinstance(r, c.Published)
            else shapes.PublishedItem.refused(r)
            for r in results
        ]
        answer = shapes.PublishBatchDone(items=shapes.in_order(shapes.PublishedItem, items, request.refused))
        replayed = command.idempotent is not None and any(getattr(r, "replayed", False) for r in results)
        return shapes.Replayed(answer) if replayed else answer

    return Commit(command, finish)


def _entry(request: shapes.Publish | shapes.PublishEntry, key: c.Idempotent | None = None) -> c.Entry:
    headers = msgspec.json.encode(request.headers) if request.headers else None
    return c.Entry(
        bytes(request.payload),
        headers,
        request.job_key,
        milliseconds(request.delay_seconds or 0),
        request.priority,
        request.message_group_id,
        request.deduplication_id,
        key,
    )


def _published(results: Any) -> Any:
    if isinstance(results, RedriveError):
        raise results
    [result] = results
    if isinstance(result, RedriveError):
        raise result
    answer = shapes.PublishDone(message_id=result.message_id, duplicate=result.duplicate)
    return shapes.Replayed(answer) if result.replayed else answer
