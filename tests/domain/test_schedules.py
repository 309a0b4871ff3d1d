"""Which ticks fire, which do not, and why."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.domain import limits
from redrive.domain.cron import parse
from redrive.domain.errors import Conflict
from redrive.domain.schedules import (
    FIRST_STATUS,
    RUN_TRANSITIONS,
    TICK_ROWS_MAX,
    TICKS_COUNTED_MAX,
    CatchUp,
    Older,
    RunEvent,
    RunStatus,
    decide_ticks,
    jitter_ms,
    next_status,
    overlap_decision,
    pending_ticks,
)  # fmt: skip

M, DAY = 60_000, 86_400_000
DUES = [M, 2 * M, 3 * M, 4 * M]


def actions(*args: object, **kwargs: object) -> str:
    """The first letters of what becomes of ticks: f(ire), m(issed), s(kipped)."""
    return "".join(d.action[0] for d in decide_ticks(*args, **kwargs))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("catch_up", "pauses", "expected"),
    [
        ("none", [], "mmmf"),  # after downtime the latest fires, late
        ("one", [], "mmmf"),
        ("all", [], "ffff"),
        ("none", [(0, 5 * M)], "ssss"),  # no catch-up after a pause
        ("one", [(0, 5 * M)], "sssf"),
        ("all", [(0, 5 * M)], "ffff"),
        ("none", [(0, 3 * M)], "ssmf"),  # paused, then down: a pause ends before its end
        ("none", [(3 * M, 5 * M)], "mmss"),  # down, then paused: the pause ends what was owed
        ("one", [(3 * M, 5 * M)], "mmsf"),
        ("none", [(2 * M, 3 * M)], "msmf"),
        ("none", [(0, M), (4 * M, None)], "mmms"),
    ],
)
def test_what_fires_after_downtime_and_pauses(
    catch_up: CatchUp, pauses: list[tuple[int, int | None]], expected: str
) -> None:
    """Every tick has a row; those that do not fire say why."""
    decisions = decide_ticks(DUES, pauses=pauses, catch_up=catch_up)
    assert "".join(d.action[0] for d in decisions) == expected
    assert [d.due_ms for d in decisions] == DUES
    for decision in decisions:
        reason = decision.reason or ""
        assert {"fire": "", "missed": "in time", "skipped": "paused"}[decision.action] in reason
        assert (decision.action == "fire") is (not reason)


def test_one_tick_fires_and_none_is_none() -> None:
    """The usual look finds one tick, or nothing."""
    assert actions([M]) == "f"
    assert actions([]) == ""


@pytest.mark.parametrize(("limit", "expected"), [(0, "mmmm"), (1, "mmmf"), (3, "mfff"), (9, "ffff")])
def test_catch_up_has_a_limit(limit: int, expected: str) -> None:
    """The latest of them fire, the older ones are missed."""
    assert actions(DUES, catch_up="all", catch_up_limit=limit) == expected


def test_without_a_word_a_hundred_are_caught_up() -> None:
    """The contract's default."""
    dues = [n * M for n in range(limits.CATCH_UP_LIMIT_DEFAULT + 1)]
    assert actions(dues, catch_up="all") == "m" + "f" * 100


@pytest.mark.parametrize(
    ("left", "expected"), [(-1, "ssss"), (0, "ssss"), (2, "ffss"), (4, "ffff"), (None, "ffff")]
)
def test_max_runs_ends_a_schedule(left: int | None, expected: str) -> None:
    """The oldest fire as long as runs are left; then ticks are skipped and say so."""
    decisions = decide_ticks(DUES, catch_up="all", runs_left=left)
    assert "".join(d.action[0] for d in decisions) == expected
    assert {d.reason for d in decisions if d.action == "skipped"} <= {"max_runs is reached"}


@given(
    st.lists(st.integers(0, 10**6), unique=True).map(sorted),
    st.lists(st.tuples(st.integers(0, 10**6), st.none() | st.integers(0, 10**6)), max_size=3),
    st.sampled_from(["none", "one", "all"]),
    st.none() | st.integers(0, 20),
)
def test_every_tick_has_one_row(
    dues: list[int], pauses: list[tuple[int, int | None]], catch_up: CatchUp, left: int | None
) -> None:
    """In order, one each; never more fire than may; and all that does not fire says why."""
    decisions = decide_ticks(dues, pauses=pauses, catch_up=catch_up, catch_up_limit=10, runs_left=left)
    assert [d.due_ms for d in decisions] == dues
    fired = [d for d in decisions if d.action == "fire"]
    assert len(fired) <= min(10 if catch_up == "all" else 1, len(dues) if left is None else left)
    assert all((d.reason is None) is (d.action == "fire") for d in decisions)


