"""The nightly job of one shard: read, compare, correct, report, write the audit line, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from redrive import seams
from redrive.arena.calendar import day_bounds
from redrive.arena.game.database import Game
from redrive.arena.money import AMOUNT_MAX, is_currency
from redrive.arena.outcomes import Reject, RetryLater
from redrive.arena.reconcile.compare import Comparison, Correction, compare
from redrive.arena.reconcile.provider import Provider, ProviderRefused
from redrive.arena.records import PAYMENT_STATES, Entry, Payment, Shard, settlement_key, totals


class SettlementJob(Protocol):
    """What the handler needs of a delivered job."""

    @property
    def key(self) -> str:
        """The job key, ``settlement:<date>:<shard>``."""
        ...

    @property
    def payload(self) -> Any:
        """``{"date", "shard", "game_id"}``."""
        ...

    @property
    def delivery(self) -> int:
        """The delivery's number, for outside systems."""
        ...


@dataclass(frozen=True, slots=True)
class _Order:
    date: str
    since_s: int
    until_s: int
    shard: Shard


def reconcile_shard(job: SettlementJob, db: Any, provider: Provider, dry_run: bool = False) -> dict[str, Any]:
    """Settle one shard and UTC day on ``db``, a connection whose transaction the caller owns.

    The answer is ``{"shard", "date", "compared", "matched", "corrected", "exceptions", "provider_calls",
    "dry_run"}`` (counts). Raises ``Reject`` when the job or its source records can never be valid,
    ``RetryLater`` when the provider names a time or a payment changed meanwhile, ``ConnectionError`` or
    ``TimeoutError`` when the provider gives no usable answer. A dry run writes nothing and sends no payout.
    """
    game = Game(db)
    order = _order(job, game)
    calls_before = provider.calls
    try:
        ours, theirs = _both_sides(order, game, provider)
        found = compare(ours.values(), theirs)
        if not dry_run:
            _apply(job, order, game, provider, found, ours, theirs)
    except ProviderRefused as refusal:
        raise Reject(str(refusal)) from None
    calls = provider.calls - calls_before
    if not dry_run:
        game.write(
            "audit_add", job_key=job.key, shard=order.shard.shard, day=order.date, compared=found.compared,
            corrected=len(found.corrections), exceptions=len(found.findings), provider_calls=calls,
            delivery=job.delivery, written_at_ms=seams.wall_ms(),
        )  # fmt: skip
    return {
        "shard": order.shard.shard,
        "date": order.date,
        "compared": found.compared,
        "matched": found.matched,
        "corrected": len(found.corrections),
        "exceptions": len(found.findings),
        "provider_calls": calls,
        "dry_run": dry_run,
    }


def _order(job: SettlementJob, game: Game) -> _Order:
    """The job's payload, checked against its key and against the game's own records."""
    payload = job.payload
    if not isinstance(payload, Mapping):
        raise Reject(f"a settlement's payload is an object, got {type(payload).__name__}")
    names = ("date", "shard", "game_id")
    lacking = [name for name in names if not isinstance(payload.get(name), str) or not payload[name]]
    if lacking:
        raise Reject(f"the payload lacks {', '.join(lacking)} (non-empty text)")
    date, name, game_id = (str(payload[field]) for field in names)
    try:
        since_s, until_s = day_bounds(date)
    except ValueError as problem:
        raise Reject(f"date: {problem}") from None
    if job.key != settlement_key(date, name):
        raise Reject(f"the job key {job.key[:80]!r} is not that of {date} and {name[:40]!r}")
    shard = game.shard(name)
    if shard is None:
        raise Reject(f"no shard named {name[:40]!r}")
    if shard.game_id != game_id:
        raise Reject(f"shard {name} belongs to game {shard.game_id!r}, the job says {game_id[:40]!r}")
    if not shard.provider_account.startswith("acct_"):
        raise Reject(f"source record invalid: shard {name} has no account at the provider")
    return _Order(date, since_s, until_s, shard)


