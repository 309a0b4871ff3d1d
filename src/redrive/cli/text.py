"""Text from elsewhere, made safe for a terminal, and values in the form that people read."""

from __future__ import annotations

import json
from typing import Any, Final

PREVIEW_CHARS: Final = 60


def plain(text: str) -> str:
    """``text`` with what could move the cursor, colour or reorder it written as escapes; newlines stay."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\n" else _escaped(char) for char in text)


def one_line(text: str, chars: int = PREVIEW_CHARS) -> str:
    """As :func:`plain`, on one line of at most ``chars`` characters."""
    line = plain(text[: chars * 2].replace("\n", " "))
    return line if len(line) <= chars and len(text) <= chars * 2 else line[: chars - 1] + "…"


def shown(value: Any) -> str:
    """A value of an answer for a table's cell."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return plain(", ".join(value)) or "–"
    if isinstance(value, list | dict):
        return plain(json.dumps(value, ensure_ascii=False, default=str)) if value else "–"
    return str(value)


def counted(number: int, what: str) -> str:
    """``1 message``, ``2 messages``."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _escaped(char: str) -> str:
    number = ord(char)
    return f"\\x{number:02x}" if number < 256 else f"\\u{{{number:x}}}"
