"""Errors made comparable: clean text that every store accepts, and a stable fingerprint.

A fingerprint is the normalised error type, code and place, with ids, numbers and addresses removed, so that
12,000 failures of one cause are one group. Storing an error can never fail: NUL, lone surrogates and
megabyte traces are cleaned and cut here, before any store sees them.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

from redrive.domain import limits

CUT_MARKER = "\n… [cut]"

_NOISE = (
    (re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"), "<id>"),
    (re.compile(r"0x[0-9a-fA-F]+"), "<addr>"),
    (re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b"), "<ip>"),
    (re.compile(r"'[^']{0,300}'|\"[^\"]{0,300}\""), "<text>"),
    (re.compile(r"\b(?=\w*\d)\w+(?:[-:./]\w+)*\b"), "<n>"),
    (re.compile(r"\s+"), " "),
)
_PLACE = re.compile(r'File "([^"]{1,500})", line \d+, in ([^\n]{1,200})')


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """A failure as it is kept: ``type``, ``message`` and ``stack`` are clean text, ``stack`` may be empty."""

    type: str
    message: str
    stack: str = ""

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal characters; see :func:`fingerprint`."""
        return fingerprint(self.type, self.message, self.stack)


def clean_text(text: str, bytes_max: int = limits.ERROR_BYTES_MAX) -> str:
    """``text`` without NUL and lone surrogates, at most ``bytes_max`` bytes of UTF-8, a marker where cut."""
    if len(text) <= bytes_max and text.isascii() and "\x00" not in text:
        return text
    raw = text[: bytes_max + 1].replace("\x00", "\N{SYMBOL FOR NULL}").encode("utf-8", "replace")
    if len(raw) <= bytes_max and len(text) <= bytes_max:
        return raw.decode("utf-8")
    room = max(0, bytes_max - len(CUT_MARKER.encode()))
    return raw[:room].decode("utf-8", "ignore") + CUT_MARKER


def error_info(error: Any) -> ErrorInfo | None:
    """The contract's ``error`` (a string, ``{type, message, stack}`` or null) as clean, bounded text."""
    if error is None:
        return None
    if isinstance(error, dict):
        kind, message, stack = (str(error.get(part) or "") for part in ("type", "message", "stack"))
    else:
        kind, message, stack = "", str(error), ""
    third = limits.ERROR_BYTES_MAX // 4
    return ErrorInfo(
        clean_text(kind, 200) or "Error", clean_text(message, third), clean_text(stack, 2 * third)
    )


def fingerprint(error_type: str, message: str, stack: str = "") -> str:
    """16 hexadecimal characters that are equal for failures of one cause, across workers and releases."""
    place = ""
    frames = _PLACE.findall(stack)
    if frames:  # the innermost frame: file name without its folder, and function; never the line number
        path, function = frames[-1]
        place = f"{path.replace(chr(92), '/').rsplit('/', 1)[-1]}:{function.strip()}"
    text = message[:2000].split("\n", 1)[0]
    for pattern, token in _NOISE:
        text = pattern.sub(token, text)
    subject = f"{error_type}\n{place}\n{text.strip().lower()}"
    return hashlib.sha256(subject.encode("utf-8", "replace")).hexdigest()[:16]
