"""Is a body text that every store and every reader can take back exactly?

msgspec checks JSON syntax, also inside a payload that it does not parse. What it leaves open is checked here
before it decodes: UTF-8, lone surrogates (also escaped ones), and the depth of nesting.
"""

from __future__ import annotations

import re
from itertools import accumulate

from redrive.domain import limits
from redrive.domain.errors import InvalidRequest

_ESCAPE = re.compile(rb"\\(?:u([dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL)
_BRACKETS_AS_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_NEITHER_BRACKET_NOR_QUOTE = bytes(set(range(256)) - set(b'[]{}"'))
_STEP = {ord("["): 1, ord("]"): -1}
_SLICE_BYTES = 65_536


def is_plain(body: bytes) -> bool:
    """Whether ``body`` is ASCII without Unicode escapes: then characters are bytes and nothing is hidden."""
    return body.isascii() and b"\\u" not in body


def check_text(body: bytes) -> None:
    """Raise InvalidRequest for invalid UTF-8, a lone surrogate, or nesting above the limit."""
    if not body.isascii():
        try:
            body.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidRequest(
                f"the body is not valid UTF-8: byte {error.start} is 0x{body[error.start]:02x}",
                details={"field": "body", "byte": error.start},
            ) from None
    if b"\\ud" in body or b"\\uD" in body:
        _check_surrogates(body)
    if body.count(b"{") + body.count(b"[") > limits.JSON_DEPTH_MAX and _too_deep(body):
        raise InvalidRequest(
            f"the body must not nest deeper than {limits.JSON_DEPTH_MAX} levels, counted from its own braces",
            details={"field": "body", "limit": limits.JSON_DEPTH_MAX},
        )


def _check_surrogates(body: bytes) -> None:
    high_ends = -1  # where a high surrogate that waits for its low one ended
    for match in _ESCAPE.finditer(body):
        if high_ends >= 0 and match.start() != high_ends:
            break
        digits = match[1]
        low = digits is not None and digits[1:2] in b"cdefCDEF"
        if (high_ends >= 0) != low:
            high_ends = match.start()
            break
        high_ends = match.end() if digits is not None and not low else -1
    if high_ends >= 0:
        raise InvalidRequest(
            "the body has a lone surrogate, which is no character of Unicode", details={"field": "body"}
        )


def _too_deep(body: bytes) -> bool:
    outside = body
    if b"\\" in outside:  # escapes are legal in strings only; without them a quote is a border
        outside = outside.replace(b"\\\\", b"").replace(b'\\"', b"")
    left = outside.translate(_BRACKETS_AS_ONE_KIND, _NEITHER_BRACKET_NOR_QUOTE)
    left = left.replace(b'""', b"")
    if b'"' in left:  # brackets in a string: cut the strings out properly
        outside = b"".join(outside.split(b'"')[::2])
        left = outside.translate(_BRACKETS_AS_ONE_KIND, _NEITHER_BRACKET_NOR_QUOTE)
    brackets = left
    for _ in range(limits.JSON_DEPTH_MAX):  # each round takes one innermost level away
        if not left:
            return False
        outer = left.replace(b"[]", b"")
        if len(outer) == len(left):
            return False  # unbalanced: the decoder says where
        if len(left) > _SLICE_BYTES and len(outer) > len(left) * 0.9:
            return _counted_too_deep(brackets)
        left = outer
    return bool(left)


def _counted_too_deep(brackets: bytes) -> bool:
    # many rounds over megabytes would hold up the loop: one counting pass that stops at the limit
    depth = 0
    for start in range(0, len(brackets), _SLICE_BYTES):
        steps = map(_STEP.__getitem__, brackets[start : start + _SLICE_BYTES])
        reached = list(accumulate(steps, initial=depth))
        if max(reached) > limits.JSON_DEPTH_MAX:
            return True
        depth = reached[-1]
    return False
