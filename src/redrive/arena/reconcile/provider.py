"""The provider's API as the nightly job uses it: pages of balance transactions, and a payout sent again.

Every call has a time-out; every way it can end badly has one exception, so that the job can tell "try again
later" from "this can never work".
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlencode

import urllib3

from redrive.arena.outcomes import RetryLater
from redrive.arena.records import Entry, Payment

PAGE_ENTRIES: Final = 100
PAGES_MAX: Final = 2_000
RETRY_AFTER_DEFAULT_SECONDS: Final = 1.0


class ProviderUnavailable(ConnectionError):
    """The provider did not give a usable answer now: refused, 5xx, not JSON. Trying again can help."""


class ProviderTimeout(TimeoutError):
    """The provider did not answer in time; what it did with the call is unknown."""


class ProviderRefused(Exception):
    """The provider understood and said no (4xx other than 429): repeating the same call cannot help."""


class Provider:
    """A client of one provider at ``base_url``; safe to share between threads.

    ``timeout_seconds`` bounds the connection and each read. ``calls`` counts the requests
    that this thread sent.
    """

    def __init__(self, base_url: str, *, timeout_seconds: float = 2.0) -> None:
        self.base_url = base_url.rstrip("/")
        self._sent = threading.local()
        self._pool = urllib3.PoolManager(
            timeout=urllib3.Timeout(connect=timeout_seconds, read=timeout_seconds), retries=False, maxsize=8
        )

    @property
    def calls(self) -> int:
        """How many requests this thread has sent so far."""
        return int(getattr(self._sent, "calls", 0))

    def transactions(self, account: str, since_s: int, until_s: int) -> Iterator[Entry]:
        """The account's entries with ``since_s <= created < until_s`` (Unix seconds), newest first."""
        yield from self._pages(account, {"created[gte]": since_s, "created[lt]": until_s})

    def transactions_of(self, account: str, charge: str) -> Iterator[Entry]:
        """All entries of one charge or payout, whatever their time."""
        yield from self._pages(account, {"charge": charge})

    def resubmit_payout(self, account: str, payment: Payment, idempotency_key: str) -> str:
        """Send a failed payout again; the new payout's id. The same key is answered with the same payout."""
        body = urlencode(
            {
                "amount": payment.amount,
                "currency": payment.currency.lower(),
                "metadata[payment_id]": payment.payment_id,
                "metadata[replaces]": payment.provider_ref,
            }
        )
        headers = {"Idempotency-Key": idempotency_key, "Content-Type": "application/x-www-form-urlencoded"}
        answer = self._call("POST", "/v1/payouts", account, headers=headers, body=body)
        return str(answer["id"])

    def close(self) -> None:
        """Close the connections that are kept."""
        self._pool.clear()

    def _pages(self, account: str, query: dict[str, Any]) -> Iterator[Entry]:
        after = ""
        for _ in range(PAGES_MAX):
            page = {**query, "limit": PAGE_ENTRIES} | ({"starting_after": after} if after else {})
            answer = self._call("GET", f"/v1/balance_transactions?{urlencode(page)}", account)
            try:
                found = [_entry(item) for item in answer["data"]]
                more = bool(answer["has_more"])
            except (KeyError, TypeError, AttributeError) as problem:
                raise ProviderUnavailable(f"a page of entries is malformed: {problem!r}") from None
            yield from found
            if not more or not found:
                return
            after = found[-1].txn_id
        raise ProviderUnavailable(f"more than {PAGES_MAX} pages of balance transactions for {account}")

    def _call(
        self, method: str, path: str, account: str, *,
        headers: dict[str, str] | None = None, body: str | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        self._sent.calls = self.calls + 1
        try:
            sent = {"Stripe-Account": account, **(headers or {})}
            answer = self._pool.request(method, self.base_url + path, body=body, headers=sent)
        except urllib3.exceptions.ConnectTimeoutError as problem:
            raise ProviderUnavailable(f"cannot reach the provider: {type(problem).__name__}") from None
        except urllib3.exceptions.TimeoutError:
            raise ProviderTimeout(f"the provider did not answer {method} in time") from None
        except urllib3.exceptions.HTTPError as problem:
            raise ProviderUnavailable(f"no answer from the provider: {type(problem).__name__}") from None
        return _read(answer.status, answer.headers.get("Retry-After"), answer.data)


def _read(status: int, retry_after: str | None, body: bytes) -> dict[str, Any]:
    if status == 429:
        told = retry_after or ""
        after = float(told) if told.isascii() and told.isdigit() else RETRY_AFTER_DEFAULT_SECONDS
        raise RetryLater("the provider asked us to slow down", after=after)
    if status >= 500:
        raise ProviderUnavailable(f"the provider answered {status}")
    try:
        answer = json.loads(body)
    except ValueError:  # an error page of a proxy, served as 200 or 4xx
        raise ProviderUnavailable(f"the provider answered {status}, but not with JSON") from None
    if not isinstance(answer, dict):
        raise ProviderUnavailable(f"the provider answered {status}, but not with a JSON object")
    if status >= 400:
        error = answer.get("error")
        words = str(error.get("message", "")) if isinstance(error, dict) else ""
        raise ProviderRefused(f"the provider answered {status}: {words[:200]}")
    return answer


def _entry(item: dict[str, Any]) -> Entry:
    metadata = item.get("metadata") or {}
    return Entry(
        txn_id=str(item["id"]), created_s=int(item["created"]),
        amount=int(item["amount"]), fee=int(item["fee"]),
        currency=str(item["currency"]).lower(), category=str(item["reporting_category"]),
        source_id=str(item["source"] or ""), charge_id=str(metadata.get("charge_id", "")),
        description=str(item.get("description") or ""),
        payment_intent_id=str(metadata.get("payment_intent_id", "")),
    )  # fmt: skip
