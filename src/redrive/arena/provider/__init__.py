"""A payment provider on loopback in the shape of Stripe's balance transactions, with faults from a seed.

It is the arena's stand-in for a service that nobody here controls: it runs as its own process
(``python -m redrive.arena.provider``), honours idempotency keys, and counts every call.
"""

from __future__ import annotations

from redrive.arena.provider.book import Books, Refusal
from redrive.arena.provider.faults import FaultPlan, Faults
from redrive.arena.provider.server import ProviderServer

__all__ = ["Books", "FaultPlan", "Faults", "ProviderServer", "Refusal"]