def test_years_of_downtime_are_a_bounded_number_of_rows() -> None:
    """A schedule of each minute that nobody looked at for 30 years: a hundred rows and one for all others."""
    now = 30 * 365 * DAY
    dues, older = pending_ticks(parse("* * * * *"), "Europe/Berlin", 0, now)
    assert dues == [now - n * M for n in range(TICK_ROWS_MAX - 1, -1, -1)]
    assert older == Older(TICKS_COUNTED_MAX, M, now - TICK_ROWS_MAX * M, exact=False)
    decisions = decide_ticks(dues, older=older)
    assert len(decisions) == TICK_ROWS_MAX + 1
    assert decisions[0].due_ms == now - TICK_ROWS_MAX * M
    assert (decisions[0].reason or "").startswith(f"more than {TICKS_COUNTED_MAX} ticks")
    assert [d.action for d in decisions[1:]] == ["missed"] * (TICK_ROWS_MAX - 1) + ["fire"]


@pytest.mark.parametrize(("extra", "rows"), [(0, 7), (1, 8), (50, 8)])
def test_the_older_ones_are_counted(extra: int, rows: int) -> None:
    """Up to the limit no summary; above it, one that counts exactly and names the range."""
    dues, older = pending_ticks(parse("* * * * *"), "UTC", 0, (7 + extra) * M, rows=7)
    assert len(dues) == 7
    assert older == (Older(extra, M, extra * M) if extra else None)
    assert len(decide_ticks(dues, older=older)) == rows


@pytest.mark.parametrize(
    ("pauses", "action", "why"),
    [
        ([], "missed", "in time"),
        ([(0, 10 * M)], "skipped", "was paused"),
        ([(0, 5 * M)], "missed", "or it was paused"),
    ],
)
def test_one_row_for_many_says_why(pauses: list[tuple[int, int | None]], action: str, why: str) -> None:
    """It is skipped only when one pause held all of them."""
    row = decide_ticks([11 * M], older=Older(9, M, 9 * M), pauses=pauses)[0]
    assert (row.due_ms, row.action, row.older) == (9 * M, action, Older(9, M, 9 * M))
    assert why in (row.reason or "")
    assert (row.reason or "").startswith("9 ticks")


@pytest.mark.parametrize(
    ("policy", "running", "waiting", "expected"),
    [
        ("skip", 0, 0, "begin"), ("skip", 1, 0, "skip"), ("skip", 0, 1, "skip"),
        ("buffer_one", 0, 0, "begin"), ("buffer_one", 1, 0, "wait"), ("buffer_one", 1, 1, "skip"),
        ("allow", 0, 0, "begin"), ("allow", 5, 0, "begin"),
        ("allow", limits.RUNS_OPEN_MAX - 1, 0, "begin"), ("allow", limits.RUNS_OPEN_MAX, 0, "skip"),
    ],
)  # fmt: skip
def test_overlap(policy: str, running: int, waiting: int, expected: str) -> None:
    """What a tick does while another run goes on; even `allow` has a bound."""
    action, why = overlap_decision(policy, running=running, waiting=waiting)  # type: ignore[arg-type]
    assert action == expected
    assert (why is not None) is (action == "skip")


def test_jitter_is_the_same_everywhere_and_spread() -> None:
    """It depends on schedule and due time only, stays within its limit and spreads."""
    draws = [jitter_ms("c1", due, 60) for due in range(0, 1_000 * M, M)]
    assert draws == [jitter_ms("c1", due, 60) for due in range(0, 1_000 * M, M)]
    assert all(0 <= draw < 60_000 for draw in draws)
    assert [sum(draw // 6_000 == tenth for draw in draws) > 60 for tenth in range(10)] == [True] * 10
    assert jitter_ms("c1", M, 60) != jitter_ms("c2", M, 60)
    assert jitter_ms("c1", M, 0) == 0


@pytest.mark.parametrize(("status", "event"), list(itertools.product(RunStatus, RunEvent)))
def test_the_table_of_runs(status: RunStatus, event: RunEvent) -> None:
    """Each (status, event) leads where the table says or is a conflict that names the run; ends stay."""
    to = RUN_TRANSITIONS.get((status, event))
    if to is not None:
        assert status in (RunStatus.WAITING, RunStatus.RUNNING)
        assert next_status("r1", status, event) is to
        return
    with pytest.raises(Conflict, match=f"run r1 is {status}; it cannot be told to {event}"):
        next_status("r1", status, event)


def test_every_status_is_reached() -> None:
    """Each status is a first one or the end of a transition."""
    assert {*FIRST_STATUS.values(), *RUN_TRANSITIONS.values()} == set(RunStatus)
