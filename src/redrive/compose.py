"""From URLs to parts: the only place that names concrete engines, transports and ledgers.

``sqlite:///jobs.db`` (relative), ``sqlite:////var/lib/jobs.db`` (absolute), ``postgresql://…``, ``memory:``
name a store; ``http(s)://…`` names a server. A PostgreSQL URL may name the store's schema as libpq does,
``?options=-csearch_path%3Dnight``; without that it is ``redrive``.
"""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import parse_qs, unquote, urlsplit

from redrive.domain.errors import InvalidRequest
from redrive.transports import Transport, open_transport, register
from redrive.transports.contract_transport import ContractTransport
from redrive.worker import Worker

__all__ = ["Worker", "connect", "open_engine", "open_service", "schema_of", "sqlite_path"]

_STORES: Final = "sqlite:///path.db, postgresql://… or memory:"
_SEARCH_PATH: Final = re.compile(r"-c\s*search_path=([a-z_][a-z0-9_]{0,50})(?:\s|$)")


def sqlite_path(url: str) -> Path:
    """The file of a ``sqlite:///`` URL; ``InvalidRequest`` for one without a path."""
    parts = urlsplit(url)
    if parts.netloc or len(parts.path) < 2:
        raise InvalidRequest(
            f"storage must be like sqlite:///jobs.db or sqlite:////absolute/jobs.db, got {url}"
        )
    return Path(unquote(parts.path[1:]))


def schema_of(url: str) -> str:
    """The schema that a PostgreSQL URL asks for."""
    for options in parse_qs(urlsplit(url).query).get("options", []):
        if found := _SEARCH_PATH.search(options):
            return found[1]
    return "redrive"


def open_engine(url: str) -> Any:
    """The engine of a store's URL; drivers are loaded by those who use them only."""
    scheme = url.partition(":")[0].lower()
    if scheme == "memory":
        from redrive.storage.memory import MemoryEngine

        return MemoryEngine()
    try:
        if scheme == "sqlite":
            from redrive.storage.sqlite import RESERVE_BYTES, SqliteEngine

            return SqliteEngine(sqlite_path(url), reserve_bytes=RESERVE_BYTES)
        if scheme in ("postgresql", "postgres"):
            from redrive.storage.postgres import PostgresEngine

            return PostgresEngine(url, schema=schema_of(url))
    except ImportError as error:
        extra = "server" if scheme == "sqlite" else "server,postgres"
        raise InvalidRequest(
            f"{scheme} needs the package {error.name}", hint=f'pip install "redrive[{extra}]"'
        ) from error
    except OSError as error:
        raise InvalidRequest(
            f"{error.filename or url}: {error.strerror or error}",
            hint="the folder must be there, and this user must be able to write in it",
        ) from error
    raise InvalidRequest(f"storage must be {_STORES}, got a URL of scheme {scheme!r}")


def open_service(url: str, settings: Any = None) -> Any:
    """A service over the store of ``url``, not yet started."""
    try:
        from redrive.service import Service
    except ImportError as error:
        raise InvalidRequest(
            f"a store in this process needs the package {error.name}", hint='pip install "redrive[server]"'
        ) from error
    return Service(open_engine(url), settings)


class _Shared:
    """One service for all who connect to the same store from this process; the last one closes it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, tuple[Any, int]] = {}

    def enter(self, url: str) -> Any:
        """The service of ``url``, started by the first who asks; each memory: is a store of its own."""
        key = str(sqlite_path(url).absolute()) if url.startswith("sqlite:") else url
        with self._lock:
            if key in self._open and not key.startswith("memory"):
                service, users = self._open[key]
                self._open[key] = service, users + 1
            else:
                service = open_service(url)
                service.start()
                self._open[key] = service, 1
        return _Lent(self, key, service)

    def leave(self, key: str, service: Any) -> None:
        """One user less."""
        with self._lock:
            known, users = self._open.get(key, (service, 1))
            if known is service and users > 1:
                self._open[key] = service, users - 1
                return
            if known is service:
                self._open.pop(key, None)
            service.close()


class _Lent:
    """A shared service as one user sees it; closing it twice is the same as once."""

    def __init__(self, shared: _Shared, key: str, service: Any) -> None:
        self._shared, self._key, self._service = shared, key, service
        self._closed = False

    def call(
        self, capability_id: str, request: Any, idempotency: Any = None, *, actor: str | None = None
    ) -> Any:
        return self._service.call(capability_id, request, idempotency, actor=actor)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._shared.leave(self._key, self._service)


_SHARED = _Shared()


def _open_local(url: str, _api_key: str | None) -> Transport:
    from redrive.transports.local import open_local

    return open_local(_SHARED.enter(url))


for _scheme in ("sqlite", "postgresql", "postgres", "memory"):
    register(_scheme, _open_local)


def connect(url: str, api_key: str | None = None) -> ContractTransport:
    """A client of a server (``http://…``) or of a store in this process (``sqlite:///jobs.db``).

    ``publish``, ``consume``, ``ack`` and the other settle calls are methods; every other route of the
    contract is ``call(capability_id, {field: value})``. ``api_key`` is a server's key (default: the
    environment's ``REDRIVE_API_KEY``). Raises ``RedriveError`` for a store that cannot be opened, and
    ``ValueError`` for a scheme that nothing here can open. Close it when done.
    """
    return cast("ContractTransport", open_transport(url, api_key))
