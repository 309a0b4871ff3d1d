"""Opens the store that a command works on in this process."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from redrive.cli.failures import OUT_OF_REACH, USAGE, Refusal
from redrive.cli.settings import without_password

_SEARCH_PATH: Final = re.compile(r"-c\s*search_path=([a-z_][a-z0-9_]{0,50})(?:\s|$)")


def open_store(url: str, settings: Any = None) -> Any:
    """The service over the store of ``url``, not yet started.

    A PostgreSQL URL may name the store's schema as libpq does, ``?options=-csearch_path%3Dnight``. Raises
    Refusal (exit 3) when another process owns the store, RedriveError or Lost when it cannot be opened.
    """
    from redrive.compose import open_service
    from redrive.domain.errors import Conflict

    schema = schema_of(url)
    try:
        if schema is None:
            return open_service(url, settings)
        from redrive.service import Service
        from redrive.storage.postgres import PostgresEngine

        return Service(PostgresEngine(url, schema=schema), settings)
    except Conflict as owned:
        shown = without_password(url)
        raise Refusal(OUT_OF_REACH, f"{shown}: {owned.message}", hint=owned.hint, code=owned.code) from None
    except OSError as error:
        raise Refusal(
            USAGE,
            f"{without_password(url)}: {error.strerror or error}",
            hint="The folder must be there, and this user must be able to write in it.",
            code="STORAGE",
        ) from None


def schema_of(url: str) -> str | None:
    """The schema that a PostgreSQL URL asks for; None for the usual one."""
    if not url.lower().startswith(("postgresql:", "postgres:")):
        return None
    for options in parse_qs(urlsplit(url).query).get("options", []):
        if found := _SEARCH_PATH.search(options):
            return found[1]
    return None


def sqlite_file(url: str) -> Path | None:
    """The file of an SQLite URL; None for another kind."""
    if not url.lower().startswith("sqlite:"):
        return None
    return Path(unquote(urlsplit(url).path[1:]))
