"""From a capability and a request to the parts of an HTTP request, read from the contract."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from redrive.contract.capabilities import CAPABILITIES
from redrive.domain.errors import InvalidRequest, NotFound

_NO_JSON = (TypeError, ValueError, OverflowError, RecursionError)
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


def route_of(capability_id: str, routes: Mapping[str, Route] | None = None) -> Route:
    """The route of ``capability_id`` among ``routes`` (default: the contract's); raises NotFound."""
    known = contract_routes() if routes is None else routes
    if capability_id in known:
        return known[capability_id]
    close = difflib.get_close_matches(capability_id, known, n=1)
    hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(sorted(known))}"
    raise NotFound(f"the capability {capability_id} is not found in the contract", hint=hint)


def cut(route: Route, request: Mapping[str, Any]) -> Parts:
    """Place the fields of ``request`` into path, query (GET, DELETE) or JSON body; None is left out.

    Raises InvalidRequest naming a missing path parameter, or a value that is no JSON.
    """
    left = {name: value for name, value in request.items() if value is not None}
    params: dict[str, str] = {}
    pieces = []
    for piece in route.path.split("/"):
        if not piece.startswith("{"):
            pieces.append(piece)
            continue
        name = piece.strip("{}")
        if name not in left:
            raise InvalidRequest(f"{name} is missing in the request to {route.capability_id}")
        params[name] = str(left.pop(name))
        pieces.append(quote(params[name], safe=""))
    path = "/".join(pieces)
    if route.method in ("GET", "DELETE"):
        query = {name: _query_text(value) for name, value in left.items()}
        return Parts(route.method, path, params, query, b"")
    return Parts(route.method, path, params, {}, _body(left))


def _body(fields: Mapping[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(fields)
    except _NO_JSON as error:
        for name, value in fields.items():
            try:
                msgspec.json.encode(value)
            except _NO_JSON as reason:
                raise InvalidRequest(f"{name} cannot be written as JSON: {reason}") from error
        raise


def _query_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
