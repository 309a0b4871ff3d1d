"""Amounts between the smallest unit and the decimals of reports."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.arena.money import exponent, to_major, to_minor


@pytest.mark.parametrize(
    ("text", "currency", "amount"),
    [
        ("12.30", "usd", 1230), ("-0.05", "EUR", -5), ("7", "usd", 700), ("500", "jpy", 500),
        ("500.00", "JPY", 500), ("1.234", "kwd", 1234), ("1.2340", "kwd", 1234), ("0.00", "usd", 0),
    ],
)  # fmt: skip
def test_decimals_of_major_units_become_the_smallest_unit(text: str, currency: str, amount: int) -> None:
    """Zero-, two- and three-decimal currencies, and harmless trailing zeros."""
    assert to_minor(text, currency) == amount


@pytest.mark.parametrize(
    ("text", "currency"),
    [("1.234", "usd"), ("0.5", "jpy"), ("1.2345", "kwd"), ("1e3", "usd"), ("", "usd"), ("1,20", "usd"),
     ("NaN", "usd"), ("\u0661", "usd"), (".5", "usd"), ("+1", "usd")],
)  # fmt: skip
def test_what_would_need_rounding_or_guessing_is_refused(text: str, currency: str) -> None:
    """Money is never rounded and never read in another notation."""
    with pytest.raises(ValueError, match="decimal"):
        to_minor(text, currency)


@given(st.integers(-(10**14), 10**14), st.sampled_from(["usd", "jpy", "kwd", "brl"]))
def test_both_forms_name_the_same_amount(amount: int, currency: str) -> None:
    """Writing and reading back loses nothing, in any currency."""
    text = to_major(amount, currency)
    assert to_minor(text, currency) == amount
    assert len(text.partition(".")[2]) == exponent(currency)
