"""Windows: what runs have covered, without hole and without overlap, whatever the schedule does."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from redrive.domain.errors import InvalidRequest, LimitExceeded
from redrive.ledger import Job, Ledger, LedgerRetry, Window, WindowBusy, WindowLost
from tests.ledger.stores import Store

DAY = timedelta(days=1)
FIRST = datetime(2026, 10, 20, 2, 0, 0, 123457, tzinfo=UTC)
NAME = "settlement"
Range = tuple[datetime, datetime]


def covered(ledger: Ledger, start: datetime, end: datetime) -> None:
    """Assert that the completed windows are exactly ``[start, end)``, each beginning where the last ended."""
    done = sorted((each.start, each.end) for each in ledger.window_history(NAME, limit=1000))
    assert holes_and_overlaps(done, start, end) == []


def holes_and_overlaps(done: list[Range], start: datetime, end: datetime) -> list[Range]:
    """Where neighbours do not meet, and where the first and last do not meet the bounds."""
    edges = [start, *(edge for pair in done for edge in pair), end]
    pairs = list(zip(edges[::2], edges[1::2], strict=True))
    return [(one, other) for one, other in pairs if one != other]


def test_a_window_goes_from_the_last_end_to_the_cut(ledger: Ledger) -> None:
    """The first needs a start; completed, the next begins where it ended, to the microsecond."""
    with pytest.raises(InvalidRequest, match="needs start="):
        ledger.window(NAME, until=FIRST + DAY)
    window = ledger.window(NAME, until=FIRST + DAY, start=FIRST)
    assert (bool(window), window.start, window.end) == (True, FIRST, FIRST + DAY)
    window.complete()
    again = ledger.window(NAME, until=FIRST + DAY, start=FIRST)
    assert (bool(again), again.busy) == (False, False)
    assert "completed up to 2026-10-21T02:00:00.123457+00:00" in again.why
    zone = timezone(timedelta(hours=2))
    following = ledger.window(NAME, until=(FIRST + 3 * DAY).astimezone(zone), start=FIRST - DAY)
    assert (following.start, following.end) == (FIRST + DAY, FIRST + 3 * DAY)


@pytest.mark.parametrize("field", ["until", "start"])
@pytest.mark.parametrize("value", [datetime(2026, 10, 20), "2026-10-20T00:00:00Z", 5])  # noqa: DTZ001
def test_times_without_a_zone_are_refused(field: str, value: Any) -> None:
    """The error names the field."""
    given: Any = {"until": FIRST, "start": FIRST, field: value}
    with pytest.raises(InvalidRequest, match=f"{field} must be a timezone-aware datetime"):
        Ledger("sqlite:///never-opened.db").window(NAME, **given)


def test_other_arguments_are_refused(ledger: Ledger) -> None:
    """Named, with limit and value."""
    for given, what in (
        ({"hold_seconds": -1}, "hold_seconds must be from 0"),
        ({"wait_seconds": 1e9}, "wait_seconds must be from 0"),
    ):
        with pytest.raises(LimitExceeded, match=what):
            ledger.window(NAME, until=FIRST, start=FIRST, **given)  # type: ignore[call-overload]
    with pytest.raises(InvalidRequest, match="overlapping must be skip or wait"):
        ledger.window(NAME, until=FIRST, overlapping="queue")  # type: ignore[call-overload]
    with pytest.raises(InvalidRequest, match="window name must be text that is not empty"):
        ledger.window("", until=FIRST)


def test_an_open_window_keeps_its_cut(ledger: Ledger) -> None:
    """A crashed run's window is resumed with the cut that it had; what came since is the next one's."""
    crashed = ledger.window(NAME, until=FIRST + DAY, start=FIRST, hold_seconds=0)
    assert crashed
    ends = []
    while window := ledger.window(NAME, until=FIRST + 3 * DAY):
        ends.append((window.start, window.end))
        window.complete()
    assert ends == [(FIRST, FIRST + DAY), (FIRST + DAY, FIRST + 3 * DAY)]
    covered(ledger, FIRST, FIRST + 3 * DAY)


def test_a_run_that_was_given_up_on_cannot_complete(store: Store, ledger: Ledger) -> None:
    """Its hold ended and another run took the window: WindowLost, and its work is rolled back."""
    slow = ledger.window(NAME, until=FIRST + DAY, start=FIRST, hold_seconds=0)
    other = ledger.window(NAME, until=FIRST + 2 * DAY)
    assert (other.start, other.end) == (slow.start, slow.end)
    db = store.connect()
    store.effect("slow")(db)
    with pytest.raises(WindowLost, match="not this run's any more"):
        slow.complete(db)
    db.rollback()
    db = store.connect()
    store.effect("other")(db)
    other.complete(db)
    db.commit()
    with pytest.raises(WindowLost):
        other.complete()
    assert (store.effects("slow"), store.effects("other")) == (0, 1)
    covered(ledger, FIRST, FIRST + DAY)


def test_the_mark_moves_with_the_works_commit_only(store: Store, ledger: Ledger) -> None:
    """Rolled back, the window is open as before."""
    window = ledger.window(NAME, until=FIRST + DAY, start=FIRST)
    db = store.connect()
    window.complete(db)
    db.rollback()
    assert [each.mark for each in ledger.windows()] == [FIRST]
    window.complete(db)
    db.commit()
    assert [(each.mark, each.open_until) for each in ledger.windows()] == [(FIRST + DAY, None)]


def test_a_live_run_is_skipped(ledger: Ledger) -> None:
    """Falsy, with why; after it gave up or completed, the window is the next one's."""
    live = ledger.window(NAME, until=FIRST + DAY, start=FIRST)
    other = ledger.window(NAME, until=FIRST + DAY)
    assert (bool(other), other.busy, other.why) == (False, True, "another run has it")
    live.keep(600)
    live.release()
    resumed = ledger.window(NAME, until=FIRST + 2 * DAY)
    assert (resumed.start, resumed.end) == (live.start, live.end)
    with pytest.raises(WindowLost):
        live.keep()


