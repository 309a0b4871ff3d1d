"""A night's payments on both sides with known differences, from a seed, as a stream of small cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from redrive.arena.calendar import day_before, day_bounds
from redrive.arena.game.stories import STORIES, Book
from redrive.arena.records import GAME_ID, SHARDS, Entry, Match, Payment

MATCH_STATES: Final = (("open", 80), ("finished", 15), ("expired", 5))


@dataclass(slots=True)
class Case:
    """One story: our payments, the provider's entries, and what a comparison must find in them.

    ``answers`` are ``{"find": "correction" | <exception kind>, "subject": payment id or reference,
    "to_state": …}``; empty when both sides agree. ``shard`` owns them all.
    """

    shard: str
    story: str
    payments: list[Payment] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    answers: list[dict[str, Any]] = field(default_factory=list)


def cases(rng: Random, payments: int, *, day: str, now_ms: int) -> Iterator[Case]:
    """Cases that hold exactly ``payments`` payments of ours in all, spread over the shards in turn.

    ``now_ms`` becomes each payment's ``updated_at_ms``. The same seed gives the same stream.
    """
    start_s, _ = day_bounds(day)
    names = list(STORIES)
    weights = [STORIES[name].weight for name in names]
    number = 0
    turn = 0
    while number < payments:
        name = rng.choices(names, weights)[0]
        if STORIES[name].payments > payments - number:
            name = "charge"
        shard = SHARDS[turn % len(SHARDS)]
        turn += 1
        case = Case(shard, name)
        book = Book(rng, shard, GAME_ID, number, day, day_before(day), start_s, now_ms, case)
        tell: Callable[[Book], None] = STORIES[name].tell
        tell(book)
        number = book.number
        yield case


def matches(rng: Random, count: int, *, now_ms: int) -> Iterator[Match]:
    """``count`` matches; open ones have expired within the last hour, one in ten of them not yet."""
    states = [state for state, _ in MATCH_STATES]
    weights = [weight for _, weight in MATCH_STATES]
    places = dict.fromkeys(SHARDS, 0)
    for number in range(count):
        shard = SHARDS[number % len(SHARDS)]
        late_ms = rng.randrange(1_000, 3_600_000)
        expires_at_ms = now_ms + 3_600_000 if rng.random() < 0.1 else now_ms - late_ms
        places[shard] += 1
        state = rng.choices(states, weights)[0]
        yield Match(f"m{number:07d}", shard, state, rng.randrange(1, 5), expires_at_ms, places[shard])
