"""What a redacted message shows: neither its fields nor their values in an error's text, in whatever form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.domain.fingerprint import CUT_MARKER, clean_text
from redrive.domain.redaction import MASK, VALUES_MAX, exactly, redact

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
)


@pytest.mark.parametrize(
    ("paths", "payload", "shown"),
    [
        (["card"], {"card": "4111", "id": 1}, {"card": MASK, "id": 1}),
        (["a.b"], {"a": {"b": 1, "c": 2}, "b": 3}, {"a": {"b": MASK, "c": 2}, "b": 3}),
        (["a.*.b"], {"a": {"x": {"b": 1}, "y": {"c": 2}}}, {"a": {"x": {"b": MASK}, "y": {"c": 2}}}),
        (["people.name"], {"people": [{"name": "A"}, {"age": 2}]}, {"people": [{"name": MASK}, {"age": 2}]}),
        (["*"], ["a", {"b": 1}], [MASK, MASK]),
        (["a", "b"], {"a": {"b": 1}, "b": [1]}, {"a": MASK, "b": MASK}),
        (["card"], "no object", "no object"),
        ([], {"card": 1}, {"card": 1}),
    ],
)
def test_the_fields_at_a_path_are_masked(paths: list[str], payload: Any, shown: Any) -> None:
    """Through objects, lists and ``*``; everything else stays, and the payload given is not changed."""
    before = json.dumps(payload)
    assert redact(paths, payload).payload == shown
    assert json.dumps(payload) == before


def test_headers_are_named_by_their_own_word() -> None:
    """In any case, all of them at once, and also the payload's field of that name."""
    headers = {"Authorization": "Bearer abc", "trace": "t"}
    assert redact(["headers.authorization"], 1, headers).headers == {"Authorization": MASK, "trace": "t"}
    for everything in ("headers", "headers.*"):
        assert redact([everything], 1, headers).headers == {"Authorization": MASK, "trace": MASK}
    both = redact(["headers.trace"], {"headers": {"trace": "inner"}}, headers)
    assert (both.payload, both.headers["trace"]) == ({"headers": {"trace": MASK}}, MASK)
    assert "abc" not in redact(["headers.authorization"], 1, headers).text("got Bearer abc")
    assert headers["Authorization"] == "Bearer abc"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("4111111111111111", "card 4111111111111111 is refused"),
        (4111111111111111, "card 4111111111111111 is refused"),
        ("Müller", 'json: "M\\u00fcller"'),
        ("Müller", "GET /people?name=M%C3%BCller"),
        ('O\'Neil "Al"', 'json: O\'Neil \\"Al\\"'),
        ("two\nlines", "repr: 'two\\nlines'"),
        (" padded ", "name 'padded' is unknown"),
        ("Secret Name", "no such user: SECRET NAME"),
        ({"street": "Elm 5", "more": ["Springfield"]}, "at Elm 5, Springfield"),
        ("nul\x00led", "text nul\N{SYMBOL FOR NULL}led"),
        ("a.b*c\\1", "what a.b*c\\1 is"),
        ("12", "cvv 12, not 3123"),
    ],
)
def test_a_value_quoted_by_an_error_is_masked(value: Any, text: str) -> None:
    """As a handler, JSON, Python or a URL writes it."""
    shown = redact(["private"], {"private": value}).text(text)
    assert MASK in shown
    for leaf in (
        "4111",
        "ller",
        "Neil",
        "lines",
        "padded",
        "secret",
        "elm",
        "spring",
        "nul",
        "a.b",
        "cvv 12",
    ):
        assert leaf not in shown.lower()


def test_short_values_leave_the_rest_of_the_text() -> None:
    """A value of a few characters is masked as a word of its own; true and null are not looked for."""
    masked = redact(["a"], {"a": [1, True, None, ""]})
    assert masked.text('line 12, column 1: "true" or null') == 'line 12, column ***: "true" or null'


def test_numbers_keep_their_text() -> None:
    """One beyond a double can be shown and looked for; 12.50 is found as 12.5 too."""
    payload = exactly(b'{"a":1e999,"b":12345678901234567890123.50,"c":12.50}')
    masked = redact(["b", "c"], payload)
    assert bytes(masked.payload["a"]) == b"1e999"
    assert masked.text("got 12345678901234567890123.50, 12.50 and 12.5") == f"got {MASK}, {MASK} and {MASK}"


def test_the_beginning_of_a_value_at_the_cut_is_masked() -> None:
    """An error's text is cut at its limit, in the middle of whatever is there."""
    card = "4111-2222-3333-4444"
    whole = f"{'x' * 40} card {card}"
    masked = redact(["card"], {"card": card})
    for room in range(len(whole) - len(card) + len(CUT_MARKER.encode()), len(whole)):
        cut = clean_text(whole, room)
        assert cut.endswith(CUT_MARKER)
        assert "411" not in masked.text(cut)
        assert masked.text(cut).startswith("x" * 40)


@pytest.mark.timeout(20)
def test_many_values_take_no_time() -> None:
    """A list of a quarter of a megabyte masks the whole text; the most that is looked for is quick."""
    many = redact(["a"], {"a": [f"value-{n}" for n in range(25_000)]})
    assert many.text("value-1 and another") == MASK
    most = redact(["a"], {"a": [f"value-{n}" for n in range(VALUES_MAX)]})
    text = "value-7 and value-999 and nothing " * 400
    for _ in range(100):
        assert "value" not in most.text(text)


@given(JSON, st.lists(st.sampled_from(["a", "b.c", "*", "a.*.b", "headers.x"]), max_size=4))
def test_nothing_else_changes(payload: Any, paths: list[str]) -> None:
    """Any payload has a redacted form of the same shape, and redacting that changes nothing more."""
    once = redact(paths, payload, {"x": "v", "y": "w"})
    assert once.headers["y"] == "w"
    assert redact(paths, once.payload, once.headers).payload == once.payload
    assert redact([], payload).payload == payload
    for text in once.values:
        if len(text.strip()) >= 4:
            assert text.lower() not in once.text(f"<{text}>").lower()
