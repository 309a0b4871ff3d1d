"""The ledger's tables: created by a command or a call of their own, never by the way."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from typing import Any

from redrive import seams
from redrive.ledger import catalog
from redrive.ledger.errors import LedgerError
from redrive.ledger.steps import Control, Migration, Program, Rows, Statement, Step


def install(dialect: str, is_open: bool) -> Program:
    """Bring the tables to this code's version, in a transaction of its own; answers the versions applied
    now."""
    if is_open:
        raise LedgerError(
            "a transaction is open here, and tables are never created inside a caller's transaction",
            hint="commit or roll back first, or run `redrive ledger install --ledger URL`",
        )
    return _install(dialect)


def _install(dialect: str) -> Generator[Step, Any, list[int]]:
    applied: list[int] = []
    try:
        yield (Control.BEGIN,)
        yield Statement("install_lock", {})
        yield Statement("versions_table", {})
        known: Rows = yield Statement("versions", {})
        done = {int(row[0]) for row in known.rows}
        for version, statements in catalog.migrations(dialect):
            if version in done:
                continue
            yield Migration(statements)
            yield Statement("version_applied", {"version": version, "now_ms": seams.wall_ms()})
            applied.append(version)
        yield (Control.COMMIT,)
        yield Statement("install_unlock", {})
    except GeneratorExit:
        raise
    except BaseException:
        yield from _give_up()
        raise
    return applied


def _give_up() -> Generator[Step, Any, None]:
    for step in ((Control.ROLLBACK,), Statement("install_unlock", {})):
        with suppress(Exception):  # the first error is the one to tell
            yield step
