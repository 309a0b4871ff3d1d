"""Where a night takes place: fresh SQLite files in a folder, or fresh schemas in a PostgreSQL database."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import closing
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from redrive import seams


@dataclass(slots=True)
class Ground:
    """``folder`` holds logs and files, ``storage`` is the server's URL, ``game_url`` the game's.

    ``schemas`` are the ones made in a PostgreSQL database, else none.
    """

    folder: Path
    storage: str
    game_url: str
    _base: str = ""
    schemas: tuple[str, ...] = ()

    def clear(self, *, folder: bool = True) -> None:
        """Remove the schemas, and the folder unless its logs are still wanted."""
        if self.schemas:
            _in_each(self._base, "schema_drop", self.schemas)
        if folder:
            shutil.rmtree(self.folder, ignore_errors=True)


def prepare(storage: str | None) -> Ground:
    """Fresh ground: ``storage`` is None for SQLite files, or the URL of an existing PostgreSQL database.

    Raises ``ValueError`` for another kind of storage.
    """
    scheme = urlsplit(storage or "sqlite:").scheme
    if scheme not in ("sqlite", "postgresql", "postgres"):
        raise ValueError(f"the demo runs on SQLite or on postgresql://…, got scheme {scheme!r}")
    if storage is None or scheme == "sqlite":
        folder = _folder()
        return Ground(folder, f"sqlite:///{folder / 'server.db'}", f"sqlite:///{folder / 'game.db'}")
    name = f"redrive_demo_{seams.random_bits(32):08x}"
    schemas = (name, f"{name}_game")
    _in_each(storage, "schema_create", schemas)
    server, game = (_within(storage, schema) for schema in schemas)
    return Ground(_folder(), server, game, storage, schemas)


def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="redrive-demo-"))


def _within(url: str, schema: str) -> str:
    sign = "&" if urlsplit(url).query else "?"
    return f"{url}{sign}options={quote(f'-csearch_path={schema}', safe='')}"


def _in_each(url: str, statement: str, schemas: tuple[str, ...]) -> None:
    import psycopg
    from psycopg import sql

    path = resources.files("redrive.arena.game").joinpath("statements", f"{statement}.sql")
    text: Any = path.read_text("utf-8")
    with closing(psycopg.connect(url, autocommit=True, connect_timeout=5)) as connection:
        for schema in schemas:
            connection.execute(sql.SQL(text).format(schema=sql.Identifier(schema)))
