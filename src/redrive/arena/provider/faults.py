"""Which call goes wrong, and how: from a seed for the rates, from a list for exact places, and a switch."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

FAULTS: Final = ("rate_limited", "server_error", "timeout", "slow", "html")


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """``rates``: fault → share of calls (0 … 1).
    ``places``: (account, method, number of the account's call by that method) → fault.

    ``retry_after_seconds`` is told with 429; a ``timeout`` holds the answer ``timeout_seconds``, a ``slow``
    one ``slow_seconds``.
    """

    rates: Mapping[str, float] = field(default_factory=dict)
    places: Mapping[tuple[str, str, int], str] = field(default_factory=dict)
    retry_after_seconds: int = 1
    timeout_seconds: float = 4.0
    slow_seconds: float = 0.25

    @classmethod
    def from_wire(cls, plan: Mapping[str, Any]) -> FaultPlan:
        """Read ``{"rates": {…}, "places": [{"account", "method", "call", "fault"}], …}``.

        Raises ``ValueError`` that names an unknown field or fault.
        """
        known = {"rates", "places", "retry_after_seconds", "timeout_seconds", "slow_seconds"}
        unknown = sorted(set(plan) - known)
        if unknown:
            raise ValueError(f"unknown fields in the fault plan: {', '.join(unknown)}")
        rates = {str(name): float(share) for name, share in plan.get("rates", {}).items()}
        places = {
            (str(place["account"]), str(place.get("method", "GET")), int(place["call"])): str(place["fault"])
            for place in plan.get("places", [])
        }
        strange = sorted({*rates, *places.values()} - set(FAULTS))
        if strange:
            raise ValueError(f"unknown faults: {', '.join(strange)}; known are {', '.join(FAULTS)}")
        if any(share < 0 for share in rates.values()) or sum(rates.values()) > 1:
            raise ValueError("the shares in rates are not negative and sum to at most 1")
        numbers = {name: plan[name] for name in known - {"rates", "places"} if name in plan}
        return cls(rates=rates, places=places, **numbers)


class Faults:
    """Judges calls. The draw for a call depends on the seed, its account, method and number only, so that
    concurrent workers meet the same faults in every run of a seed."""

    def __init__(self, seed: int, plan: FaultPlan | None = None) -> None:
        self._lock = threading.Lock()
        self._seed = seed
        self._plan = plan or FaultPlan()
        self._outage = False
        self._met: dict[str, int] = {}

    @property
    def plan(self) -> FaultPlan:
        """The plan in force."""
        return self._plan

    def replace(self, plan: FaultPlan) -> None:
        """Put another plan in force."""
        with self._lock:
            self._plan = plan

    def outage(self, on: bool) -> None:
        """Begin or end an outage: every call is answered 503 while it lasts."""
        with self._lock:
            self._outage = on

    def judge(self, account: str, method: str, number: int) -> str:
        """The fault that this call meets, ``outage`` included, or an empty string."""
        with self._lock:
            fault = "outage" if self._outage else self._drawn(account, method, number)
            if fault:
                self._met[fault] = self._met.get(fault, 0) + 1
            return fault

    def met(self) -> dict[str, int]:
        """How often each fault was met so far."""
        with self._lock:
            return dict(self._met)

    def _drawn(self, account: str, method: str, number: int) -> str:
        placed = self._plan.places.get((account, method, number))
        if placed is not None:
            return placed
        if not self._plan.rates:
            return ""
        draw = Random(f"{self._seed}:{account}:{method}:{number}").random()
        for name, share in self._plan.rates.items():
            draw -= share
            if draw < 0:
                return name
        return ""
