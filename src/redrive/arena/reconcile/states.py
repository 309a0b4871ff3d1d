"""Which state of a payment may follow which: a correction only ever goes forward along this table."""

from __future__ import annotations

from typing import Final

_ENDS: Final = frozenset({"dispute_won", "dispute_lost"})
_AFTER_REFUND: Final = frozenset({"disputed"}) | _ENDS
_AFTER_PART: Final = frozenset({"refunded"}) | _AFTER_REFUND
_AFTER_CHARGE: Final = frozenset({"partially_refunded"}) | _AFTER_PART

FORWARD: Final[dict[str, frozenset[str]]] = {
    "pending": frozenset({"charged"}) | _AFTER_CHARGE,
    "charged": _AFTER_CHARGE,
    "partially_refunded": _AFTER_PART,
    "refunded": _AFTER_REFUND,
    "disputed": _ENDS,
    "dispute_won": frozenset(),
    "dispute_lost": frozenset(),
    "payout_pending": frozenset({"payout_paid", "payout_failed"}),
    "payout_paid": frozenset({"payout_failed"}),
    "payout_failed": frozenset(),
}


def may_follow(state: str, to_state: str) -> bool:
    """Whether a payment may go from ``state`` to ``to_state``; an unknown state goes nowhere."""
    return to_state in FORWARD.get(state, frozenset())
