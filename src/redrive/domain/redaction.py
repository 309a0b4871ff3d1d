"""Keeping named fields of a payload out of pages, logs and archives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

MASK = "***"


def redacted(value: Any, paths: Sequence[str]) -> Any:
    """A copy of a JSON value with the fields at ``paths`` masked; ``a.*.b`` goes through any member."""
    for path in paths:
        value = _mask(value, path.split("."))
    return value


def _mask(value: Any, steps: list[str]) -> Any:
    if not steps:
        return MASK
    step, rest = steps[0], steps[1:]
    if isinstance(value, list):
        inner = rest if step == "*" else steps
        return [_mask(item, inner) for item in value]
    if isinstance(value, dict):
        return {key: _mask(item, rest) if step in ("*", key) else item for key, item in value.items()}
    return value
