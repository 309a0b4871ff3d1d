"""Nightly settlement: compare our payments with the provider's, correct what is safe, report the rest."""

from __future__ import annotations

from redrive.arena.reconcile.compare import Comparison, Correction, Finding, compare
from redrive.arena.reconcile.handler import reconcile_shard
from redrive.arena.reconcile.provider import Provider, ProviderRefused, ProviderTimeout, ProviderUnavailable

__all__ = [
    "Comparison",
    "Correction",
    "Finding",
    "Provider",
    "ProviderRefused",
    "ProviderTimeout",
    "ProviderUnavailable",
    "compare",
    "reconcile_shard",
]
