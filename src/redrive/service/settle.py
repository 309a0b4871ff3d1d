"""Ack, nack, extend, release, dead-letter, cancel: how a delivery ends."""

from __future__ import annotations

from typing import Any

import msgspec

from redrive.contract import shapes
from redrive.contract.idempotency import Idempotency
from redrive.contract.instants import rfc3339, seconds
from redrive.domain.errors import RedriveError
from redrive.domain.fingerprint import ErrorInfo, clean_text, error_info
from redrive.service.access import Caller
from redrive.service.context import Context, audit, milliseconds
from redrive.service.work import Commit, Read, Work
from redrive.storage import commands as c


def ack(_context: Context, caller: Caller, request: shapes.Ack, _key: Idempotency | None) -> Commit:
    """One message is done."""

    def finish(results: Any) -> shapes.AckDone:
        [result] = _granted(results)
        return shapes.AckDone(acknowledged=_granted(result))

    return Commit(c.Ack([(request.message_id, request.receipt_handle)], caller.visible), finish)


def ack_batch(_context: Context, caller: Caller, request: shapes.AckBatch, _key: Idempotency | None) -> Work:
    """Many messages are done."""

    def finish(results: Any) -> shapes.AckBatchDone:
        items = [
            shapes.AckedItem.refused(r) if isinstance(r, RedriveError) else shapes.AckedItem(acknowledged=r)
            for r in _granted(results)
        ]
        return shapes.AckBatchDone(items=shapes.in_order(shapes.AckedItem, items, request.refused))

    items = [(item.message_id, item.receipt_handle) for item in request.items]
    if not items:  # nothing is left to do when every one was refused
        return Read(lambda: finish([]))
    return Commit(c.Ack(items, caller.visible), finish)


def nack(_context: Context, caller: Caller, request: shapes.Nack, _key: Idempotency | None) -> Commit:
    """The delivery failed: retry by the queue's rule, or at once to the dead letters when permanent."""
    error = error_info(request.error)
    command: c.Settle
    if request.permanent:
        command = c.Reject(request.message_id, request.receipt_handle, caller.visible, error)
    else:
        delay = request.delay_seconds
        delay_ms = None if delay is None else milliseconds(delay)
        command = c.Nack(request.message_id, request.receipt_handle, caller.visible, delay_ms, error)

    def finish(result: Any) -> shapes.NackDone:
        settled = _settled(result)
        dead = settled.state == "dead"
        visible_at = None if dead else rfc3339(settled.visible_ms)
        return shapes.NackDone(
            state=settled.state,
            visible_at=visible_at,
            attempts_left=settled.attempts_left,
        )

    return Commit(command, finish)


def extend(_context: Context, caller: Caller, request: shapes.Extend, _key: Idempotency | None) -> Commit:
    """The lease ends later; by 0 the message goes back and the attempt stays spent."""
    visibility_ms = milliseconds(request.visibility_timeout)
    command = c.Extend(request.message_id, request.receipt_handle, caller.visible, visibility_ms)

    def finish(result: Any) -> shapes.ExtendDone:
        settled = _settled(result)
        until_ms = settled.lease_until_ms or settled.now_ms
        return shapes.ExtendDone(
            lease_expires_at=rfc3339(until_ms), lease_seconds=seconds(until_ms - settled.now_ms)
        )

    return Commit(command, finish)


def release(_context: Context, caller: Caller, request: shapes.Release, _key: Idempotency | None) -> Commit:
    """Give a message back unworked."""
    command = c.Release(request.message_id, request.receipt_handle, caller.visible)
    return Commit(command, lambda result: shapes.ReleaseDone(state=_settled(result).state))


def dead_letter(
    _context: Context, caller: Caller, request: shapes.DeadLetter, _key: Idempotency | None
) -> Commit:
    """To the dead letters at once; the free text stays in the error."""
    error = error_info(request.error)
    if error is None:
        error = ErrorInfo("Rejected", clean_text(request.reason))
    else:
        message = clean_text(f"{request.reason}: {error.message}" if error.message else request.reason)
        error = ErrorInfo(error.type, message, error.stack)
    command = c.Reject(
        request.message_id, request.receipt_handle, caller.visible, error, request.reason == "undecodable"
    )
    return Commit(command, lambda result: shapes.DeadLetterDone(state=_settled(result).state))


def cancel(_context: Context, caller: Caller, request: shapes.Cancel, _key: Idempotency | None) -> Commit:
    """Remove it now, or when its lease ends."""
    row = audit(caller, "message.cancel", request.message_id)
    command = c.Cancel(request.message_id, caller.visible, row)

    def finish(result: Any) -> shapes.CancelDone:
        now = bool(_granted(result))
        return shapes.CancelDone(cancelled=now, requested=not now)

    return Commit(command, finish)


def _granted(result: Any) -> Any:
    if isinstance(result, RedriveError):
        raise result
    return result


def _settled(result: Any) -> Any:
    settled = _granted(result)
    if settled.state == "gone":  # a cancelled message: for the contract it is as good as dead
        return msgspec.structs.replace(settled, state="dead")
    return settled
