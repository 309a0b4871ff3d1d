"""Instants on the wire."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.contract.instants import instant_ms, rfc3339, rfc3339_or_none
from redrive.domain.errors import InvalidRequest


@given(st.integers(0, 253_402_300_799_999))
def test_there_and_back(at_ms: int) -> None:
    """Every millisecond up to the year 9999 survives."""
    assert instant_ms(rfc3339(at_ms)) == at_ms


@pytest.mark.parametrize(
    ("text", "at_ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01t00:00:00.1z", 100),
        ("1970-01-01 00:00:00.123999Z", 123),
        ("1970-01-01T02:00:00.000+02:00", 0),
        ("1970-01-01T02:00:00.000 02:00", 0),
        ("1969-12-31T23:00:00-01:00", 0),
    ],
)
def test_forms_that_are_read(text: str, at_ms: int) -> None:
    """Zones, fractions, lower case, and a plus sign that a query turned into a space."""
    assert instant_ms(text) == at_ms


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-10-23", "2026-13-01T00:00:00Z", "2026-10-23T02:00:00"]
)
def test_forms_that_are_refused(text: str) -> None:
    """A time without a zone is no instant."""
    with pytest.raises(InvalidRequest, match="since must be an RFC 3339 time"):
        instant_ms(text, "since")


def test_none_stays_none() -> None:
    """An absent instant is null on the wire."""
    assert rfc3339_or_none(None) is None
    assert rfc3339_or_none(0) == "1970-01-01T00:00:00.000Z"


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_what_has_no_year_of_four_digits_in_utc_is_refused(text: str) -> None:
    """It could be stored and never be written back: a list that holds it would fail for ever."""
    with pytest.raises(InvalidRequest, match="RFC 3339"):
        instant_ms(text)


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"])
def test_the_first_and_the_last_instant_are_written_back(text: str) -> None:
    """The control: what is in UTC's years survives."""
    assert rfc3339(instant_ms(text))[-20:] == text[-20:]


@pytest.mark.parametrize(
    ("at_ms", "text"),
    [
        (2**62, "9999-12-31T23:59:59.904Z"),
        (-(2**62), "0001-01-01T00:00:00.096Z"),
        (0, "1970-01-01T00:00:00.000Z"),
    ],
)
def test_a_damaged_time_is_shown_as_the_nearest_there_is(at_ms: int, text: str) -> None:
    """A flipped bit in a time must neither hide its message from a list nor keep it from its consumer."""
    assert rfc3339(at_ms) == text
