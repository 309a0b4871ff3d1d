"""One exercise from its first to its last step: played, judged, and cleaned up whatever happens."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from redrive import seams
from redrive.arena.claims import Claim
from redrive.exercise.claims import judge, left_behind
from redrive.exercise.cleanup import clean, undisturbed
from redrive.exercise.consumer import Order
from redrive.exercise.consumers import Consumers
from redrive.exercise.evidence import Evidence
from redrive.exercise.options import Names, Options
from redrive.exercise.story import CONCURRENCY, Story
from redrive.exercise.tables import Tables
from redrive.ledger import Ledger

_PROBE: Final = "exercise:probe"


@dataclass(frozen=True, slots=True)
class Place:
    """Where an exercise runs: a server, and the application's database with its ledger."""

    url: str
    database: str
    api_key: str | None = field(default=None, repr=False)
    ca_file: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How it ended; ``log`` is the end of the consumers' log when a claim failed."""

    names: Names
    claims: list[Claim]
    evidence: Evidence
    seconds: float
    log: str = ""

    @property
    def holds(self) -> bool:
        """Whether every claim holds."""
        return all(claim.holds for claim in self.claims)


def run(place: Place, client: Any, options: Options, tell: Callable[[str], None]) -> Outcome:
    """Play, judge, clean up. ``client`` is a transport to ``place.url``; ``tell`` hears what happens next.

    Raises RedriveError or ConnectionError where server or ledger refuse (LedgerNotInstalled before anything
    is made), and the database's own errors. What was made is removed then too, also after Ctrl-C.
    """
    began = seams.monotonic()
    ledger = Ledger(place.database)
    names = Names(f"{seams.random_bits(40):010x}")
    tables = Tables(place.database, names)
    folder = Path(tempfile.mkdtemp(prefix="redrive-exercise-"))
    consumers = Consumers(_order(place, names, options), folder)
    try:
        ledger.job(_PROBE)
        try:
            story = Story(options, names, client, tables, ledger, consumers, tell)
            story.play()
        finally:
            left = _cleaned(consumers, client, tables, names, options, tell)
        claims = [*judge(story.evidence, options, names), left_behind(left)]
        log = "" if all(claim.holds for claim in claims) else consumers.log()
        return Outcome(names, claims, story.evidence, seams.monotonic() - began, log)
    finally:
        tables.close()
        ledger.close()
        shutil.rmtree(folder, ignore_errors=True)


def _order(place: Place, names: Names, options: Options) -> Order:
    return Order(
        run=names.run,
        url=place.url,
        api_key=place.api_key,
        ca_file=place.ca_file,
        database=place.database,
        with_ledger=options.unsafe is None,
        concurrency=CONCURRENCY,
        job_seconds=options.job_seconds,
    )


def _cleaned(
    consumers: Consumers,
    client: Any,
    tables: Tables,
    names: Names,
    options: Options,
    tell: Callable[[str], None],
) -> list[str]:
    """What is left behind; said at once, since nobody may live to see the claims."""
    with undisturbed():
        consumers.stop()
        left = clean(client, tables, names, options)
        for what in left:
            tell(f"left behind: {what}")
        return left
