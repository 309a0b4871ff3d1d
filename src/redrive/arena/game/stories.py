"""The stories that a payment can live through, told to both sides; some are told to one side only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final, Protocol

from redrive.arena.records import Entry, Payment

CURRENCIES: Final = ("usd", "eur", "gbp", "jpy", "kwd", "brl", "pln")


class Page(Protocol):
    """Where a story is written: the lists of a case."""

    payments: list[Payment]
    entries: list[Entry]
    answers: list[dict[str, object]]


@dataclass(slots=True)
class Book:
    """Writes one story: draws amounts and instants, numbers payments, keeps the answer key."""

    rng: Random
    shard: str
    game_id: str
    number: int
    day: str
    day_before: str
    start_s: int
    now_ms: int
    page: Page

    def money(self) -> tuple[int, str]:
        """An amount in the smallest unit and its currency."""
        return self.rng.randrange(300, 25_000), self.rng.choice(CURRENCIES)

    def at(self, early: int = 0, late: int = 40_000) -> int:
        """An instant within the day, in Unix seconds."""
        return self.start_s + self.rng.randrange(early, late)

    def ref(self, prefix: str) -> str:
        """A fresh object id of the provider."""
        return f"{prefix}_{self.rng.getrandbits(72):018x}"

    def paid(self, ref: str, amount: int, currency: str, state: str, refunded: int = 0, day: str = "") -> str:
        """Write one payment of ours; its id."""
        payment_id = f"p{self.number:08d}"
        self.number += 1
        self.page.payments.append(
            Payment(payment_id, self.shard, self.game_id, ref, amount, currency, state,
                    self.rng.randrange(1, 6), self.now_ms, refunded, day or self.day)
        )  # fmt: skip
        return payment_id

    def moved(self, category: str, source: str, charge: str, amount: int, currency: str, at_s: int) -> None:
        """Write one entry of the provider."""
        fee = amount * 29 // 1000 + 30 if category == "charge" else 0
        if category == "dispute" and amount:
            fee = 1500
        words = f"{category.replace('_', ' ').capitalize()} of {charge or source}"
        self.page.entries.append(
            Entry(self.ref("txn"), at_s, amount, fee, currency, category, source, charge, words,
                  "pi" + charge[2:] if charge else "")
        )  # fmt: skip

    def charged(self, amount: int, currency: str, at_s: int | None = None) -> str:
        """Write a charge of the provider; its id."""
        charge = self.ref("ch")
        self.moved("charge", charge, charge, amount, currency, self.at() if at_s is None else at_s)
        return charge

    def refunded(self, charge: str, amounts: list[int], currency: str) -> None:
        """Write refunds of the provider on one charge."""
        for amount in amounts:
            self.moved("refund", self.ref("re"), charge, -amount, currency, self.at(40_000, 86_000))

    def disputed(self, charge: str, amount: int, currency: str, end: str) -> None:
        """Write a dispute that ends ``dispute_won``, ``dispute_lost`` or stays ``disputed``."""
        dispute = self.ref("dp")
        self.moved("dispute", dispute, charge, -amount, currency, self.at(40_000, 60_000))
        if end == "dispute_won":
            self.moved("dispute_reversal", dispute, charge, amount, currency, self.at(60_000, 86_000))
        elif end == "dispute_lost":
            self.moved("dispute", dispute, charge, 0, currency, self.at(60_000, 86_000))

    def answer(self, find: str, subject: str, to_state: str = "") -> None:
        """Note what a comparison must find."""
        self.page.answers.append({"find": find, "subject": subject, "to_state": to_state})

    def parts(self, amount: int, whole: bool) -> list[int]:
        """One to three refunds that make up the whole of ``amount``, or less than it."""
        count = self.rng.randrange(1, 4)
        share = amount // (count + 1)
        found = [share] * count
        if whole:
            found[-1] = amount - share * (count - 1)
        return found


def _charge(book: Book) -> None:
    amount, currency = book.money()
    book.paid(book.charged(amount, currency), amount, currency, "charged")


def _pending(book: Book) -> None:
    amount, currency = book.money()
    book.paid("", amount, currency, "pending")


def _refund(whole: bool, known: bool, late: bool = False) -> Callable[[Book], None]:
    def tell(book: Book) -> None:
        amount, currency = book.money()
        charge = book.charged(amount, currency, book.at() - 86_400 if late else None)
        amounts = book.parts(amount, whole)
        book.refunded(charge, amounts, currency)
        state = "refunded" if whole else "partially_refunded"
        day = book.day_before if late else book.day
        if known:
            book.paid(charge, amount, currency, state, sum(amounts), day)
        else:
            book.answer("correction", book.paid(charge, amount, currency, "charged", 0, day), state)

    return tell


def _dispute(end: str, known: str) -> Callable[[Book], None]:
    def tell(book: Book) -> None:
        amount, currency = book.money()
        charge = book.charged(amount, currency)
        book.disputed(charge, amount, currency, end)
        payment = book.paid(charge, amount, currency, known)
        if known != end:
            book.answer("correction", payment, end)

    return tell


def _payout(failed: bool, known: str) -> Callable[[Book], None]:
    def tell(book: Book) -> None:
        amount, currency = book.money()
        payout = book.ref("po")
        book.moved("payout", payout, "", -amount, currency, book.at())
        if failed:
            book.moved("payout_reversal", payout, "", amount, currency, book.at(40_000, 86_000))
        payment = book.paid(payout, amount, currency, known)
        end = "payout_failed" if failed else "payout_paid"
        if known != end:
            book.answer("correction", payment, end)

    return tell


def _missed_charge(book: Book) -> None:
    amount, currency = book.money()
    payment = book.paid(book.charged(amount, currency), amount, currency, "pending")
    book.answer("correction", payment, "charged")


def _double_booked(book: Book) -> None:
    amount, currency = book.money()
    charge = book.charged(amount, currency)
    book.paid(charge, amount, currency, "charged")
    book.paid(charge, amount, currency, "charged")
    book.answer("double_booked_reference", charge)


def _charged_twice(book: Book) -> None:
    amount, currency = book.money()
    charge = book.charged(amount, currency)
    book.moved("charge", charge, charge, amount, currency, book.at())
    book.paid(charge, amount, currency, "charged")
    book.answer("double_booked_reference", charge)


def _amount(book: Book) -> None:
    amount, currency = book.money()
    charge = book.charged(amount, currency)
    payment = book.paid(charge, amount + 1 + book.rng.randrange(99), currency, "charged")
    book.answer("amount_difference", payment)


def _currency(book: Book) -> None:
    amount, _ = book.money()
    charge = book.charged(amount, "usd")
    book.answer("currency_difference", book.paid(charge, amount, "cad", "charged"))


def _not_ours(book: Book) -> None:
    amount, currency = book.money()
    book.answer("not_ours", book.charged(amount, currency))


def _missing(book: Book) -> None:
    amount, currency = book.money()
    book.answer("missing_at_provider", book.paid(book.ref("ch"), amount, currency, "charged"))


def _ahead(book: Book) -> None:
    amount, currency = book.money()
    charge = book.charged(amount, currency)
    book.answer("ahead_of_provider", book.paid(charge, amount, currency, "refunded", amount))


def _over_refunded(book: Book) -> None:
    amount, currency = book.money()
    charge = book.charged(amount, currency)
    book.refunded(charge, [amount, amount // 2], currency)
    book.answer("over_refunded", book.paid(charge, amount, currency, "charged"))


@dataclass(frozen=True, slots=True)
class Story:
    """How often a story is told, how many of our payments it needs, and how it goes."""

    weight: int
    payments: int
    tell: Callable[[Book], None]


STORIES: Final[dict[str, Story]] = {
    "charge": Story(8_600, 1, _charge),
    "pending": Story(60, 1, _pending),
    "refund_part": Story(120, 1, _refund(whole=False, known=True)),
    "refund_whole": Story(120, 1, _refund(whole=True, known=True)),
    "dispute_open": Story(30, 1, _dispute("disputed", "disputed")),
    "dispute_won": Story(30, 1, _dispute("dispute_won", "dispute_won")),
    "dispute_lost": Story(30, 1, _dispute("dispute_lost", "dispute_lost")),
    "payout": Story(150, 1, _payout(failed=False, known="payout_paid")),
    "payout_failed": Story(20, 1, _payout(failed=True, known="payout_failed")),
    "missed_charge": Story(60, 1, _missed_charge),
    "missed_refund_part": Story(100, 1, _refund(whole=False, known=False)),
    "missed_refund_whole": Story(100, 1, _refund(whole=True, known=False)),
    "late_refund": Story(40, 1, _refund(whole=False, known=False, late=True)),
    "missed_dispute": Story(30, 1, _dispute("disputed", "charged")),
    "missed_dispute_won": Story(30, 1, _dispute("dispute_won", "disputed")),
    "missed_dispute_lost": Story(30, 1, _dispute("dispute_lost", "charged")),
    "missed_payout": Story(20, 1, _payout(failed=False, known="payout_pending")),
    "missed_payout_failure": Story(40, 1, _payout(failed=True, known="payout_paid")),
    "double_booked": Story(20, 2, _double_booked),
    "charged_twice": Story(15, 1, _charged_twice),
    "amount": Story(30, 1, _amount),
    "currency": Story(20, 1, _currency),
    "not_ours": Story(30, 0, _not_ours),
    "missing": Story(30, 1, _missing),
    "ahead": Story(20, 1, _ahead),
    "over_refunded": Story(15, 1, _over_refunded),
}
