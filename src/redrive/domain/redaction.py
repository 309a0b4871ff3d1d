"""What may be shown of a message: the fields that its queue names in ``redact`` are masked.

The stored body stays whole and consumers get it whole. Whatever else shows a message or an error of it (a
page, a listing, a log, an archive, a ledger) shows what :func:`redact` leaves of it.

A path is a payload's field, ``a.b``; ``*`` is any member, and a list is gone through. ``headers.NAME`` is
also the message's header of that name, in whatever case, and ``headers`` or ``headers.*`` all of them. An
error's text is searched for the values of those fields, since handlers like to quote what they could not use.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final
from urllib.parse import quote

import msgspec

from redrive.domain.fingerprint import CUT_MARKER

MASK: Final = "***"
VALUES_MAX: Final = 1_000
"""With more masked values an error's text is masked as a whole: looking for each would take long."""
_WORD_CHARS: Final = 4  # a shorter value is masked as a word of its own only, or "1" would eat every number
_CUT_CHARS_MIN: Final = 3  # of a value that the end of a cut text has lost


@dataclass(frozen=True)
class Redacted:
    """A message as it may be shown; ``values`` are the masked values' texts, for :meth:`text` alone."""

    payload: Any
    headers: dict[str, str]
    values: frozenset[str]

    def text(self, text: str) -> str:
        """``text`` (of an error) with every masked value in it masked too."""
        if not self.values or not text:
            return text
        if len(self.values) > VALUES_MAX:
            return MASK
        lowered = text.lower()
        found = [form for form in self._forms if form.lower() in lowered]
        for form in found:
            pattern = re.escape(form) if len(form) >= _WORD_CHARS else rf"(?<!\w){re.escape(form)}(?!\w)"
            # a function: a backslash in a replacement would mean something
            text = re.sub(pattern, lambda _: MASK, text, flags=re.IGNORECASE)
        return self._without_cut(text) if text.endswith(CUT_MARKER) else text

    def error(self, error: Mapping[str, str]) -> dict[str, str]:
        """An error's parts (type, message, stack), each as :meth:`text`."""
        return {name: self.text(part) for name, part in error.items()}

    @cached_property
    def _forms(self) -> list[str]:
        """What the values look like in texts, the longest first: the shorter may be a part of it."""
        forms = {form for value in self.values for form in _forms_of(value)}
        return sorted((form for form in forms if form.strip()), key=len, reverse=True)

    def _without_cut(self, text: str) -> str:
        """``text`` without the beginning of a value whose end was cut off."""
        kept = text.removesuffix(CUT_MARKER)
        for form in self._forms:
            start = kept.find(form[:_CUT_CHARS_MIN], max(0, len(kept) - len(form)))
            while start >= 0:
                if form.startswith(kept[start:]):
                    return kept[:start] + MASK + CUT_MARKER
                start = kept.find(form[:_CUT_CHARS_MIN], start + 1)
        return text


def redact(paths: Sequence[str], payload: Any, headers: Mapping[str, str] | None = None) -> Redacted:
    """The one rule: what may be shown of a JSON ``payload`` and its ``headers`` where ``paths`` are redacted.

    Numbers of ``payload`` may be as :func:`exactly` leaves them. Neither argument is changed.
    """
    values: set[str] = set()
    shown = dict(headers or {})
    for path in paths:
        steps = path.split(".")
        payload = _mask(payload, steps, values)
        if steps[0] == "headers":
            _mask_headers(shown, path.partition(".")[2] or "*", values)
    return Redacted(payload, shown, frozenset(values))


def exactly(text: bytes) -> Any:
    """JSON as Python values whose numbers keep their text: one beyond a double must not close a page."""
    return json.loads(text, parse_int=_number, parse_float=_number)


def _number(text: str) -> msgspec.Raw:
    return msgspec.Raw(text.encode())


def _mask(value: Any, steps: list[str], values: set[str]) -> Any:
    if not steps:
        values.update(_leaves(value))
        return MASK
    step, rest = steps[0], steps[1:]
    if isinstance(value, list):
        inner = rest if step == "*" else steps
        return [_mask(item, inner, values) for item in value]
    if isinstance(value, dict):
        return {key: _mask(item, rest, values) if step in ("*", key) else item for key, item in value.items()}
    return value


def _mask_headers(headers: dict[str, str], name: str, values: set[str]) -> None:
    for each, value in headers.items():
        if name in ("*", each) or each.lower() == name.lower():
            values.add(value)
            headers[each] = MASK


def _leaves(value: Any) -> Iterator[str]:
    """The texts of everything in ``value``; true, false and null say too little to be looked for."""
    if isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, msgspec.Raw):
        yield bytes(value).decode()
    elif value is not None and not isinstance(value, bool) and value != MASK:
        yield str(value)


def _forms_of(value: str) -> Iterator[str]:
    """A value itself, and as JSON, Python and a URL write it, and as an error's text is cleaned."""
    yield value
    yield value.strip()
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    yield repr(value)[1:-1]
    yield quote(value.encode("utf-8", "replace"), safe="")
    yield value.replace("\x00", "\N{SYMBOL FOR NULL}")
    try:
        yield repr(float(value))  # 12.50 becomes 12.5 in a program
    except ValueError:
        return
