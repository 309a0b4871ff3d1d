"""Text that can be given back exactly: depth and surrogates against plain models."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redrive.contract.exact import check_text, is_plain
from redrive.domain import limits
from redrive.domain.errors import InvalidRequest

LEAVES = st.none() | st.integers() | st.text(alphabet='[]{}"\\é\u0000a', max_size=6)


def _nest(depth: int, leaf: object, kinds: list[bool]) -> object:
    value = leaf
    for n in range(depth):
        value = [leaf, value] if kinds[n % len(kinds)] else {"k]": value, "{": leaf}
    return value


@settings(max_examples=150, deadline=None)
@given(st.integers(120, 136), LEAVES, st.lists(st.booleans(), min_size=1, max_size=4), st.booleans())
def test_depth_is_exact_whatever_strings_hold(
    depth: int, leaf: object, kinds: list[bool], ascii_: bool
) -> None:
    """Brackets, quotes and backslashes inside of strings neither hide nor add a level."""
    body = json.dumps(_nest(depth, leaf, kinds), ensure_ascii=ascii_).encode()
    if depth > limits.JSON_DEPTH_MAX:
        with pytest.raises(InvalidRequest, match="deeper than 128"):
            check_text(body)
    else:
        check_text(body)


@pytest.mark.parametrize("depth", [limits.JSON_DEPTH_MAX, limits.JSON_DEPTH_MAX + 1])
def test_depth_of_megabytes_of_brackets(depth: int) -> None:
    """The counting pass for large bodies has the same border."""
    body = b"[" + (b"[" * (depth - 1) + b"]" * (depth - 1) + b",") * 3_000 + b"0]"
    if depth > limits.JSON_DEPTH_MAX:
        with pytest.raises(InvalidRequest):
            check_text(body)
    else:
        check_text(body)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["\\ud83d", "\\uDE00", "\\\\", "\\n", "x", "\\u0041", '\\"', "\\uD83D\\ude00", "ud800"]
        ),
        max_size=8,
    )
)
def test_surrogates_pair_or_are_refused(parts: list[str]) -> None:
    """As Python's own reader sees them."""
    text = '"' + "".join(parts) + '"'
    lone = any("\ud800" <= character <= "\udfff" for character in json.loads(text))
    if lone:
        with pytest.raises(InvalidRequest, match="lone surrogate"):
            check_text(text.encode())
    else:
        check_text(text.encode())


def test_plain_is_ascii_without_unicode_escapes() -> None:
    """Only then do characters equal bytes."""
    assert is_plain(b'{"a":"\\n"}')
    assert not is_plain('{"a":"é"}'.encode())
    assert not is_plain(b'{"a":"\\u00e9"}')
