"""Which shard meets which trouble tonight: drawn from the seed, so that a seed tells the same night."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from redrive.arena.records import account_of


@dataclass(frozen=True, slots=True)
class Roles:
    """The cast. A night with fewer than twelve shards leaves later roles empty."""

    shards: tuple[str, ...]
    killed: str  # its worker dies after the commit, before the ack
    doubled: str  # its message is published twice
    invalid: str  # one source record of it is wrong
    outage: tuple[str, ...]  # due while the provider is down
    stopped: tuple[str, ...]  # published while no consumer runs
    delayed: str  # its partition comes late
    limited: str  # meets 429 with Retry-After
    paged: str  # meets an HTML error page
    timed_out: str  # its payout is made, but the answer never comes

    @property
    def first_wave(self) -> tuple[str, ...]:
        """The shards that are published at the beginning."""
        later = {*self.outage, *self.stopped}
        return tuple(shard for shard in self.shards if shard not in later)


def cast(seed: int, shards: Sequence[str], *, with_payout: Sequence[str], today: Sequence[str]) -> Roles:
    """Draw the roles. ``with_payout`` are the shards whose settlement will send a payout again,
    ``today`` those with a payment of the night's own day."""
    rng = Random(f"{seed}:roles")
    left = sorted(shards)
    rng.shuffle(left)
    timed_out = next((shard for shard in left if shard in with_payout), "") if len(left) >= 8 else ""
    left = [shard for shard in left if shard != timed_out]

    def take(among: Sequence[str] = shards) -> str:
        found = next((shard for shard in left if shard in among), "")
        if found:
            left.remove(found)
        return found

    killed, doubled, invalid = take(), take(), take(today)
    outage = tuple(filter(None, (take(), take() if len(left) > 4 else "", take() if len(left) > 5 else "")))
    stopped = tuple(filter(None, (take(), take() if len(left) > 3 else "")))
    delayed, limited, paged = take(), take(), take()
    return Roles(
        tuple(sorted(shards)), killed, doubled, invalid, outage, stopped, delayed, limited, paged, timed_out
    )


def fault_plan(roles: Roles) -> dict[str, Any]:
    """The provider's fault plan for these roles, as its control route and ``--faults`` take it."""
    places = []
    if roles.limited:
        places.append({"account": account_of(roles.limited), "call": 2, "fault": "rate_limited"})
    if roles.paged:
        places.append({"account": account_of(roles.paged), "call": 1, "fault": "html"})
        places.append({"account": account_of(roles.paged), "call": 3, "fault": "slow"})
    if roles.timed_out:
        places.append(
            {"account": account_of(roles.timed_out), "method": "POST", "call": 1, "fault": "timeout"}
        )
    return {"places": places, "retry_after_seconds": 1, "timeout_seconds": 3.0, "rates": {"slow": 0.01}}
