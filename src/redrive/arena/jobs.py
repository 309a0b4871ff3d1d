"""The arena's workers: ``redrive.arena.jobs:worker`` settles, ``redrive.arena.jobs:cleaner`` cleans matches.

They are told where to work by the environment: ``REDRIVE_URL``, ``REDRIVE_API_KEY``, ``REDRIVE_LEDGER`` (the
game's database, which also holds the ledger) and ``REDRIVE_ARENA_PROVIDER`` (the provider's base URL).
"""

from __future__ import annotations

import os
from typing import Any, Final

from redrive.arena.cleanup import clean_match
from redrive.arena.reconcile import Provider, reconcile_shard
from redrive.worker import Job, Worker

SETTLEMENT_QUEUE: Final = "settlement"
CLEANUP_QUEUE: Final = "match-cleanup"
PROVIDER_TIMEOUT_SECONDS: Final = 1.0

_URL = os.environ.get("REDRIVE_URL", "http://127.0.0.1:7077")
_KEY = os.environ.get("REDRIVE_API_KEY")
_GAME = os.environ.get("REDRIVE_LEDGER", "sqlite:///game.db")
_PROVIDER = Provider(
    os.environ.get("REDRIVE_ARENA_PROVIDER", "http://127.0.0.1:7078"),
    timeout_seconds=PROVIDER_TIMEOUT_SECONDS,
)

worker = Worker(_URL, queue=SETTLEMENT_QUEUE, ledger=_GAME, api_key=_KEY, concurrency=2, wait_seconds=1.0)
cleaner = Worker(_URL, queue=CLEANUP_QUEUE, ledger=_GAME, api_key=_KEY, concurrency=4, wait_seconds=1.0)


@worker.job
def settle(job: Job, db: Any) -> dict[str, Any]:
    """Settle one shard and day; see :func:`redrive.arena.reconcile.reconcile_shard`."""
    return reconcile_shard(job, db, _PROVIDER)


@cleaner.job
def clean(job: Job, db: Any) -> dict[str, Any]:
    """Clean one expired match; see :func:`redrive.arena.cleanup.clean_match`."""
    return clean_match(job, db)
