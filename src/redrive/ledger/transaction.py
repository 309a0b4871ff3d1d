"""The frame of every program that writes: a savepoint in the caller's transaction, or a transaction of its
own."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from typing import Any

from redrive.ledger.drivers.port import Mode
from redrive.ledger.errors import LedgerError, LedgerNotInstalled, LedgerRetry, NotBegun, TransactionEnded
from redrive.ledger.steps import Control, Program, Step
from redrive.ledger.verdicts import Verdict, verdict


class FromChange(Exception):
    """Marks an error of the user's change: undone as any other, and raised as it was."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


def framed(
    dialect: str, mode: Mode, body: Program, *, read_committed: bool = False, restores: bool = False
) -> Program:
    """``body`` inside a savepoint, committed only in a transaction of our own.

    Whatever goes wrong, every row that the body wrote is undone before the error leaves, so that a caller
    who catches it and commits keeps nothing of it. ``restores``: the body puts the bound of lock waits back
    itself.
    """
    begins = mode is not Mode.JOINED
    opening: tuple[Control, ...] = (Control.BEGIN,) if begins else ()
    begun = False
    try:
        if read_committed and mode is Mode.OWN:
            yield (Control.READ_COMMITTED,)
        yield (*opening, Control.SAVEPOINT, Control.BOUND)
        begun = True
        value = yield from body
        closing = (Control.RELEASE, Control.COMMIT) if mode is Mode.OWN else (Control.RELEASE,)
        yield closing if restores else (Control.RESTORE, *closing)
    except GeneratorExit:  # the driver is gone; there is nobody to ask
        raise
    except BaseException as raised:  # noqa: BLE001 - undone first, raised again below
        error = raised.error if isinstance(raised, FromChange) else raised
        found = verdict(dialect, error)
        whole = mode is Mode.OWN or found in (Verdict.RETRY_WHOLE, Verdict.ENDED)
        yield from _undo(dialect, whole or isinstance(error, TransactionEnded))
        if found is Verdict.LOST and not begun:
            raise NotBegun(f"the connection is dead: {error}", hint="run it again on another one") from error
        if isinstance(raised, FromChange) and found is not Verdict.RETRY_WHOLE:
            raise error from error.__cause__
        raise _translated(error, found) from (None if isinstance(error, LedgerError) else error)
    return value


def asked(dialect: str, mode: Mode, body: Program) -> Program:
    """``body``, which only reads: no lock and no transaction, but a savepoint where an error would end the
    caller's."""
    if mode is Mode.JOINED:
        return (yield from framed(dialect, mode, body))
    try:
        return (yield from body)
    except Exception as error:  # noqa: BLE001 - raised again, by its meaning
        raise _translated(error, verdict(dialect, error)) from (
            None if isinstance(error, LedgerError) else error
        )


def _undo(dialect: str, whole: bool) -> Generator[Step, Any, None]:
    for control in (Control.ROLLBACK,) if whole else (Control.UNDO, Control.ROLLBACK):
        with suppress(
            Exception
        ):  # UNDO: the savepoint went with its transaction. ROLLBACK: the connection did
            yield (control,)
            break
    if dialect == "mysql":  # PostgreSQL undoes its setting with the rest
        with suppress(Exception):  # a lost connection keeps no settings
            yield (Control.RESTORE,)


def _translated(error: BaseException, found: Verdict) -> BaseException:
    if found in (Verdict.RETRY, Verdict.RETRY_WHOLE, Verdict.LOST):
        return LedgerRetry(f"the database refused for now: {error}", hint="run the whole transaction again")
    if found is Verdict.MISSING:
        return not_installed()
    if found is Verdict.ENDED:
        return TransactionEnded(
            "the transaction that holds the receipt was ended under it",
            hint="a change must not commit, roll back or go on after a deadlock, nor run DDL on MySQL",
        )
    return error


def not_installed() -> LedgerNotInstalled:
    """The error that names the command."""
    return LedgerNotInstalled(
        "the ledger's tables are not in this database, or are older than this code",
        hint="run `redrive ledger install --ledger URL`, or ledger.install(idle_connection)",
    )