def test_a_run_inside_a_transaction_is_skipped_at_once(store: Store, ledger: Ledger) -> None:
    """While it is not committed it cannot be seen, only that it is locked (SQLite: one writer at a time)."""
    if store.name == "sqlite":
        pytest.skip("SQLite's one writer is waited for and raises a retry")
    ledger.window(NAME, until=FIRST, start=FIRST - DAY).complete()
    db = store.connect()
    assert Ledger().window(NAME, until=FIRST + DAY, connection=db)
    other = ledger.window(NAME, until=FIRST + DAY)
    assert (bool(other), other.busy) == (False, True)
    db.rollback()
    assert ledger.window(NAME, until=FIRST + DAY)


def test_waiting_for_a_live_run(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on when that completes, and has an end otherwise."""
    live = ledger.window(NAME, until=FIRST + DAY, start=FIRST)
    with pytest.raises(WindowBusy, match="waited 0 s in vain: another run has it"):
        ledger.window(NAME, until=FIRST + DAY, overlapping="wait", wait_seconds=0)
    paused: list[float] = []

    def complete_meanwhile(event: Any, seconds: float) -> bool:
        paused.append(seconds)
        live.complete()
        return False

    monkeypatch.setattr("redrive.seams.wait", complete_meanwhile)
    following = ledger.window(NAME, until=FIRST + 2 * DAY, overlapping="wait", wait_seconds=20)
    assert (following.start, following.end, len(paused)) == (FIRST + DAY, FIRST + 2 * DAY, 1)


def test_nobody_waits_inside_a_transaction(store: Store) -> None:
    """It would hold what the other one needs."""
    with pytest.raises(InvalidRequest, match="inside a transaction"):
        Ledger().window(NAME, until=FIRST, start=FIRST, connection=store.connect(), overlapping="wait")


def test_async_connections(postgres_store: Store) -> None:
    """The same program; the answers are awaited."""
    import psycopg

    async def main() -> Window:
        ledger = Ledger()
        async with await psycopg.AsyncConnection.connect(postgres_store.url) as db:
            window = await ledger.window(NAME, until=FIRST + DAY, start=FIRST, connection=db)
            await window.complete(db)
            made = await ledger.batch(db, "b", [Job("m")], queue="q", then=Job("t"))
            assert (bool(made), await ledger.add_to_batch(db, "b", [Job("n")])) == (True, 1)
        async with await psycopg.AsyncConnection.connect(postgres_store.url, autocommit=True) as db:
            live = await ledger.window(NAME, until=FIRST + 2 * DAY, connection=db)
            with pytest.raises(WindowBusy):
                await ledger.window(
                    NAME, until=FIRST + 2 * DAY, connection=db, overlapping="wait", wait_seconds=0.01
                )
            return live

    assert asyncio.run(main()).start == FIRST + DAY


def ticks(draw: random.Random, count: int) -> Iterator[datetime]:
    """When a nightly schedule really ran: late, repeated, paused for nights, now and then too early again."""
    night = FIRST
    for _ in range(count):
        night += DAY * draw.choice([1, 1, 1, 2, 4])
        late = night + timedelta(microseconds=draw.randrange(0, 6 * 3600 * 10**6))
        for _ in range(draw.choice([1, 1, 2, 3])):
            yield late
        if draw.random() < 0.1:
            yield late - DAY


@pytest.mark.parametrize("seed", range(4))
def test_whatever_the_ticks_there_is_no_hole_and_no_overlap(store: Store, ledger: Ledger, seed: int) -> None:
    """Random ticks; runs crash before and after their work, in two ways, or are taken over while slow."""
    draw = random.Random(seed)
    slow: list[Window] = []
    for tick in ticks(draw, 12):
        while window := ledger.window(NAME, until=tick, start=FIRST, hold_seconds=draw.choice([0, 0, 300])):
            fate = draw.choice(["done", "done", "crash", "rollback", "slow"])
            if fate == "done":
                window.complete()
                continue
            if fate == "rollback":
                db = store.connect()
                window.complete(db)
                db.rollback()
                db.close()
            if fate == "slow":
                slow.append(window)
            db = store.connect(autocommit=True)  # its hold ends: the crashed run's window is the next one's
            db.cursor().execute("UPDATE redrive_windows SET held_until_ms = 0")
            db.close()
            break
        for late in slow if draw.random() < 0.3 else ():
            try:
                late.complete()
            except WindowLost:
                continue
        slow = slow if draw.random() < 0.7 else []
    last = FIRST + 200 * DAY
    while window := ledger.window(NAME, until=last):
        window.complete()
    covered(ledger, FIRST, last)


def test_control_yesterday_by_the_clock_has_holes_and_overlaps() -> None:
    """Control: the same ticks with a window of `now - 1 day`."""
    done = [(tick - DAY, tick) for tick in ticks(random.Random(0), 12)]
    assert len(holes_and_overlaps(sorted(done), done[0][0], done[-1][1])) > 5


def test_a_first_run_is_seen_by_the_second(store: Store, ledger: Ledger) -> None:
    """Also when it began in a transaction."""
    db = store.connect()
    assert Ledger().window(NAME, until=FIRST + DAY, start=FIRST, connection=db)
    db.commit()
    second = ledger.window(NAME, until=FIRST + DAY, start=FIRST)
    assert (bool(second), second.busy) == (False, True)


def test_windows_in_pages(ledger: Ledger) -> None:
    """By name; the history of each, newest first."""
    for name in ("c", "a", "b"):
        ledger.window(name, until=FIRST, start=FIRST - DAY).complete()
        ledger.window(name, until=FIRST + DAY).complete()
    assert [each.name for each in ledger.windows(limit=2)] == ["a", "b"]
    assert [each.name for each in ledger.windows(after="b")] == ["c"]
    assert [each.end for each in ledger.window_history("a")] == [FIRST + DAY, FIRST]
    assert [each.end for each in ledger.window_history("a", before=FIRST)] == [FIRST]
    with pytest.raises(LimitExceeded, match="limit must be from 1 to 1000"):
        ledger.windows(limit=0)


def test_a_lost_race_is_a_retry(postgres_store: Store) -> None:
    """In a snapshot older than the other run's commit."""
    ledger = postgres_store.ledger()
    ledger.window(NAME, until=FIRST, start=FIRST - DAY).complete()
    db = postgres_store.connect()
    db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    db.execute("SELECT 1 FROM effects")
    assert ledger.window(NAME, until=FIRST + DAY)
    with pytest.raises(LedgerRetry):
        Ledger().window(NAME, until=FIRST + DAY, connection=db)
    db.rollback()
    ledger.close()
