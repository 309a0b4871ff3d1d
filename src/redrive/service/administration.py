"""Keys and backups."""

from __future__ import annotations

from typing import Any

import msgspec

from redrive.contract import shapes
from redrive.contract.idempotency import Idempotency
from redrive.contract.instants import rfc3339, rfc3339_or_none
from redrive.domain import limits
from redrive.domain.errors import Conflict, Forbidden, InvalidRequest, NotFound, RedriveError
from redrive.service.access import Caller
from redrive.service.context import Context, audit
from redrive.service.looking import cursor_number
from redrive.service.work import Read
from redrive.storage import commands as c
from redrive.storage.values import AuditRow, KeyRow

_DEFAULT_SCOPES = ("publish", "consume")


def create_key(context: Context, caller: Caller, request: shapes.KeyCreate, _key: Idempotency | None) -> Read:
    """A new key; its secret is in this answer and nowhere else."""

    def run() -> shapes.KeyCreated:
        scopes = tuple(request.scopes or _DEFAULT_SCOPES)
        queues = tuple(request.queues or caller.patterns)
        if not caller.may_grant(queues):
            raise Forbidden(
                f"the key {caller.name!r} is limited to queues {', '.join(caller.patterns)[:200]}",
                hint="make a key for these queues or fewer",
            )
        row, secret = context.access.new_key(request.name, scopes, queues, request.expires_at)
        _store(context, row, audit(caller, "key.create", row.key_id))
        return shapes.KeyCreated(**_fields(row), secret=secret)

    return Read(run)


def list_keys(context: Context, caller: Caller, request: shapes.KeyList, _key: Idempotency | None) -> Read:
    """A page of keys, without secrets."""

    def run() -> shapes.KeyPage:
        rows = [row for row in context.access.rows() if caller.may_grant(row.queues)]
        start = cursor_number(request.cursor)
        end = start + (request.limit or limits.LIST_LIMIT_DEFAULT)
        items = [shapes.KeyRecord(**_fields(row)) for row in rows[start:end]]
        return shapes.KeyPage(items=items, next_cursor=str(end) if len(rows) > end else None)

    return Read(run)


def rotate_key(context: Context, caller: Caller, request: shapes.KeyRotate, _key: Idempotency | None) -> Read:
    """A second key with the same rights; both live until the old one is revoked."""

    def run() -> shapes.KeyCreated:
        old = _own(context, caller, request.id)
        if old.revoked_ms is not None:
            raise Conflict(f"key {request.id} is revoked; create a new one")
        row, secret = context.access.new_key(old.name, old.scopes, old.queues, old.expires_ms)
        _store(context, row, audit(caller, "key.rotate", f"{old.key_id} -> {row.key_id}"))
        return shapes.KeyCreated(**_fields(row), secret=secret)

    return Read(run)


def revoke_key(context: Context, caller: Caller, request: shapes.KeyRevoke, _key: Idempotency | None) -> Read:
    """End a key; revoking again changes nothing."""

    def run() -> shapes.KeyRecord:
        row = _own(context, caller, request.id)
        if row.revoked_ms is None:
            now_ms = context.engine.read(lambda reader: reader.now_ms)
            row = msgspec.structs.replace(row, revoked_ms=now_ms)
            _store(context, row, audit(caller, "key.revoke", request.id, request.reason))
        return shapes.KeyRecord(**_fields(row))

    return Read(run)


def _own(context: Context, caller: Caller, key_id: str) -> KeyRow:
    """A key; one for queues that the caller may not see does not exist for it."""
    row = context.access.row(key_id)
    if not caller.may_grant(row.queues):
        raise NotFound(f"key {key_id} is not found")
    return row


def backup(context: Context, caller: Caller, request: shapes.Backup, _key: Idempotency | None) -> Read:
    """A consistent copy in the configured directory, while the service goes on. It holds every queue."""

    def run() -> shapes.BackupDone:
        if caller.visible is not None:
            raise Forbidden(
                f"the key {caller.name!r} is limited to some queues; a backup holds all of them",
                hint="use an admin key without queue patterns",
            )
        copy = getattr(context.engine, "backup", None)
        if copy is None:
            raise Conflict(
                f"the {context.engine.name} store has no backup of its own",
                hint="use the database's own tools (pg_basebackup, pg_dump)",
            )
        if context.backup_directory is None:
            raise Forbidden(
                "no backup directory is configured", hint="start the server with --backup-directory"
            )
        context.backup_directory.mkdir(parents=True, exist_ok=True)
        target = context.backup_directory / request.name
        if target.parent != context.backup_directory:
            raise InvalidRequest(f"name must be a plain file name, got {request.name!r}")
        try:
            size = int(copy(target))
        except FileExistsError:
            raise Conflict(f"a backup named {request.name} exists; it is never overwritten") from None
        context.committer.call(c.WriteAudit(audit(caller, "admin.backup", request.name)))
        now_ms = context.engine.read(lambda reader: reader.now_ms)
        return shapes.BackupDone(name=request.name, bytes=size, finished_at=rfc3339(now_ms))

    return Read(run)


def _store(context: Context, row: KeyRow, entry: AuditRow) -> None:
    answer = context.committer.call(c.PutKey(row, entry))
    if isinstance(answer, RedriveError):
        raise answer
    context.access.reload()


def _fields(row: KeyRow) -> dict[str, Any]:
    return {
        "id": row.key_id,
        "name": row.name,
        "scopes": list(row.scopes),
        "queues": list(row.queues),
        "created_at": rfc3339(row.created_ms),
        "expires_at": rfc3339_or_none(row.expires_ms),
        "revoked_at": rfc3339_or_none(row.revoked_ms),
    }
