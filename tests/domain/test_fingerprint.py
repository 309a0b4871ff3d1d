"""Errors made comparable."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.domain import limits
from redrive.domain.fingerprint import CUT_MARKER, clean_text, error_info, fingerprint

ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=[]), max_size=300)  # lone surrogates and NUL too
TRACE = 'Traceback (most recent call last):\n  File "{}", line {}, in settle\n    raise Boom()\n'


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("payment 7 not found", "payment 123456 not found"),
        ("job 5f0c9f5e-0f1c-7a3b-9c1d-000000000001 lost", "job 01993f5e-aaaa-7bbb-8ccc-00000000ffff lost"),
        ("<Pool object at 0x7f3a5c>", "<Pool object at 0x10ff>"),
        ("connect to 10.0.0.7:5432 failed", "connect to 192.168.1.20:6432 failed"),
        ("no such key 'alpha'", "no such key 'beta'"),
        ("settlement:2026-10-23:eu-west is late", "settlement:2026-10-24:eu-west is late"),
        ("Timed out", "timed  out\nand a second line"),
    ],
)
def test_one_cause_is_one_fingerprint(one: str, other: str) -> None:
    """Ids, numbers, addresses, quoted values, case and further lines make no difference."""
    assert fingerprint("Boom", one) == fingerprint("Boom", other)


def test_other_causes_differ() -> None:
    """Type, words and the innermost place tell failures apart."""
    place = TRACE.format("/srv/app/jobs.py", 7)
    found = {
        fingerprint("Boom", "not found"),
        fingerprint("Bang", "not found"),
        fingerprint("Boom", "not allowed"),
        fingerprint("Boom", "not found", place),
        fingerprint("Boom", "not found", place.replace("settle", "refund")),
        fingerprint("Boom", "not found", place.replace("jobs.py", "refunds.py")),
    }
    assert len(found) == 6


def test_a_release_keeps_the_fingerprint() -> None:
    """Line numbers and the folder of the file are ignored, on Windows too."""
    one, other = TRACE.format("/srv/v1/jobs.py", 7), TRACE.format("/srv/v2/x/jobs.py", 19)
    windows = TRACE.format(r"C:\app\jobs.py", 7)
    assert fingerprint("B", "m", one) == fingerprint("B", "m", other) == fingerprint("B", "m", windows)


@given(ANY_TEXT, ANY_TEXT, ANY_TEXT)
def test_storing_an_error_cannot_fail(kind: str, message: str, stack: str) -> None:
    """Any text becomes clean, bounded text of the same fingerprint shape (M1)."""
    info = error_info({"type": kind, "message": message, "stack": stack})
    assert info is not None
    for text in (info.type, info.message, info.stack):
        assert "\x00" not in text
        assert len(text.encode("utf-8")) <= limits.ERROR_BYTES_MAX
    assert len(info.fingerprint) == 16
    assert int(fingerprint(kind, message, stack), 16) >= 0


@given(ANY_TEXT, st.integers(20, 400))
def test_clean_text_is_bounded(text: str, room: int) -> None:
    """At most so many bytes, with a marker exactly where something was cut."""
    clean = clean_text(text, room)
    size = len(text.replace("\x00", "\N{SYMBOL FOR NULL}").encode("utf-8", "replace"))
    assert len(clean.encode()) <= room
    assert clean.endswith(CUT_MARKER) == (size > room) or CUT_MARKER in text
    assert clean_text(clean, room) == clean


@pytest.mark.timeout(5)
@pytest.mark.parametrize(
    "text", ["x" * 2**20, "1a" * 2**19, "'" * 2**20, 'File "' * 2**17, "a-" * 2**19, "\x00\ud800" * 2**19]
)
def test_a_megabyte_is_no_trouble(text: str) -> None:
    """A megabyte of anything is cleaned, cut and fingerprinted at once (M1)."""
    info = error_info({"type": text, "message": text, "stack": text})
    assert info is not None
    assert info.message.endswith(CUT_MARKER)
    assert len(fingerprint(text, text, text)) == 16


def test_the_shapes_of_an_error() -> None:
    """A string, an object with parts missing, and nothing."""
    assert error_info(None) is None
    plain = error_info("boom")
    assert plain is not None
    assert (plain.type, plain.message, plain.stack) == ("Error", "boom", "")
    empty = error_info({})
    assert empty is not None
    assert (empty.type, empty.message) == ("Error", "")
