"""The game's database (shards, payments, matches, audit, exceptions) and the generator that fills it."""

from __future__ import annotations

from redrive.arena.game.database import Game, open_game
from redrive.arena.game.generator import Case, cases, matches
from redrive.arena.game.seed import Night, fill

__all__ = ["Case", "Game", "Night", "cases", "fill", "matches", "open_game"]
