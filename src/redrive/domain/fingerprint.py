"""Errors made comparable: clean text that every store accepts, and a stable fingerprint.

A fingerprint is the normalised error type, code and place, with ids, numbers and addresses removed, so that
12,000 failures of one cause are one group (:mod:`redrive.domain.causes` says what is left). Storing an error
can never fail: NUL, lone surrogates and megabyte traces are cleaned and cut here, before any store sees them.
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from typing import Any

from redrive.domain import limits
from redrive.domain.causes import codes, place, stable_type, words

CUT_MARKER = "\n… [cut]"
_REMEMBERED = 256  # errors of at most ERROR_BYTES_MAX each

_HEAD_SHARE = 4  # of a stack that is too long, the part that its beginning gets


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


def clean_stack(text: str, bytes_max: int) -> str:
    """As :func:`clean_text`, but a stack that is too long keeps its end, or its last Python frame: the place
    where it broke is there. The marker stands where something was cut."""
    raw = text.replace("\x00", "\N{SYMBOL FOR NULL}").encode("utf-8", "replace")
    if len(raw) <= bytes_max:
        return raw.decode("utf-8")
    head = bytes_max // _HEAD_SHARE
    tail = bytes_max - head - len(CUT_MARKER.encode()) - 1
    start = len(raw) - tail
    frame = raw.rfind(b'File "', head, start + tail)  # behind it may stand a message of a megabyte
    if head <= frame < start:
        start = frame
    kept = (raw[:head], raw[start : start + tail])
    return f"{CUT_MARKER}\n".join(part.decode("utf-8", "ignore") for part in kept)


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
        clean_text(kind, 200) or "Error", clean_text(message, third), clean_stack(stack, 2 * third)
    )


@functools.lru_cache(_REMEMBERED)
def fingerprint(error_type: str, message: str, stack: str = "") -> str:
    """16 hexadecimal characters that are equal for failures of one cause, across workers and releases.

    Made of the type, the codes that the message names, the innermost place, and the message's words. Stored
    records and policies carry these values: a test pins some of them. A failure is asked for its own several
    times, and failures of one cause often have one text: the last texts are remembered.
    """
    subject = f"{stable_type(error_type)}\n{place(stack)}\n{codes(message)}\n{words(message)}"
    return hashlib.sha256(subject.encode("utf-8", "replace")).hexdigest()[:16]
