"""The contract over HTTP: pooled connections, safe repetition, deadlines on everything."""

from __future__ import annotations

from redrive.transports.rest.carrier import RestCarrier, open_rest

__all__ = ["RestCarrier", "open_rest"]
