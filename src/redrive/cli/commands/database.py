"""``redrive db``: the store itself. Its server must be stopped, but for a backup on the server's side."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from redrive.cli.failures import NO, USAGE, Refusal
from redrive.cli.session import OPERATOR, Session, command
from redrive.cli.settings import without_password

app = typer.Typer(help="The store: migrate, check, backup.", no_args_is_help=True)
STORE: Final = ("storage",)

Target = Annotated[str, typer.Argument(help="The copy's name, or its file with --storage.", metavar="NAME")]


@command(app, "migrate", flags=STORE)
def migrate(session: Session) -> None:
    """Make the store, or bring it to this version's schema; what is up to date stays as it is."""
    with _opened(session):
        where = without_password(session.settings.storage)
        if session.out.as_json:
            session.out.json({"storage": where, "up_to_date": True})
        else:
            session.out.line(f"{where} is up to date")


@command(app, "check", flags=STORE)
def check(session: Session) -> None:
    """Look for contradictions in the store; exit code 1 when there are any."""
    _exists(session)
    with _opened(session) as engine:
        findings = engine.check()
    where = without_password(session.settings.storage)
    if session.out.as_json:
        session.out.json({"storage": where, "sound": not findings, "findings": findings})
    elif findings:
        for finding in findings:
            session.out.line(finding)
    else:
        session.out.line(f"{where} is sound")
    if findings:
        raise typer.Exit(NO)


@command(app, "backup", flags=(*OPERATOR, "storage"))
def backup(session: Session, name: Target) -> None:
    """Make a consistent copy of an SQLite store; it never overwrites.

    The running server writes NAME into its --backup-directory. With --storage the store of a stopped server
    is copied into the file NAME. PostgreSQL has tools of its own for this: pg_basebackup, pg_dump.
    """
    if not session.found.origins["storage"].startswith("flag"):
        session.do(
            "admin.backup",
            {"name": name},
            lambda done: f"{done['name']}: {done['bytes']} bytes, by the server",
        )
        return
    _exists(session)
    target = Path(name)
    with _opened(session) as engine:
        copy = getattr(engine, "backup", None)
        if copy is None:
            raise Refusal(
                NO, f"a {engine.name} store has no backup of its own", hint="Use pg_basebackup or pg_dump."
            )
        try:
            size = copy(target)
        except FileExistsError:
            raise Refusal(NO, f"{target} exists; a backup never overwrites", code="CONFLICT") from None
        except OSError as error:
            raise Refusal(USAGE, f"{target}: {error.strerror}", code="FILE") from None
    if session.out.as_json:
        session.out.json({"name": name, "bytes": size})
    else:
        session.out.line(f"{name}: {size} bytes")


@contextlib.contextmanager
def _opened(session: Session) -> Iterator[Any]:
    from redrive.cli.stores import open_store

    service = open_store(session.settings.storage)  # never started: only its engine is used
    try:
        yield service.engine
    finally:
        service.engine.close()


def _exists(session: Session) -> None:
    """A check or a copy of a file that is not there must not make it."""
    from redrive.cli.stores import sqlite_file

    url = session.settings.storage
    file = sqlite_file(url)
    if file is not None and not file.is_file():
        raise Refusal(USAGE, f"storage {url}: no such file", hint="Name it with --storage.", code="STORAGE")
