"""What the provider knows: entries by account, payouts sent again, idempotency keys, call counts."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from redrive.arena.records import Entry

LIMIT_MAX: Final = 100
LIMIT_DEFAULT: Final = 10
TYPES: Final = {
    "charge": "charge",
    "refund": "refund",
    "refund_failure": "refund_failure",
    "dispute": "adjustment",
    "dispute_reversal": "adjustment",
    "payout": "payout",
    "payout_reversal": "payout_failure",
    "fee": "stripe_fee",
}


class Refusal(Exception):
    """A 4xx answer: ``status``, Stripe's error ``kind``, and the words."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message


class Books:
    """The provider's state; safe to use from many threads."""

    def __init__(self, entries: Mapping[str, Iterable[Entry]]) -> None:
        self._lock = threading.Lock()
        self._accounts: dict[str, list[Entry]] = {}
        self._by_ref: dict[tuple[str, str], list[Entry]] = {}
        for account, found in entries.items():
            self.add(account, found)
        self._payouts: dict[tuple[str, str], tuple[dict[str, str], dict[str, Any]]] = {}
        self._calls: Counter[tuple[str, str, str]] = Counter()

    def add(self, account: str, entries: Iterable[Entry]) -> None:
        """Book entries into an account, which is opened if need be."""
        with self._lock:
            book = self._accounts.setdefault(account, [])
            for entry in entries:
                book.append(entry)
                self._by_ref.setdefault((account, entry.ref), []).append(entry)
            book.sort(key=_newest_first)

    def count(self, account: str, endpoint: str, key: str) -> int:
        """Count one call; the number of this one among the account's of the same method, from 1."""
        with self._lock:
            self._calls[account, endpoint, key] += 1
            method = endpoint.partition(" ")[0]
            mine = (
                n
                for (name, where, _), n in self._calls.items()
                if (name, where.partition(" ")[0]) == (account, method)
            )
            return sum(mine)

    def counts(self) -> list[dict[str, Any]]:
        """Calls by account, endpoint and idempotency key (empty when none was sent)."""
        with self._lock:
            return [
                {"account": account, "endpoint": endpoint, "idempotency_key": key, "calls": calls}
                for (account, endpoint, key), calls in sorted(self._calls.items())
            ]

    def payouts(self) -> list[dict[str, Any]]:
        """Every payout that was made here, in order of making."""
        with self._lock:
            return [answer for _, answer in self._payouts.values()]

    def page(self, account: str, query: Mapping[str, str]) -> dict[str, Any]:
        """One page of the account's balance transactions, newest first; ``query`` as on the wire."""
        since_s = _whole(query, "created[gte]", 0)
        until_s = _whole(query, "created[lt]", 2**62)
        limit = _whole(query, "limit", LIMIT_DEFAULT)
        if not 1 <= limit <= LIMIT_MAX:
            words = f"limit must be between 1 and {LIMIT_MAX}, got {limit}"
            raise Refusal(400, "invalid_request_error", words)
        with self._lock:
            book = self._book(account)
            if "charge" in query:
                book = sorted(self._by_ref.get((account, query["charge"]), []), key=_newest_first)
            start = bisect_left(book, -until_s + 1, key=lambda entry: -entry.created_s)
            if "starting_after" in query:
                start = max(start, _place(book, query["starting_after"]) + 1)
            found = [entry for entry in book[start : start + limit + 1] if entry.created_s >= since_s]
        return {
            "object": "list",
            "url": "/v1/balance_transactions",
            "has_more": len(found) > limit,
            "data": [_wire(entry) for entry in found[:limit]],
        }

    def pay_out(self, account: str, form: dict[str, str], key: str) -> tuple[dict[str, Any], bool]:
        """Make a payout; ``(answer, replayed)``. The same key answers the first payout again."""
        amount = _whole(form, "amount", 0)
        if amount < 1 or "currency" not in form:
            raise Refusal(400, "invalid_request_error", "a payout needs amount (from 1) and currency")
        with self._lock:
            self._book(account)
            known = self._payouts.get((account, key)) if key else None
            if known is not None:
                if known[0] != form:
                    words = "Keys for idempotent requests can only be used with the same parameters"
                    raise Refusal(400, "idempotency_error", words)
                return known[1], True
            number = len(self._payouts) + 1
            answer: dict[str, Any] = {
                "id": f"po_again{number:08d}", "object": "payout", "amount": amount,
                "currency": form["currency"], "status": "pending",
                "metadata": {"payment_id": form.get("metadata[payment_id]", "")},
            }  # fmt: skip
            self._payouts[account, key or f"none:{number}"] = (dict(form), answer)
            return answer, False

    def _book(self, account: str) -> list[Entry]:
        book = self._accounts.get(account)
        if book is None:
            raise Refusal(403, "invalid_request_error", f"no such account: {account[:80]!r}")
        return book


def _newest_first(entry: Entry) -> tuple[int, str]:
    return (-entry.created_s, entry.txn_id)


def _place(book: list[Entry], txn_id: str) -> int:
    for place, entry in enumerate(book):
        if entry.txn_id == txn_id:
            return place
    raise Refusal(400, "invalid_request_error", f"No such balance transaction: {txn_id[:80]!r}")


def _whole(query: Mapping[str, str], name: str, default: int) -> int:
    text = query.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise Refusal(400, "invalid_request_error", f"Invalid integer: {name}={text[:40]}")
    return int(text)


def _wire(entry: Entry) -> dict[str, Any]:
    return {
        "id": entry.txn_id,
        "object": "balance_transaction",
        "amount": entry.amount,
        "fee": entry.fee,
        "net": entry.net,
        "currency": entry.currency,
        "created": entry.created_s,
        "available_on": entry.created_s,
        "status": "available",
        "type": TYPES.get(entry.category, "adjustment"),
        "reporting_category": entry.category,
        "source": entry.source_id,
        "description": entry.description,
        "metadata": {"charge_id": entry.charge_id, "payment_intent_id": entry.payment_intent_id},
    }
