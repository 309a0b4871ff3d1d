"""Redrive: failed-job recovery you can prove.

A durable at-least-once queue behind a plain REST contract, a worker that makes a second delivery harmless, a
ledger in the application's own database, and dead letters that can be redriven one by one.

``connect`` and ``Worker`` are resolved when first used, so that importing this package stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from redrive.domain.errors import RedriveError

if TYPE_CHECKING:
    from redrive.compose import Worker, connect
    from redrive.ledger import Job, Ledger
    from redrive.worker import Reject, RetryLater

__all__ = ["Job", "Ledger", "RedriveError", "Reject", "RetryLater", "Worker", "connect"]

_LAZY = {
    "Worker": "redrive.compose",
    "connect": "redrive.compose",
    "Reject": "redrive.worker",
    "RetryLater": "redrive.worker",
    "Ledger": "redrive.ledger",
    "Job": "redrive.ledger",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'redrive' has no attribute {name!r}")
    value = getattr(import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
