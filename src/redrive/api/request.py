"""Reading a request off ASGI: the headers that count, the body under its cap, the query."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

from redrive.api.edge import ClientGone
from redrive.contract.decode import too_large
from redrive.contract.refusals import exceeded
from redrive.domain import limits
from redrive.domain.errors import InvalidRequest, Overloaded, Unauthenticated

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_READ = frozenset((
    b"authorization", b"idempotency-key", b"prefer", b"content-length", b"content-encoding",
    b"x-redrive-actor",
))  # fmt: skip


class Head:
    """The headers that the contract knows; the last of several counts."""

    __slots__ = ("_values",)

    def __init__(self, scope: Scope) -> None:
        self._values: dict[bytes, bytes] = {n: v for n, v in scope["headers"] if n in _READ}

    def secret(self) -> str:
        """The bearer key; raises Unauthenticated when there is none."""
        given = self._values.get(b"authorization", b"")
        scheme, _, secret = given.partition(b" ")
        if scheme.lower() != b"bearer" or not secret.strip():
            raise Unauthenticated(
                "this route needs a key", hint="Send the header Authorization: Bearer <key>."
            )
        return secret.strip().decode("utf-8", "replace")

    def idempotency_key(self) -> str | None:
        """``Idempotency-Key``, None when absent or empty."""
        given = self._values.get(b"idempotency-key", b"").strip()
        if len(given) > limits.KEY_BYTES_MAX:
            raise exceeded("Idempotency-Key", "at most", limits.KEY_BYTES_MAX, len(given), " bytes")
        try:
            return given.decode("utf-8") or None
        except UnicodeDecodeError:
            raise InvalidRequest(
                "Idempotency-Key must be UTF-8", details={"field": "Idempotency-Key"}
            ) from None

    def actor(self) -> str | None:
        """``X-Redrive-Actor``: who uses the key, for the audit log; None when absent or empty."""
        given = self._values.get(b"x-redrive-actor")
        if given is None:
            return None
        try:
            actor = given.strip().decode("utf-8")
        except UnicodeDecodeError:
            actor = "\0"
        if len(actor) > limits.ACTOR_CHARS_MAX:
            raise exceeded("X-Redrive-Actor", "at most", limits.ACTOR_CHARS_MAX, len(actor), " characters")
        if not actor.isprintable():
            raise InvalidRequest(
                "X-Redrive-Actor must be UTF-8 without control characters",
                details={"field": "X-Redrive-Actor"},
            )
        return actor or None

    def strict(self) -> bool:
        """Whether unknown fields are to be refused (``Prefer: handling=strict``)."""
        given = self._values.get(b"prefer")
        return given is not None and b"handling=strict" in given.lower().replace(b" ", b"")

    def check_encoding(self) -> None:
        """Raise InvalidRequest for a compressed body."""
        given = self._values.get(b"content-encoding", b"identity").strip().lower()
        if given not in (b"", b"identity"):
            raise InvalidRequest(
                f"content-encoding {given.decode('latin-1')[:40]!r} is not supported",
                hint="Send the body uncompressed.",
                details={"field": "Content-Encoding"},
            )

    def announced_bytes(self) -> int:
        """``Content-Length``, 0 when absent."""
        given = self._values.get(b"content-length", b"0")
        return int(given) if given.isdigit() else 0


class Room:
    """The bytes of bodies that the server holds at one time, all requests together."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._held = 0

    @contextlib.contextmanager
    def kept(self) -> Iterator[Callable[[int], None]]:
        """Takes bytes for one request, given back at the end; raises Overloaded when there is no room."""
        mine = 0

        def take(count: int) -> None:
            nonlocal mine
            if self._held + count > self._bytes_max:
                raise Overloaded(f"the bodies of requests at work fill their {self._bytes_max} bytes")
            self._held += count
            mine += count

        try:
            yield take
        finally:
            self._held -= mine


async def body_of(head: Head, receive: Receive, limit: int, take: Callable[[int], None]) -> bytes:
    """The whole body; PayloadTooLarge as soon as it is known to be above ``limit`` bytes, Overloaded when
    ``take`` has no room for a part of it.
    """
    head.check_encoding()
    announced = head.announced_bytes()
    if announced > limit:
        raise too_large(announced, limit)
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        size += len(message["body"])
        if size > limit:
            raise too_large(size, limit)
        take(len(message["body"]))
        parts.append(message["body"])
        more = message["more_body"]
    return parts[0] if len(parts) == 1 else b"".join(parts)


def query_of(scope: Scope) -> dict[str, str]:
    """The query, percent-decoded; the last of several values counts."""
    raw = scope["query_string"]
    if not raw:
        return {}
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, max_num_fields=100, errors="strict")
    except (ValueError, UnicodeDecodeError):
        raise InvalidRequest(
            "the query must be percent-encoded UTF-8 of at most 100 fields", details={"field": "query"}
        ) from None
    return dict(pairs)


async def until_gone(receive: Receive) -> None:
    """Return when the client has gone away."""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
