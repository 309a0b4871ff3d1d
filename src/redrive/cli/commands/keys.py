"""``redrive key``: API keys, their scopes and their queues."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from redrive.cli.output import Column, note
from redrive.cli.session import LIMIT, OPERATOR, Limit, Session, command

app = typer.Typer(help="API keys: create, list, rotate, revoke.", no_args_is_help=True)

KeyId = Annotated[str, typer.Argument(help="As key list shows it.", metavar="KEY_ID")]
Name = Annotated[str, typer.Argument(help="Whose key it is.", metavar="NAME")]
Scopes = Annotated[
    list[str] | None,
    typer.Option(
        "--scope",
        help="publish, consume, operate, admin or metrics; repeatable (default: publish and consume).",
        metavar="SCOPE",
    ),
]
Queues = Annotated[
    list[str] | None,
    typer.Option(
        "--queue", help="A queue or a pattern, as settlement*; repeatable (default: all).", metavar="PATTERN"
    ),
]
Expires = Annotated[str | None, typer.Option(help="When it ends, as 2026-12-31T00:00:00Z.", metavar="TIME")]
Reason = Annotated[str | None, typer.Option(help="Why; kept in the audit log.")]
COLUMNS: Final[tuple[Column, ...]] = (
    "id", "name", "scopes", "queues", "created_at", "expires_at", "revoked_at", "last_used_at",
)  # fmt: skip


@command(app, "create", flags=OPERATOR)
def create(
    session: Session, name: Name, scope: Scopes = None, queue: Queues = None, expires_at: Expires = None
) -> None:
    """Make a key; its secret is printed now and never again."""
    request = {"name": name, "scopes": scope or None, "queues": queue or None, "expires_at": expires_at}
    _tell_secret(session, "account.keys.create", request)


@command(app, "list")
def listed(session: Session, limit: Limit = LIMIT) -> None:
    """List the keys, without their secrets."""
    session.show_items("account.keys.list", {}, COLUMNS, limit=limit, empty="no keys")


@command(app, "rotate", flags=OPERATOR)
def rotate(session: Session, key_id: KeyId) -> None:
    """Make a second secret with a key's rights, under an id of its own; it is printed now and never again.

    Both live until the old one is ended with `redrive key revoke KEY_ID`.
    """
    _tell_secret(session, "account.keys.rotate", {"id": key_id})


@command(app, "revoke", flags=OPERATOR)
def revoke(session: Session, key_id: KeyId, reason: Reason = None) -> None:
    """End a key at once."""
    session.do(
        "account.keys.revoke",
        {"id": key_id, "reason": reason},
        lambda done: f"{done['id']} ({done['name']}) is revoked",
    )


def _tell_secret(session: Session, capability_id: str, request: dict[str, Any]) -> None:
    """In text the secret is all that stdout gets, so that a script can keep it."""
    if session.out.as_json:
        session.out.json(session.client.exact(capability_id, request))
        return
    made = session.client.call(capability_id, request)
    scopes, queues = ", ".join(made["scopes"]), ", ".join(made["queues"])
    note(f"key {made['id']} ({made['name']}): {scopes} on {queues}; its secret:")
    session.out.line(made["secret"])
