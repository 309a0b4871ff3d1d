"""What a row of the Speed table is, and what its measurement gives."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

Side = Callable[[int], object]  # does that many rounds of its work


class Unavailable(Exception):
    """This row cannot be measured here; the sentence says what is missing."""


@dataclass(frozen=True)
class Settings:
    """What the command line asks for."""

    folder: Path  # an empty folder of this row's own, removed afterwards
    pairs: int = 5  # measured pairs of a row
    work: int = 60  # rounds of each side in a pair; a row says what its round is
    postgres: str | None = None  # a database whose role may create others; without it a row is `Unavailable`

    def need_postgres(self) -> str:
        """The database's URL. Raises `Unavailable` without one."""
        if self.postgres is None:
            raise Unavailable("no PostgreSQL: give --postgres URL, or install the extra `test`")
        return self.postgres


@dataclass(frozen=True)
class Figure:
    """A measurement: medians of both sides in ``unit``, and what is held against ``Row.wanted``.

    ``ratio`` has one entry a pair: ours divided by theirs, or, where there is no other side
    (``theirs`` is None), our figure itself in ``unit``. ``median``, ``min`` and ``max`` are of ``ratio``.
    """

    ours: float
    theirs: float | None
    unit: str  # "/s", "ms", "s", "MiB", "% of a core"
    ratio: list[float]
    median: float
    min: float
    max: float
    notes: str = ""

    @staticmethod
    def of(unit: str, pairs: Sequence[tuple[float, float]], notes: str = "") -> Figure:
        """From (ours, theirs) of each pair."""
        ratio = [ours / theirs for ours, theirs in pairs]
        ours = statistics.median(one for one, _ in pairs)
        theirs = statistics.median(other for _, other in pairs)
        return Figure(ours, theirs, unit, ratio, statistics.median(ratio), min(ratio), max(ratio), notes)

    @staticmethod
    def alone(unit: str, values: Sequence[float], notes: str = "") -> Figure:
        """From our own figures, where the table wants a bound and no ratio."""
        middle = statistics.median(values)
        return Figure(middle, None, unit, list(values), middle, min(values), max(values), notes)


@dataclass(frozen=True)
class Row:
    """A row of the table."""

    name: str  # short, with dashes: what the command line takes
    what: str  # the sentence of the table
    wanted: float
    better: Literal["at least", "at most"]
    measure: Callable[[Settings], Figure]  # may raise `Unavailable`

    def reached(self, figure: Figure) -> bool:
        """Whether the median is what is wanted."""
        return figure.median >= self.wanted if self.better == "at least" else figure.median <= self.wanted

    def result(self, figure: Figure) -> dict[str, Any]:
        """As the JSON keeps it."""
        return {
            "what": self.what,
            "wanted": self.wanted,
            "better": self.better,
            "reached": self.reached(figure),
            **asdict(figure),
        }


def timed(side: Side, rounds: int) -> float:
    """Seconds of one run."""
    began = time.perf_counter()
    side(rounds)
    return time.perf_counter() - began


def in_turn(pairs: int, ours: Callable[[], float], theirs: Callable[[], float]) -> list[tuple[float, float]]:
    """The figures of both sides, pair by pair.

    The side that goes first changes from pair to pair, so that neither always meets the other's leftovers.
    """
    found = []
    for number in range(pairs):
        if number % 2:
            second = theirs()
            found.append((ours(), second))
        else:
            first = ours()
            found.append((first, theirs()))
    return found


def rates(ours: Side, theirs: Side, settings: Settings, unit: int = 1, notes: str = "") -> Figure:
    """Both sides in turn after one short warm-up; a round of ``settings.work`` has ``unit`` messages."""
    work = settings.work
    ours(max(1, work // 10)), theirs(max(1, work // 10))
    pairs = in_turn(
        settings.pairs, lambda: work * unit / timed(ours, work), lambda: work * unit / timed(theirs, work)
    )
    return Figure.of("/s", pairs, notes)
