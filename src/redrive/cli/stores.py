"""Opens the store that a command works on in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from redrive.cli.failures import OUT_OF_REACH, Refusal
from redrive.cli.settings import without_password


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
