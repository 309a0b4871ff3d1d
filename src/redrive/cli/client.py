"""The contract as the commands use it: exact answers as bytes, values for tables, pages until enough."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from redrive.cli.failures import OUT_OF_REACH, Refusal
from redrive.cli.settings import Settings
from redrive.transports.contract_transport import Carrier, ContractTransport

PAGE: Final = 1_000
CONNECT_SECONDS: Final = 5.0


class _Page(msgspec.Struct):
    items: list[msgspec.Raw]
    next_cursor: str | None = None
    complete: bool = True


class Client:
    """A server, or a store in this process, behind one carrier."""

    def __init__(self, carrier: Carrier) -> None:
        self._carrier = carrier
        self.transport = ContractTransport(carrier)

    def exact(self, capability_id: str, request: Mapping[str, Any]) -> bytes:
        """The answer's ``data`` as the JSON text that was sent."""
        return self._carrier.call(capability_id, request)

    def call(self, capability_id: str, request: Mapping[str, Any]) -> Any:
        """The answer's ``data`` as Python values."""
        return self.transport.call(capability_id, request)

    def items(
        self, capability_id: str, request: Mapping[str, Any], limit: int | None
    ) -> tuple[list[msgspec.Raw], str | None]:
        """Up to ``limit`` items (None: all of them) over as many pages as it takes, and where more begin."""
        found: list[msgspec.Raw] = []
        for page in self.pages(capability_id, request, limit):
            found += page.items
            if limit is not None and len(found) >= limit:
                return found[:limit], page.next_cursor
        return found, None

    def pages(
        self, capability_id: str, request: Mapping[str, Any], limit: int | None = None, size_max: int = PAGE
    ) -> Iterator[_Page]:
        """The pages of up to ``limit`` items (None: of all), each asked for when it is wanted."""
        cursor, left = request.get("cursor"), limit
        while left is None or left > 0:
            size = size_max if left is None else min(size_max, left)
            answer = self._carrier.call(capability_id, {**request, "limit": size, "cursor": cursor})
            page = msgspec.json.decode(answer, type=_Page)
            yield page
            cursor = page.next_cursor
            if cursor is None:
                return
            left = None if left is None else left - len(page.items)

    def close(self) -> None:
        """Give connections back."""
        self._carrier.close()


def connected(settings: Settings) -> Client:
    """The client that ``settings`` name; raises Refusal (exit 3) when nothing listens there."""
    if not settings.url.lower().startswith(("http://", "https://")):
        return Client(_store(settings))
    from redrive.transports.rest import RestCarrier

    carrier = RestCarrier(
        settings.url, settings.api_key, deadline_seconds=settings.timeout_seconds, ca_file=settings.ca_file
    )
    _listens(settings.url)
    return Client(carrier)


def _listens(url: str) -> None:
    """A server that restarts is waited for, one that was never there is not."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname or "", port), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        raise Refusal(
            OUT_OF_REACH,
            f"cannot reach {url}: {error.strerror or error}",
            hint="Start one with `redrive serve`, or name yours with --url (REDRIVE_URL).",
            code="UNREACHABLE",
        ) from None


def _store(settings: Settings) -> Carrier:
    from redrive.cli.stores import open_store
    from redrive.transports.local import LocalCarrier

    service = open_store(settings.url)
    service.start()
    return LocalCarrier(service)
