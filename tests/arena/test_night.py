"""The night itself, with the real server, provider and worker processes."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from redrive.arena.night import Options, run

with_processes = pytest.mark.skipif(
    importlib.util.find_spec("redrive.cli") is None,
    reason="the night starts `redrive serve` and `redrive worker run`",
)


def _failed(options: Options) -> tuple[list[str], list[str]]:
    outcome = run(options, lambda words: None)
    return [
        f"{claim.name}: {claim.shown}" for claim in outcome.claims if not claim.holds
    ], outcome.evidence.late


@with_processes
def test_a_night_with_everything_breaking_holds_every_claim() -> None:
    """Killed worker, double publish, outage, invalid job, stopped consumers: one effect a key, none lost."""
    assert _failed(Options(seed=3, payments=1_200)) == ([], [])


@pytest.mark.slow
@with_processes
def test_the_same_night_holds_on_postgresql(postgres_url: str) -> None:
    """Server and game in schemas of their own, which are gone afterwards."""
    assert _failed(Options(seed=4, payments=1_200, storage=postgres_url)) == ([], [])


@pytest.mark.slow
@with_processes
def test_without_receipts_the_damage_shows() -> None:
    """The control: double effects and double money, nothing lost."""
    failed, _ = _failed(Options(seed=3, payments=1_200, unsafe="no-receipts"))
    names = {line.partition(":")[0] for line in failed}
    assert {"effects per job key", "money posted = the provider's books", "published twice"} <= names
    assert "jobs lost" not in names


@pytest.mark.slow
@with_processes
def test_acknowledging_first_loses_jobs() -> None:
    """The control: what was in flight when its worker died, or failed once, never happens."""
    failed, late = _failed(Options(seed=3, payments=1_200, unsafe="ack-first"))
    assert {"effects per job key", "jobs lost", "provider outage"} <= {
        line.partition(":")[0] for line in failed
    }
    assert late


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (Options(payments=99), "payments must be 100 to"),
        (Options(storage="mysql://x"), "SQLite or on postgresql"),
        (Options(theirs=Path("x.csv")), "go together"),
    ],
)
def test_wrong_options_are_refused_before_anything_starts(options: Options, words: str) -> None:
    """One sentence, no process, no folder."""
    with pytest.raises(ValueError, match=words):
        run(options, lambda _: None)