def _both_sides(order: _Order, game: Game, provider: Provider) -> tuple[dict[str, Payment], list[Entry]]:
    """Our payments by id, and every entry of the provider that says something about one of them.

    An entry of this day may belong to a charge of an earlier one (a late refund): then that payment and the
    charge's whole history are read too, because the comparison is about states.
    """
    shard, account = order.shard.shard, order.shard.provider_account
    ours = {payment.payment_id: payment for payment in game.payments_of_day(shard, order.date)}
    for payment in game.payments_sharing_refs(shard, order.date):
        ours.setdefault(payment.payment_id, payment)
    for payment in ours.values():
        _check(payment)
    theirs = list(provider.transactions(account, order.since_s, order.until_s))
    known = {payment.provider_ref for payment in ours.values()}
    late = sorted({entry.ref for entry in theirs} - known)
    for ref in late:
        holders = [payment for payment in game.payments_by_ref(ref) if payment.shard == shard]
        if holders:
            ours.update((payment.payment_id, payment) for payment in holders)
            theirs.extend(provider.transactions_of(account, ref))
    return ours, theirs


def _check(payment: Payment) -> None:
    """A record of ours that cannot be true is for a person to correct at its source."""
    problem = ""
    if not is_currency(payment.currency):
        problem = f"currency {payment.currency[:8]!r} is not a three-letter code"
    elif not 0 <= payment.amount <= AMOUNT_MAX:
        problem = f"amount {payment.amount} is outside 0 … {AMOUNT_MAX}"
    elif payment.state not in PAYMENT_STATES:
        problem = f"state {payment.state[:30]!r} is unknown"
    if problem:
        raise Reject(f"source record invalid: payment {payment.payment_id}: {problem}")


def _apply(
    job: SettlementJob, order: _Order, game: Game, provider: Provider, found: Comparison,
    ours: dict[str, Payment],
    theirs: list[Entry],
) -> None:  # fmt: skip
    now_ms = seams.wall_ms()
    for correction in found.corrections:
        _correct(job, order, game, provider, correction, ours[correction.payment_id], now_ms)
    game.write_many(
        "exception_add",
        [
            {"job_key": job.key, "kind": finding.kind, "payment_id": finding.payment_id,
             "provider_ref": finding.provider_ref, "detail": finding.detail[:500]}
            for finding in found.findings
        ],
    )  # fmt: skip
    game.write_many(
        "posting_add",
        [
            {"job_key": job.key, "currency": currency, "gross": gross, "fee": fee, "net": net}
            for currency, (gross, fee, net) in sorted(totals(_of_the_day(order, theirs)).items())
        ],
    )


def _of_the_day(order: _Order, theirs: list[Entry]) -> list[Entry]:
    """Without the history that was read for late refunds: that money was posted on its own day."""
    return [entry for entry in theirs if order.since_s <= entry.created_s < order.until_s]


def _correct(
    job: SettlementJob, order: _Order, game: Game, provider: Provider, correction: Correction,
    payment: Payment, now_ms: int,
) -> None:  # fmt: skip
    moved = game.write(
        "payment_correct", payment_id=correction.payment_id, from_state=correction.from_state,
        to_state=correction.to_state, refunded=correction.refunded, now_ms=now_ms,
        expected_version=correction.expected_version,
    )  # fmt: skip
    if moved != 1:  # someone else wrote it since we read it: compare anew rather than guess
        words = f"payment {correction.payment_id} changed while it was being compared"
        raise RetryLater(words, after=1.0)
    resubmitted = ""
    if correction.to_state == "payout_failed":
        # No transaction covers this call. The key makes the provider answer a repeat with the same payout.
        key = f"{job.key}/payout/{correction.payment_id}"
        resubmitted = provider.resubmit_payout(order.shard.provider_account, payment, key)
    game.write(
        "correction_add", job_key=job.key, payment_id=correction.payment_id, from_state=correction.from_state,
        to_state=correction.to_state, from_version=correction.expected_version, refunded=correction.refunded,
        resubmitted=resubmitted,
    )  # fmt: skip
