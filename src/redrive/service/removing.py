"""Queues emptied and deleted, slice by slice; each leaves counts, tombstones and audit rows."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator

import msgspec

from redrive import seams
from redrive.contract import shapes
from redrive.contract.idempotency import Idempotency
from redrive.domain import limits
from redrive.domain.errors import ConfirmationRequired, Conflict, InvalidRequest, Overloaded, RedriveError
from redrive.service.access import Caller
from redrive.service.batching import SLICE
from redrive.service.context import Context, audit, find_queue
from redrive.service.queues import stored
from redrive.service.work import Read
from redrive.storage import commands as c
from redrive.storage.values import AuditRow, Queue

_HELD_SECONDS = 0.05  # until another node's transaction may have let go
_TOKEN_SECONDS = 600


def delete(context: Context, caller: Caller, request: shapes.QueueDelete, _key: Idempotency | None) -> Read:
    """The name is free at once; the messages go along, with tombstones."""

    def run() -> shapes.QueueDeleted:
        queue = find_queue(context, caller, request.queue)
        held = context.engine.read(lambda reader: reader.counts(queue))
        row = audit(caller, "queue.delete", request.queue, request.reason)
        row.detail = msgspec.json.encode(
            {"ready": held.ready, "delayed": held.delayed, "waiting": held.waiting, "leased": held.leased}
        )
        _bequeath_redaction(context, caller, queue)
        try:
            deleted = stored(context.committer.call(c.SetQueueState(request.queue, "deleting", row)))
        except Conflict:
            if caller.visible is None:
                raise
            # the refusal names the queues, and this key may not see them all
            raise Conflict(f"queue {queue.name} is the dead-letter queue of another queue") from None
        _purge_deleted(context, deleted.name)
        messages = held.ready + held.delayed + held.waiting + held.leased
        return shapes.QueueDeleted(deleted=True, messages=messages, leased=held.leased)

    return Read(run)


def _bequeath_redaction(context: Context, caller: Caller, queue: Queue) -> None:
    """Its dead letters outlive the queue: what it keeps out of sight stays so by the settings of theirs."""
    if not queue.policy.redact:
        return
    heir = context.engine.read(lambda reader: reader.queue(queue.dead_letter_name))
    if heir is None or set(queue.policy.redact) <= set(heir.policy.redact):
        return
    paths = tuple(dict.fromkeys((*heir.policy.redact, *queue.policy.redact)))
    row = audit(caller, "queue.update", heir.name, f"redacts what {queue.name} did, which is deleted")
    stored(context.committer.call(c.UpdateQueue(heir.name, {"redact": paths}, audit=row)))


def purge(context: Context, caller: Caller, request: shapes.QueuePurge, _key: Idempotency | None) -> Read:
    """Remove what the queue holds now; needs the token that the same call without it returns."""

    def run() -> shapes.QueuePurged:
        queue = find_queue(context, caller, request.queue)
        now_ms = context.engine.read(lambda reader: reader.now_ms)
        slot = now_ms // (_TOKEN_SECONDS * 1000)
        if request.confirm is None:
            held = context.engine.read(lambda reader: reader.counts(queue))
            counts = {name: getattr(held, name) for name in ("ready", "delayed", "waiting", "leased")}
            raise ConfirmationRequired(
                f"purging {queue.name} removes {sum(counts.values())} messages",
                hint="repeat the call with confirm set to the token",
                details={"confirm": _token(queue, slot), "messages": sum(counts.values()), **counts},
            )
        if request.confirm not in (_token(queue, slot), _token(queue, slot - 1)):
            raise InvalidRequest("confirm is not the current token of this queue", hint="ask for a new one")
        removed = _purge_audited(
            context, queue.name, now_ms, audit(caller, "queue.purge", queue.name, request.reason)
        )
        return shapes.QueuePurged(purged=removed)

    return Read(run)


def _purge_audited(context: Context, name: str, before_ms: int, row: AuditRow) -> int:
    """The first slice takes the audit row along, so that nothing is ever removed without one; what takes more
    slices ends with a row that counts them all.
    """
    removed, first = 0, True
    try:
        for count, more in _slices(context, name, before_ms, row):
            removed += count
            if first and not more:
                return removed
            first = False
    except RedriveError:
        if removed:
            _count(context, row, removed, "stopped")
        raise
    _count(context, row, removed, "done")
    return removed


def _count(context: Context, row: AuditRow, removed: int, outcome: str) -> None:
    detail = msgspec.json.encode({"purged": removed})
    context.committer.call(c.WriteAudit(msgspec.structs.replace(row, outcome=outcome, detail=detail)))


def _purge_deleted(context: Context, name: str) -> None:
    """The messages of a deleted queue; what takes long goes on by itself (a duty of the service)."""
    deadline = seams.monotonic() + limits.WAIT_SECONDS_MAX
    for _ in _slices(context, name, None, None):
        if seams.monotonic() > deadline:
            return


def _slices(
    context: Context, name: str, before_ms: int | None, row: AuditRow | None
) -> Iterator[tuple[int, bool]]:
    """Slice by slice, how many messages went and whether there are more; a purge of millions takes its time.
    Without ``before_ms`` the queue is being deleted."""
    removed, progressed_at, pause = 0, seams.monotonic(), threading.Event()
    while True:
        answer = context.committer.call(c.Purge(name, SLICE, before_ms, before_ms is None, row))
        if isinstance(answer, RedriveError):
            raise answer
        assert isinstance(answer, c.Purged)
        removed, row = removed + answer.removed, None
        yield answer.removed, answer.more
        if not answer.more:
            return
        if answer.removed:
            progressed_at = seams.monotonic()
        elif seams.monotonic() - progressed_at > limits.WAIT_SECONDS_MAX:
            raise Overloaded(
                f"{removed} messages are removed; another node holds the rest",
                hint="repeat the request with a fresh token",
                retry_after=1,
            )
        else:
            seams.wait(pause, _HELD_SECONDS)


def _token(queue: Queue, slot: int) -> str:
    subject = f"purge\x00{queue.id}\x00{queue.created_ms}\x00{slot}"
    return hashlib.sha256(subject.encode()).hexdigest()[:16]
