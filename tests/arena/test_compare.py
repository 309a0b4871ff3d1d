"""The comparison: states from entries, corrections only forward, everything doubtful a finding."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace

from redrive.arena.game import cases
from redrive.arena.reconcile import compare
from redrive.arena.reconcile.states import FORWARD, may_follow
from redrive.arena.records import PAYMENT_STATES, Entry, Payment, totals
from tests.arena.conftest import DAY, NOW_MS, expected, found

PAYMENT = Payment("p1", "eu-west", "g", "ch_1", 1000, "usd", "charged", 3, 0, None, DAY)
_IDS = iter(range(10_000))


def entry(category: str, amount: int, *, ref: str = "ch_1", currency: str = "usd") -> Entry:
    """One entry of the charge ``ref``."""
    number = next(_IDS)
    return Entry(f"txn_{number}", 1_000 + number, amount, 0, currency, category, f"x_{number}", ref)


CHARGE = entry("charge", 1000)


def _one(payment: Payment, *entries: Entry) -> tuple[str, str]:
    answer = compare([payment], entries)
    assert len(answer.corrections) + len(answer.findings) + answer.matched == 1
    if answer.corrections:
        return "correction", answer.corrections[0].to_state
    return ("finding", answer.findings[0].kind) if answer.findings else ("match", "")


@pytest.mark.parametrize(
    ("moves", "state"),
    [
        ([("refund", -400)], "partially_refunded"),
        ([("refund", -400), ("refund", -100), ("refund", -100)], "partially_refunded"),
        ([("refund", -400), ("refund", -600)], "refunded"),
        ([("dispute", -1000)], "disputed"),
        ([("dispute", -1000), ("dispute_reversal", 1000)], "dispute_won"),
        ([("dispute", -1000), ("dispute", 0)], "dispute_lost"),
        ([("refund", -400), ("dispute", -600)], "disputed"),
    ],
)
def test_what_the_provider_did_is_what_ours_becomes(moves: list[tuple[str, int]], state: str) -> None:
    """Partial refunds add up; a dispute's last word counts, in whatever order the entries are listed."""
    entries = [CHARGE, *(entry(*move) for move in moves)]
    assert _one(PAYMENT, *entries) == ("correction", state)
    assert _one(PAYMENT, *reversed(entries)) == ("correction", state)
    assert _one(replace(PAYMENT, state=state), *entries) == ("match", "")


def test_a_failed_refund_is_no_refund() -> None:
    """A refund that came back leaves the charge as it was."""
    assert _one(PAYMENT, CHARGE, entry("refund", -400), entry("refund_failure", 400)) == ("match", "")


def test_another_refund_on_a_partly_refunded_charge_is_corrected_by_amount() -> None:
    """Where our side knows the refunded amount, the state alone is not enough."""
    known = replace(PAYMENT, state="partially_refunded", refunded=100)
    answer = compare([known], [CHARGE, entry("refund", -100), entry("refund", -50)])
    (correction,) = answer.corrections
    assert (correction.to_state, correction.refunded, correction.expected_version) == (
        "partially_refunded",
        150,
        3,
    )


@pytest.mark.parametrize(
    ("payment", "entries", "kind"),
    [
        (replace(PAYMENT, amount=999), [CHARGE], "amount_difference"),
        (replace(PAYMENT, currency="eur"), [CHARGE], "currency_difference"),
        (PAYMENT, [], "missing_at_provider"),
        (replace(PAYMENT, provider_ref=""), [], "missing_at_provider"),
        (PAYMENT, [entry("refund", -5)], "missing_at_provider"),
        (replace(PAYMENT, state="refunded"), [CHARGE], "ahead_of_provider"),
        (replace(PAYMENT, state="dispute_won"), [CHARGE, entry("dispute", -1000)], "ahead_of_provider"),
        (replace(PAYMENT, refunded=7), [CHARGE], "ahead_of_provider"),
        (PAYMENT, [CHARGE, entry("refund", -1001)], "over_refunded"),
        (PAYMENT, [CHARGE, entry("charge", 1000)], "double_booked_reference"),
    ],
)
def test_what_needs_a_person_is_reported_and_not_corrected(
    payment: Payment, entries: list[Entry], kind: str
) -> None:
    """Each doubtful case has its own kind."""
    assert _one(payment, *entries) == ("finding", kind)


def test_a_reference_held_twice_is_reported_once_and_neither_is_corrected() -> None:
    """Two payments on one reference, also over shards: a person decides whose it is."""
    other = replace(PAYMENT, payment_id="p2", shard="us-east")
    answer = compare([PAYMENT, other], [CHARGE, entry("refund", -400)])
    assert not answer.corrections
    assert [(each.kind, each.provider_ref) for each in answer.findings] == [
        ("double_booked_reference", "ch_1")
    ]
    assert "p1 (eu-west), p2 (us-east)" in answer.findings[0].detail


def test_an_entry_that_is_not_ours_is_reported_once_a_reference() -> None:
    """Charge and refund of a stranger are one finding; entries of other kinds are not judged."""
    answer = compare([], [entry("charge", 5, ref="ch_9"), entry("refund", -5, ref="ch_9"), entry("fee", -3)])
    assert [(each.kind, each.provider_ref) for each in answer.findings] == [("not_ours", "ch_9")]


def test_an_entry_listed_twice_counts_once() -> None:
    """Pages shift while they are read; an id that was seen is not money again."""
    assert _one(PAYMENT, CHARGE, CHARGE) == ("match", "")
    assert totals([CHARGE, CHARGE, entry("fee", -30)]) == {"usd": (970, 0, 970)}


def test_corrections_only_go_forward() -> None:
    """No state leads back to itself or to one that leads to it; every known state is in the table."""
    assert set(FORWARD) == set(PAYMENT_STATES)
    for state, later in FORWARD.items():
        assert not any(may_follow(each, state) for each in later), state
        assert not may_follow(state, state)
    assert not may_follow("of another release", "refunded")


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_corrected_side_compares_clean(seed: int) -> None:
    """After its corrections a night has the same findings and nothing left to correct."""
    told = list(cases(Random(seed), 2_000, day=DAY, now_ms=NOW_MS))
    payments = [payment for case in told for payment in case.payments]
    entries = [entry for case in told for entry in case.entries]
    first = compare(payments, entries)
    assert len(payments) == 2_000
    assert found(first.corrections, first.findings) == expected([a for case in told for a in case.answers])
    moved = {each.payment_id: each for each in first.corrections}
    after = [
        replace(p, state=moved[p.payment_id].to_state, refunded=moved[p.payment_id].refunded)
        if p.payment_id in moved else p
        for p in payments
    ]  # fmt: skip
    second = compare(after, entries)
    assert not second.corrections
    assert found([], second.findings) == found([], first.findings)
