"""Fill a game's database with one night, and keep what the provider must hold and the job must find."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from msgspec.structs import asdict as fields_of

from redrive.arena.calendar import day_bounds
from redrive.arena.game.database import Game
from redrive.arena.game.generator import cases, matches
from redrive.arena.records import GAME_ID, SHARDS, Entry, Match, Payment, Shard, account_of, totals


@dataclass(slots=True)
class Night:
    """One night: our payments, the provider's entries by account, the matches, and the answer key.

    ``answers`` maps a shard to what its settlement must find, as in ``Case.answers``.
    """

    day: str
    payments: list[Payment] = field(default_factory=list)
    entries: dict[str, list[Entry]] = field(default_factory=dict)
    matches: list[Match] = field(default_factory=list)
    answers: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    shards: tuple[Shard, ...] = tuple(Shard(name, GAME_ID, account_of(name)) for name in SHARDS)

    @classmethod
    def drawn(cls, seed: int, *, payments: int, matches_count: int, day: str, now_ms: int) -> Night:
        """The night of a seed: ``payments`` payments and ``matches_count`` matches over all shards."""
        night = cls(day)
        for case in cases(Random(seed), payments, day=day, now_ms=now_ms):
            night.payments.extend(case.payments)
            night.entries.setdefault(account_of(case.shard), []).extend(case.entries)
            night.answers.setdefault(case.shard, []).extend(case.answers)
        night.matches.extend(matches(Random(f"{seed}:matches"), matches_count, now_ms=now_ms))
        return night

    def totals(self) -> dict[str, tuple[int, int, int]]:
        """What the provider moved on the night's day: currency → (gross, fee, net)."""
        since_s, until_s = day_bounds(self.day)
        return totals(
            entry for book in self.entries.values() for entry in book if since_s <= entry.created_s < until_s
        )


def fill(game: Game, night: Night) -> None:
    """Write the shards and the night's rows; the caller commits."""
    game.write_many("shard_add", [fields_of(shard) for shard in night.shards])
    game.write_many("payment_add", [fields_of(row) for row in night.payments])
    game.write_many("match_add", [fields_of(row) for row in night.matches])
