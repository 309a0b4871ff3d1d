"""Values on their way in and out: keys in their limit, JSON for any store, text from all drivers."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from redrive.domain import limits
from redrive.domain.errors import InvalidRequest, LimitExceeded, PayloadTooLarge


def checked_key(dialect: str, key: Any, what: str = "job key") -> str | bytes:
    """``key`` as the dialect compares it (bytes on MySQL); InvalidRequest or LimitExceeded, naming
    ``what`` it is, when it is no key."""
    if not isinstance(key, str) or not key:
        raise InvalidRequest(
            f"{what} must be text that is not empty, got {type(key).__name__} {str(key)[:40]!r}"
        )
    try:
        raw = key.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidRequest(f"{what} holds a lone surrogate, which no store keeps") from error
    if b"\x00" in raw:
        raise InvalidRequest(f"{what} holds a NUL character, which no store keeps")
    if len(raw) > limits.KEY_BYTES_MAX:
        raise LimitExceeded(f"{what} must be at most {limits.KEY_BYTES_MAX} bytes, got {len(raw)}")
    return raw if dialect == "mysql" else key


def json_text(value: Any, what: str) -> str:
    """``value`` as ASCII JSON, which every database and charset takes; TypeError names ``what``."""
    try:
        plain = json.loads(bytes(value)) if isinstance(value, msgspec.Raw) else msgspec.to_builtins(value)
        text = json.dumps(plain, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{what} cannot be kept as JSON: {error}") from error
    if len(text) > limits.MIB:
        raise PayloadTooLarge(f"{what} must be at most {limits.MIB} bytes of JSON, got {len(text)}")
    return text


def payload_text(value: Any, key: str) -> str:
    """The exact JSON text of a payload; a ``msgspec.Raw`` stays as it is, byte by byte."""
    try:
        if isinstance(value, msgspec.Raw):
            text = bytes(value).decode("utf-8")
        else:
            plain = msgspec.to_builtins(value)
            text = json.dumps(plain, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        size = len(text.encode("utf-8"))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRequest(f"payload of job {key!r} cannot be written as JSON: {error}") from error
    if size > limits.BODY_BYTES_MAX:
        raise PayloadTooLarge(
            f"payload of job {key!r} must be at most {limits.BODY_BYTES_MAX} bytes, got {size}"
        )
    return text


def listed(items: Any) -> str:
    """A list parameter: ASCII JSON."""
    return json.dumps(items, separators=(",", ":"))


def text(value: Any) -> Any:
    """``value`` as text where a driver gave bytes (VARBINARY, a text factory of the application)."""
    return (
        bytes(value).decode("utf-8", "replace")
        if isinstance(value, bytes | bytearray | memoryview)
        else value
    )


def loaded(value: Any) -> Any:
    """The Python value of JSON text from a column; None for NULL."""
    return None if value is None else json.loads(text(value))


def page_size(limit: int) -> int:
    """``limit``, or LimitExceeded when a page must not be as long."""
    if not 1 <= limit <= limits.BATCH_ENTRIES_MAX:
        raise LimitExceeded(f"limit must be from 1 to {limits.BATCH_ENTRIES_MAX}, got {limit}")
    return limit
