"""Amounts: integers in a currency's smallest unit, and the decimals of major units that reports print."""

from __future__ import annotations

import re
from typing import Final

# UGX and ISK are left at two on purpose: the provider's API and reports keep two decimals for both.
ZERO_DECIMAL: Final = frozenset(
    ["bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga", "pyg", "rwf", "vnd", "vuv", "xaf", "xof", "xpf"]
)
THREE_DECIMAL: Final = frozenset(["bhd", "jod", "kwd", "omr", "tnd"])
AMOUNT_MAX: Final = 10**15  # fits 64 bits with room for sums of a whole night

_CURRENCY = re.compile(r"[A-Za-z]{3}")
_DECIMAL = re.compile(r"(-?)([0-9]{1,15})(?:\.([0-9]{1,6}))?")


def is_currency(code: str) -> bool:
    """Whether ``code`` has the form of an ISO 4217 code: three letters, any case."""
    return _CURRENCY.fullmatch(code) is not None


def exponent(currency: str) -> int:
    """How many decimals the major unit of ``currency`` has: 0 for JPY, 3 for KWD, 2 for most."""
    code = currency.lower()
    if code in ZERO_DECIMAL:
        return 0
    return 3 if code in THREE_DECIMAL else 2


def to_minor(text: str, currency: str) -> int:
    """A decimal in major units (``"-12.30"``) as an integer in the smallest unit.

    Zeros beyond the currency's decimals are accepted (``"100.00"`` JPY is 100); anything else there is a
    ``ValueError``, because rounding money would hide a difference.
    """
    match = _DECIMAL.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text[:40]!r} is not a decimal amount such as 12.30")
    sign, whole, decimals = match.group(1), match.group(2), match.group(3) or ""
    places = exponent(currency)
    if decimals[places:].strip("0"):
        raise ValueError(f"{text!r} has more decimals than {currency.upper()} allows ({places})")
    amount = int(whole + decimals[:places].ljust(places, "0"))
    return -amount if sign else amount


def to_major(amount: int, currency: str) -> str:
    """An integer in the smallest unit as the decimal of major units that a report prints."""
    places = exponent(currency)
    sign, digits = ("-" if amount < 0 else ""), str(abs(amount))
    if not places:
        return sign + digits
    digits = digits.rjust(places + 1, "0")
    return f"{sign}{digits[:-places]}.{digits[-places:]}"
