"""The audit log: listed, and its chain verified."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from redrive.contract import shapes
from redrive.contract.idempotency import Idempotency
from redrive.contract.instants import rfc3339
from redrive.domain import limits
from redrive.domain.errors import Forbidden, InvalidRequest
from redrive.service.access import Caller
from redrive.service.context import Context
from redrive.service.looking import cursor_number
from redrive.service.work import Read
from redrive.storage.audit_chain import Walk
from redrive.storage.port import Reader
from redrive.storage.values import AuditHead, AuditRow

_PAGES_MAX = 10  # verified by one answer: some 50 ms
_NOTED = re.compile(r"([0-9]{1,18}):([0-9a-f]{64})")


def listed(context: Context, caller: Caller, request: shapes.AuditList, _key: Idempotency | None) -> Read:
    """The audit log, newest first. A key that is limited to some queues sees the rows about these alone."""

    def run() -> shapes.AuditPage:
        limit = request.limit or limits.LIST_LIMIT_DEFAULT
        after, found = cursor_number(request.cursor), list[AuditRow]()
        while len(found) <= limit:
            page = context.engine.read(_page_after(after))
            found += [row for row in page if _asked_for(row, request, caller)]
            if len(page) < limits.LIST_LIMIT_MAX:
                break
            after = page[-1].id
        more = str(found[limit - 1].id) if len(found) > limit else None
        return shapes.AuditPage(items=[_record(row) for row in found[:limit]], next_cursor=more)

    return Read(run)


def _page_after(number: int) -> Callable[[Reader], list[AuditRow]]:
    return lambda reader: reader.audit_page(number, limits.LIST_LIMIT_MAX)


def verified(context: Context, caller: Caller, request: shapes.AuditVerify, _key: Idempotency | None) -> Read:
    """Go along the chain, as far as one answer goes; the cursor tells the next where to go on."""
    if caller.visible is not None:
        raise Forbidden(
            f"the key {caller.name!r} is limited to some queues; the chain goes over all of them",
            hint="use an admin key without queue patterns",
        )

    walk = _walk(request)

    def run() -> shapes.AuditVerified:
        rows = 0
        for _ in range(_PAGES_MAX):
            page, head = context.engine.read(_next_page(walk.number))
            before, last = walk.unchained, len(page) < limits.LIST_LIMIT_MAX
            walk.follow(page, head, last=last)
            if walk.broken is not None:
                good = sum(row.id <= walk.number for row in page)
                return _answer(walk, rows + good - (walk.unchained - before), ended=True)
            rows += len(page) - (walk.unchained - before)
            if last:
                return _answer(walk, rows, ended=True)
        return _answer(walk, rows, ended=False)

    return Read(run)


def _next_page(number: int) -> Callable[[Reader], tuple[list[AuditRow], AuditHead | None]]:
    return lambda reader: (reader.audit_chain(number, limits.LIST_LIMIT_MAX), reader.audit_head())


def _walk(request: shapes.AuditVerify) -> Walk:
    noted = None if request.noted is None else _noted(request.noted)
    if request.cursor is None:
        return Walk(noted=noted)
    try:
        number, unchained, digest = request.cursor.split(".")
        return Walk(int(number), bytes.fromhex(digest), int(unchained), noted)
    except ValueError:
        raise InvalidRequest(
            "cursor is not one that this check gave out", details={"field": "cursor"}
        ) from None


def _noted(given: str) -> tuple[int, bytes]:
    found = _NOTED.fullmatch(given)
    if found is None:
        raise InvalidRequest(
            f"noted must be a row's number and its hash, like 12:{'9f' * 32}, got {given[:100]!r}",
            details={"field": "noted"},
        )
    return int(found[1]), bytes.fromhex(found[2])


def _answer(walk: Walk, rows: int, *, ended: bool) -> shapes.AuditVerified:
    broken, chained = walk.broken, walk.hash != AuditHead().hash
    return shapes.AuditVerified(
        rows=rows,
        unchained=walk.unchained,
        last_id=str(walk.number) if chained else None,
        last_hash=walk.hash.hex() if chained else None,
        broken=None if broken is None else shapes.AuditBreak(id=str(broken.number), problem=broken.problem),
        next_cursor=None if ended else f"{walk.number}.{walk.unchained}.{walk.hash.hex()}",
    )


def _asked_for(row: AuditRow, request: shapes.AuditList, caller: Caller) -> bool:
    about_queue = row.action.startswith(("queue.", "dlq.", "plan."))
    return (
        (request.action is None or row.action == request.action)
        and (request.queue is None or row.target == request.queue)
        and (request.since is None or row.at_ms >= request.since)
        and (request.until is None or row.at_ms < request.until)
        and (caller.visible is None or (about_queue and caller.may_see(row.target)))
    )


def _record(row: AuditRow) -> shapes.AuditRecord:
    return shapes.AuditRecord(
        id=str(row.id),
        at=rfc3339(row.at_ms),
        actor=row.actor,
        action=row.action,
        queue=row.target,
        reason=row.reason,
        selection_sha256=row.selection_hash,
        outcome=row.outcome,
        details=msgspec.json.decode(row.detail),
        on_behalf_of=row.on_behalf_of,
        hash=None if row.hash is None else row.hash.hex(),
    )
