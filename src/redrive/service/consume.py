"""Consume: lease what is due, or wait for it."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from redrive.contract import shapes
from redrive.contract.idempotency import Idempotency
from redrive.contract.instants import rfc3339, seconds
from redrive.domain import limits
from redrive.domain.errors import RedriveError
from redrive.domain.facts import PREVIOUS
from redrive.service.access import Caller
from redrive.service.context import Context, milliseconds, see
from redrive.service.work import Commit
from redrive.storage import commands as c
from redrive.storage.values import Claimed

_NO_HEADERS = Raw(b"{}")


def consume(context: Context, caller: Caller, request: shapes.Consume, _key: Idempotency | None) -> Commit:
    """Up to ``max_messages``; with ``wait_seconds`` an empty answer comes only after that time."""
    see(caller, request.queue)
    visibility = request.visibility_timeout
    command = c.Lease(
        request.queue,
        request.max_messages or limits.CONSUME_MESSAGES_DEFAULT,
        None if visibility is None else milliseconds(visibility),
        request.consumer_id,
        context.auto_create_queues,
        request.wait_seconds or 0.0,
        request.concurrency or 1,
    )
    return Commit(command, _finish, command.wait_seconds)


def _finish(result: Any) -> shapes.Deliveries:
    if isinstance(result, RedriveError):
        raise result
    until = rfc3339(result.leased_ms + result.visibility_ms)
    messages = [_delivered(row, until) for row in result.messages]
    return shapes.Deliveries(messages=messages, lease_seconds=seconds(result.visibility_ms))


def _delivered(row: Claimed, until: str) -> shapes.Delivered:
    return shapes.Delivered(
        message_id=row.message_id,
        job_key=row.job_key or row.message_id,
        payload=Raw(row.body),
        receipt_handle=row.handle,
        attempt=row.attempt,
        delivery=row.delivery,
        previous=PREVIOUS[row.ended],
        enqueued_at=rfc3339(row.enqueued_ms),
        lease_expires_at=until,
        message_group_id=row.group_key or None,
        priority=row.priority,
        headers=Raw(row.headers) if row.headers else _NO_HEADERS,
        redrive=shapes.RedriveMark(plan_id=row.plan_id, count=row.redriven) if row.redriven else None,
    )
