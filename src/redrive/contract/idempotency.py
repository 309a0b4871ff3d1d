"""The idempotency key of a request and the hash that tells a replay from another request under its key."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

_LEFT_OUT = ("idempotency_key", "traceparent")


class Idempotency(Struct, frozen=True, gc=False):
    """``key`` as the caller gave it, ``route`` the capability's id, ``request_hash`` 8 bytes."""

    key: str
    request_hash: bytes
    route: str


class _Number(str):
    """A number's text; differs from the string of the same characters."""

    __slots__ = ()


def request_hash(body: bytes, named: Mapping[str, str] | None = None) -> bytes:
    """8 bytes that are equal for the same request: parsed JSON, keys sorted, numbers by their text, without
    ``idempotency_key`` and ``traceparent`` at the top. ``named`` are fields given outside of the body (path
    parameters; the batch's queue for an entry). ``body`` must be valid JSON, or empty, which is ``{}``.
    """
    members = _Pairs()
    if body.strip():
        parsed = json.loads(body, parse_int=_Number, parse_float=_Number, object_pairs_hook=_pairs)
        members = parsed if isinstance(parsed, _Pairs) else _Pairs([("", parsed)])
    present = {key for key, _ in members}
    outside = [(key, value) for key, value in (named or {}).items() if key not in present]
    kept = [pair for pair in members if pair[0] not in _LEFT_OUT]
    pieces: list[str] = []
    _write(_pairs([*kept, *outside]), pieces)
    return hashlib.blake2b("".join(pieces).encode(), digest_size=8).digest()


class _Pairs(list[tuple[str, Any]]):
    """An object's members, duplicates kept."""

    __slots__ = ()


def _pairs(members: list[tuple[str, Any]]) -> _Pairs:
    # a stable sort: duplicate keys keep their order, which is part of what was sent
    return _Pairs(sorted(members, key=lambda member: member[0]))


def _write(value: Any, pieces: list[str]) -> None:
    if isinstance(value, _Pairs):
        pieces.append("{")
        for key, member in value:
            pieces.append(json.dumps(key) + ":")
            _write(member, pieces)
            pieces.append(",")
        pieces.append("}")
    elif isinstance(value, list):
        pieces.append("[")
        for member in value:
            _write(member, pieces)
            pieces.append(",")
        pieces.append("]")
    elif isinstance(value, _Number):
        pieces.append(value)
    else:
        pieces.append(json.dumps(value))
