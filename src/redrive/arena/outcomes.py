"""The outcomes that a handler may raise, imported in one place."""

from __future__ import annotations

from redrive.worker import Reject, RetryLater

__all__ = ["Reject", "RetryLater"]
