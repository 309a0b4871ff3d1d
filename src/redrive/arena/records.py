"""What both sides of a settlement are made of: our payments, the provider's entries, the game's shards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

GAME_ID: Final = "emberfall"
SHARDS: Final = (
    "eu-west", "eu-north", "eu-south", "us-east", "us-west", "us-central",
    "ap-south", "ap-east", "ap-north", "sa-east", "af-south", "me-central",
)  # fmt: skip

PAYMENT_STATES: Final = (
    "pending", "charged", "partially_refunded", "refunded", "disputed", "dispute_won", "dispute_lost",
    "payout_pending", "payout_paid", "payout_failed",
)  # fmt: skip


def account_of(shard: str) -> str:
    """The provider's account of a shard."""
    return f"acct_{shard}"


def settlement_key(date: str, shard: str) -> str:
    """The job key of one shard's nightly settlement, ``settlement:2026-10-23:eu-west``."""
    return f"settlement:{date}:{shard}"


def cleanup_key(match_id: str, version: int) -> str:
    """The job key of the cleanup of one match as it was at ``version``."""
    return f"cleanup:{match_id}:{version}"


class Shard(msgspec.Struct, frozen=True, array_like=True):
    """One shard of the game and its account at the provider."""

    shard: str
    game_id: str
    provider_account: str


class Payment(msgspec.Struct, frozen=True, array_like=True):
    """One of our payments. ``amount`` and ``refunded`` are in the currency's smallest unit.

    ``provider_ref`` is the charge (``ch_…``) or payout (``po_…``), empty while pending. ``refunded`` is None
    where the source does not tell it (our CSV). ``updated_at_ms`` is the wall clock's.
    """

    payment_id: str
    shard: str
    game_id: str
    provider_ref: str
    amount: int
    currency: str
    state: str
    version: int
    updated_at_ms: int = 0
    refunded: int | None = None
    day: str = ""


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One balance transaction of the provider; amounts in the smallest unit, ``created_s`` in Unix seconds.

    ``source_id`` is the object that moved the money (``ch_``, ``re_``, ``dp_``, ``po_``), ``charge_id`` the
    charge it belongs to, empty for payouts.
    """

    txn_id: str
    created_s: int
    amount: int
    fee: int
    currency: str
    category: str
    source_id: str
    charge_id: str
    description: str = ""
    payment_intent_id: str = ""

    @property
    def net(self) -> int:
        """What reaches the balance: amount less fee."""
        return self.amount - self.fee

    @property
    def ref(self) -> str:
        """What one of our payments would hold as ``provider_ref``."""
        return self.charge_id or self.source_id


class Match(msgspec.Struct, frozen=True, array_like=True):
    """One match of the game; ``expires_at_ms`` by the wall clock, ``position`` its place in the shard."""

    match_id: str
    shard: str
    state: str
    version: int
    expires_at_ms: int
    position: int


def totals(entries: Iterable[Entry]) -> dict[str, tuple[int, int, int]]:
    """What ``entries`` move: currency → (gross, fee, net) in its smallest unit."""
    found: dict[str, tuple[int, int, int]] = {}
    for entry in once(entries):
        gross, fee, net = found.get(entry.currency, (0, 0, 0))
        found[entry.currency] = (gross + entry.amount, fee + entry.fee, net + entry.net)
    return found


def once(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Each entry once by its id: pages can shift while they are read."""
    seen: set[str] = set()
    for entry in entries:
        if entry.txn_id not in seen:
            seen.add(entry.txn_id)
            yield entry
