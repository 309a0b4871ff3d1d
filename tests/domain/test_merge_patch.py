"""JSON merge patches: RFC 7386's own examples, exact numbers, and the patch that takes one back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.domain.merge_patch import merged, undoing

EXAMPLES = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]
VALUES = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)
PATCHES = st.dictionaries(st.text(max_size=3), st.none() | VALUES, max_size=4)


def raw(value: Any) -> bytes:
    """As JSON."""
    return json.dumps(value).encode()


@pytest.mark.parametrize(("target", "patch", "result"), EXAMPLES)
def test_the_examples_of_the_rfc(target: Any, patch: Any, result: Any) -> None:
    """Section 3 and appendix A."""
    assert json.loads(merged(raw(target), raw(patch))) == result


def test_numbers_keep_their_text() -> None:
    """What the patch does not name, and what it brings."""
    target = b'{"a":12345678901234567890123,"b":1.10,"c":1e400}'
    assert merged(target, b'{"b":2.50}') == b'{"a":12345678901234567890123,"b":2.50,"c":1e400}'


@given(target=st.dictionaries(st.text(max_size=3), VALUES, max_size=4), patch=PATCHES)
def test_what_was_changed_can_be_taken_back(target: dict[str, Any], patch: dict[str, Any]) -> None:
    """Of an object without nulls, which no merge patch can write."""
    changed = merged(raw(target), raw(patch))
    assert json.loads(merged(changed, undoing(raw(target), raw(patch)))) == target


def test_a_number_is_not_its_text() -> None:
    """5 and "5" differ, and so does what takes the one back."""
    assert undoing(b'{"a":"5"}', b'{"a":5}') == b'{"a":"5"}'
    assert undoing(b'{"a":5}', b'{"a":5}') == b"{}"
