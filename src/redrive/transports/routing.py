"""From a capability and a request to the parts of an HTTP request, read from the contract."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from redrive.contract.capabilities import CAPABILITIES

HANDLE_FENCED = frozenset(
    {
        "queue.consume",
        "queue.ack",
        "queue.ack_batch",
        "queue.nack",
        "queue.extend",
        "queue.release",
        "queue.dead_letter",
    }
)
"""Routes that may be repeated because a receipt handle, or a lease's end, makes the repetition harmless."""


@dataclass(frozen=True, slots=True)
class Route:
    """How a capability is reached. ``idempotent``: repeating does no more, under a key if ``records_key``."""

    capability_id: str
    method: str
    path: str
    idempotent: bool
    records_key: bool = False


@dataclass(frozen=True, slots=True)
class Parts:
    """A request cut for HTTP: ``path`` without the query, percent-encoded; ``body`` is JSON or empty."""

    method: str
    path: str
    path_params: dict[str, str]
    query: dict[str, str]
    body: bytes

    @property
    def target(self) -> str:
        """Path and query."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path


@functools.cache
def contract_routes() -> Mapping[str, Route]:
    """Every route of the contract by its capability's id."""
    return {
        capability.id: Route(
            capability.id, capability.method, capability.path, capability.idempotent, capability.records_key
        )
        for capability in CAPABILITIES
    }


def cut(route: Route, request: Mapping[str, Any]) -> Parts:
    """Place the fields of ``request`` into path, query (GET, DELETE) or JSON body; None is left out.

    Raises ``KeyError`` naming a missing path parameter.
    """
    left = {name: value for name, value in request.items() if value is not None}
    params: dict[str, str] = {}
    pieces = []
    for piece in route.path.split("/"):
        if not piece.startswith("{"):
            pieces.append(piece)
            continue
        name = piece.strip("{}")
        params[name] = str(left.pop(name))
        pieces.append(quote(params[name], safe=""))
    path = "/".join(pieces)
    if route.method in ("GET", "DELETE"):
        query = {name: _query_text(value) for name, value in left.items()}
        return Parts(route.method, path, params, query, b"")
    return Parts(route.method, path, params, {}, msgspec.json.encode(left))


def _query_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
