"""Opens the store, or the ledger, that a command works on in this process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redrive.cli.failures import OUT_OF_REACH, USAGE, Refusal
from redrive.cli.settings import without_password

if TYPE_CHECKING:
    from redrive.cli.session import Session


def open_store(url: str, settings: Any = None) -> Any:
    """The service over the store of ``url``, not yet started.

    Raises Refusal (exit 3) when another process owns the store, RedriveError or Lost when it cannot be
    opened.
    """
    from redrive.compose import open_service
    from redrive.domain.errors import Conflict

    try:
        return open_service(url, settings)
    except Conflict as owned:
        shown = without_password(url)
        raise Refusal(OUT_OF_REACH, f"{shown}: {owned.message}", hint=owned.hint, code=owned.code) from None


def sqlite_file(url: str) -> Path | None:
    """The file of an SQLite URL; None for another kind."""
    if not url.lower().startswith("sqlite:"):
        return None
    from redrive.compose import sqlite_path

    return sqlite_path(url)


@contextlib.contextmanager
def opened_ledger(session: Session, *, new: bool = False) -> Iterator[tuple[Any, str]]:
    """The ledger, and its URL without a password. ``new``: an SQLite file may be made."""
    from redrive.ledger import Ledger

    url = session.settings.ledger
    if url is None:
        raise Refusal(
            USAGE,
            "the application's database is not named",
            hint="Give --ledger sqlite:///app.db (REDRIVE_LEDGER).",
            code="LEDGER",
        )
    file = sqlite_file(url)
    if file is not None and not new and not file.is_file():
        raise Refusal(USAGE, f"ledger {url}: no such file", hint="Name it with --ledger.", code="LEDGER")
    with contextlib.closing(Ledger(url)) as ledger:
        yield ledger, without_password(url)


def timed(record: dict[str, Any]) -> dict[str, Any]:
    """A record of the ledger: milliseconds since the epoch as RFC 3339, under the name without the unit."""
    from redrive.contract.instants import rfc3339

    shown = {}
    for name, value in record.items():
        if name.endswith("_at_ms"):
            shown[name.removesuffix("_ms")] = None if value is None else rfc3339(value)
        else:
            shown[name] = value
    return shown
