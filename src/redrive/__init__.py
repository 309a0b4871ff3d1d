"""Redrive: failed-job recovery you can prove.

A durable at-least-once queue behind a plain REST contract, a worker that makes a second delivery harmless, a
ledger in the application's own database, and dead letters that can be redriven one by one.

What it offers is resolved when first used. Importing this package imports nothing else, not even ``typing``:
a Ctrl-C in the command line's first moment would meet nobody who hears it.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as the type checker takes it, without the import
if TYPE_CHECKING:
    from typing import Any

    from redrive.compose import Worker, connect
    from redrive.domain.errors import RedriveError
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
    "RedriveError": "redrive.domain.errors",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'redrive' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
