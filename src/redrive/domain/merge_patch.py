"""JSON merge patch (RFC 7386) on a payload's text: what the patch does not name keeps its exact numbers."""

from __future__ import annotations

import json
from typing import Any


class _Number(str):
    """A number's text, written back as it was read."""

    __slots__ = ()


def merged(target: bytes, patch: bytes) -> bytes:
    """The document after the patch, compact. Both must be valid JSON."""
    return _text(_merge(_read(target), _read(patch))).encode()


def undoing(target: bytes, patch: bytes) -> bytes:
    """The patch that takes ``patch`` back from what it makes of ``target``: the values that it replaced."""
    before = _read(target)
    return _text(_difference(_merge(before, _read(patch)), before)).encode()


def _difference(now: Any, before: Any) -> Any:
    if not isinstance(now, dict) or not isinstance(before, dict):
        return before
    found = {name: None for name in now if name not in before}
    for name, value in before.items():
        if name not in now:
            found[name] = value
        elif _text(now[name]) != _text(value):  # as texts: 5 is not "5"
            found[name] = _difference(now[name], value)
    return found


def _read(raw: bytes) -> Any:
    return json.loads(raw, parse_int=_Number, parse_float=_Number)


def _merge(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merge(result.get(name), value)
    return result


def _text(value: Any) -> str:
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{_text(name)}:{_text(member)}" for name, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
