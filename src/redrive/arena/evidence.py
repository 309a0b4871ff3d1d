"""What a night leaves behind: moments, what an operator could see at them, what the tables show."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from redrive.arena.game.database import Game
from redrive.arena.game.seed import Night
from redrive.arena.roles import Roles


@dataclass(slots=True)
class Evidence:
    """Collected while the night runs. ``moments`` are wall-clock milliseconds by name.

    ``views`` is what the queue's own answers showed an operator at a moment; ``late`` names what was waited
    for in vain (with a safety off that is part of the damage).
    """

    night: Night
    roles: Roles
    settlements: dict[str, str] = field(default_factory=dict)  # shard → job key
    cleanups: list[str] = field(default_factory=list)  # job keys
    outdated: int = 0
    moments: dict[str, int] = field(default_factory=dict)
    views: dict[str, dict[str, Any]] = field(default_factory=dict)
    late: list[str] = field(default_factory=list)
    oversized_code: str = ""
    committed_before_kill: int = -1
    isolated: list[dict[str, Any]] = field(default_factory=list)
    redriven: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Tables:
    """The business tables and the ledger after the night, and what the provider counted."""

    effects: dict[str, int]
    audit: list[dict[str, Any]]
    cleanups: list[dict[str, Any]]
    corrections: list[dict[str, Any]]
    exceptions: list[dict[str, Any]]
    posted: dict[str, tuple[int, int, int]]
    attempts: dict[str, list[Any]]  # settlement key → the ledger's AttemptRecords
    counts: dict[str, Any]
    status: Any  # the ledger's LedgerStatus


def read_tables(game: Game, ledger: Any, evidence: Evidence, counts: dict[str, Any]) -> Tables:
    """Read everything that the claims are judged by."""
    return Tables(
        effects={row["job_key"]: int(row["effects"]) for row in game.rows("effects_by_key")},
        audit=game.rows("audit_all"),
        cleanups=game.rows("cleanups_all"),
        corrections=game.rows("corrections_all"),
        exceptions=game.rows("exceptions_all"),
        posted={
            row["currency"]: (int(row["gross"]), int(row["fee"]), int(row["net"]))
            for row in game.rows("postings_sum")
        },
        attempts={key: ledger.attempts(key) for key in evidence.settlements.values()},
        counts=counts,
        status=ledger.status(),
    )
