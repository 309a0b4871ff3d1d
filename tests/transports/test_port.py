"""The values that cross the port, and how a URL becomes a transport."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

import msgspec
import pytest

from redrive import transports
from redrive.domain.errors import InvalidRequest
from redrive.transports import Delivery, Transport, exact_json, open_transport


def deep(levels: int) -> list[Any]:
    """Lists in lists."""
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [1.5, None, True]}, b'{"b":1,"a":[1.5,null,true]}'),
        (2**70, b"1180591620717411303424"),
        ("é\x00", '"é\\u0000"'.encode()),
        (uuid.UUID(int=1), b'"00000000-0000-0000-0000-000000000001"'),
        (dt.date(2026, 10, 23), b'"2026-10-23"'),
        (msgspec.Raw(b'{"a": 1.50}'), b'{"a": 1.50}'),
    ],
)
def test_a_payload_keeps_its_meaning(value: Any, text: bytes) -> None:
    """Order, digits and text are kept; Raw is not touched at all."""
    assert bytes(exact_json(value)) == text


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), "\ud800", {1: object()}, deep(100_000)])
def test_what_is_no_json_is_refused(value: Any) -> None:
    """Nothing is replaced in silence."""
    with pytest.raises(InvalidRequest, match="payload cannot be written as JSON"):
        exact_json(value)


def test_a_delivery_decodes_when_asked() -> None:
    """The payload stays exact text until ``json()``."""
    broken = Delivery("m", "h", msgspec.Raw(b"{"), "k", 1, 1)
    with pytest.raises(msgspec.DecodeError):
        broken.json()
    assert Delivery("m", "h", msgspec.Raw(b"[12345678901234567890123]"), "k", 1, 1).json() == [
        12345678901234567890123
    ]


def test_an_unknown_scheme_names_the_known_ones() -> None:
    """The error says what could have been written."""
    with pytest.raises(ValueError, match=r"no transport for the scheme 'ftp'; known here: .*http, https"):
        open_transport("ftp://x")


def test_a_scheme_can_be_added(monkeypatch: pytest.MonkeyPatch) -> None:
    """compose and the extras register theirs; URL and key are handed over."""
    monkeypatch.setattr(transports, "_SCHEMES", {})
    seen: list[tuple[str, str | None]] = []

    def opener(url: str, api_key: str | None) -> Transport:
        seen.append((url, api_key))
        return None  # type: ignore[return-value]

    transports.register("carrier-pigeon", opener)
    open_transport("carrier-pigeon://roof", "key")
    assert seen == [("carrier-pigeon://roof", "key")]
