"""The comparison itself: our payments against the provider's entries, a pure function.

It works on states, not on events: the provider's entries for a reference say what the payment is now, so that
running it twice, or over a longer window, finds the same. What is safe becomes a correction; everything
about which a person must decide becomes a finding, and then nothing about that reference is corrected.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from redrive.arena.reconcile.states import may_follow
from redrive.arena.records import Entry, Payment, once

COMPARED: Final = frozenset(
    {"charge", "refund", "refund_failure", "dispute", "dispute_reversal", "payout", "payout_reversal"}
)


@dataclass(frozen=True, slots=True)
class Correction:
    """Move ``payment_id`` from ``from_state`` at ``expected_version`` to ``to_state``."""

    payment_id: str
    provider_ref: str
    from_state: str
    to_state: str
    expected_version: int
    refunded: int
    amount: int
    currency: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What a person must decide: its ``kind``, the payment (or empty), the reference, and the facts in words.

    Kinds: ``double_booked_reference``, ``amount_difference``, ``currency_difference``, ``not_ours``,
    ``missing_at_provider``, ``ahead_of_provider``, ``over_refunded``.
    """

    kind: str
    payment_id: str
    provider_ref: str
    detail: str


@dataclass(slots=True)
class Comparison:
    """The answer of :func:`compare`: ``compared`` payments, of which ``matched`` agree with the provider."""

    corrections: list[Correction] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    compared: int = 0
    matched: int = 0


@dataclass(slots=True)
class _Truth:
    """What the provider's entries for one reference add up to."""

    state: str
    amount: int
    currency: str
    refunded: int
    openings: int  # charges or payouts booked under this reference


def compare(payments: Iterable[Payment], entries: Iterable[Entry]) -> Comparison:
    """Compare both sides; each payment and each entry (by its id) counts once, in any order."""
    answer = Comparison()
    theirs: dict[str, list[Entry]] = defaultdict(list)
    for entry in once(entries):
        if entry.category in COMPARED:
            theirs[entry.ref].append(entry)
    ours: dict[str, list[Payment]] = defaultdict(list)
    for payment in payments:
        answer.compared += 1
        if payment.provider_ref:
            ours[payment.provider_ref].append(payment)
        else:
            _without_ref(payment, answer)
    for ref, holders in ours.items():
        _one(ref, holders, theirs.pop(ref, []), answer)
    for ref, strangers in theirs.items():
        answer.findings.append(_stranger(ref, strangers))
    return answer


def _without_ref(payment: Payment, answer: Comparison) -> None:
    if payment.state in ("pending", "payout_pending"):
        answer.matched += 1
        return
    detail = f"our state is {payment.state}, but we hold no reference of the provider"
    answer.findings.append(Finding("missing_at_provider", payment.payment_id, "", detail))


def _one(ref: str, holders: list[Payment], entries: list[Entry], answer: Comparison) -> None:
    if len(holders) > 1:
        names = ", ".join(sorted(f"{holder.payment_id} ({holder.shard})" for holder in holders)[:10])
        detail = f"{len(holders)} payments hold this reference: {names}"
        answer.findings.append(Finding("double_booked_reference", "", ref, detail))
        return
    verdict = _judge(holders[0], entries)
    if isinstance(verdict, Correction):
        answer.corrections.append(verdict)
    elif isinstance(verdict, Finding):
        answer.findings.append(verdict)
    else:
        answer.matched += 1


def _judge(payment: Payment, entries: list[Entry]) -> Correction | Finding | None:
    truth = _truth(entries)

    def found(kind: str, detail: str) -> Finding:
        subject = "" if kind == "double_booked_reference" else payment.payment_id
        return Finding(kind, subject, payment.provider_ref, detail)

    if truth is None:
        if payment.state in ("pending", "payout_pending"):
            return None
        return found("missing_at_provider", f"our state is {payment.state}, the provider has no entry")
    if truth.openings > 1:
        return found("double_booked_reference", f"the provider booked it {truth.openings} times")
    if truth.currency != payment.currency.lower():
        return found("currency_difference", f"ours {payment.currency.lower()}, theirs {truth.currency}")
    if truth.amount != payment.amount:
        return found("amount_difference", f"ours {payment.amount}, theirs {truth.amount} {truth.currency}")
    if truth.refunded > truth.amount:
        return found("over_refunded", f"refunded {truth.refunded} of {truth.amount} {truth.currency}")
    known = truth.refunded if payment.refunded is None else payment.refunded
    if payment.state == truth.state and known == truth.refunded:
        return None
    forward = payment.state == truth.state or may_follow(payment.state, truth.state)
    if known > truth.refunded or not forward:
        return found("ahead_of_provider", f"ours {payment.state}, the provider shows {truth.state}")
    return Correction(payment.payment_id, payment.provider_ref, payment.state, truth.state, payment.version,
                      truth.refunded, truth.amount, truth.currency)  # fmt: skip


def _truth(entries: list[Entry]) -> _Truth | None:
    """The provider's state of one reference, or None without a charge or payout under it.

    A lost dispute moves no more money; the provider books it as an entry of 0.
    """
    openings = [entry for entry in entries if entry.category in ("charge", "payout")]
    if not openings:
        return None
    first = openings[0]
    truth = _Truth("charged", abs(first.amount), first.currency, 0, len(openings))
    if first.category == "payout":
        failed = any(entry.category == "payout_reversal" for entry in entries)
        truth.state = "payout_failed" if failed else "payout_paid"
        return truth
    truth.refunded = -sum(entry.amount for entry in entries if entry.category in ("refund", "refund_failure"))
    if truth.refunded:
        truth.state = "refunded" if truth.refunded >= truth.amount else "partially_refunded"
    if any(entry.category == "dispute_reversal" for entry in entries):
        truth.state = "dispute_won"
    elif any(entry.category == "dispute" and entry.amount == 0 for entry in entries):
        truth.state = "dispute_lost"
    elif any(entry.category == "dispute" for entry in entries):
        truth.state = "disputed"
    return truth


def _stranger(ref: str, entries: list[Entry]) -> Finding:
    categories = ", ".join(sorted({entry.category for entry in entries}))
    return Finding("not_ours", "", ref, f"{len(entries)} entries ({categories}), no payment of ours holds it")
