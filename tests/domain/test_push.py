"""What an endpoint's answers mean for messages and for the endpoint."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.domain import push
from redrive.domain.push import PushState, Settle, Standing, judge

NOW_MS = 1_765_000_000_000  # 2025-12-06 05:46:40 UTC
FAILED = push.unanswered("no answer")


@pytest.mark.parametrize("status", [100, 199, 200, 204, 299, 300, 302, 400, 404, 410, 429, 500, 503])
def test_a_status_settles(status: int) -> None:
    """2xx acks, 410 gives the message back unspent, all else is a nack that names the status."""
    verdict = judge(status, None, NOW_MS)
    expected = Settle.ACK if 200 <= status < 300 else Settle.RELEASE if status == 410 else Settle.NACK
    assert (verdict.settle, verdict.wait_ms) == (expected, None)
    assert verdict.reason is None or str(status) in verdict.reason


@pytest.mark.parametrize(
    ("header", "wait_ms"),
    [
        ("0", 1_000),
        ("7", 7_000),
        ("3600", 3_600_000),
        ("3601", 3_600_000),
        ("9" * 5_000, 3_600_000),
        ("Sat, 06 Dec 2025 05:47:00 GMT", 20_000),
        ("Sat, 06 Dec 2025 05:00:00 GMT", 1_000),
        ("Sat, 06 Dec 2125 05:00:00 GMT", 3_600_000),
        ("soon", None),
        ("-1", None),
        ("\u0663", None),
        ("", None),
    ],
    ids=lambda value: str(value)[:12].encode("ascii", "backslashreplace").decode(),
)
def test_retry_after(header: str, wait_ms: int | None) -> None:
    """Seconds or a date, within bounds; what is neither leaves the message to the queue's backoff."""
    assert judge(429, header, NOW_MS).wait_ms == judge(503, header, NOW_MS).wait_ms == wait_ms
    assert judge(500, header, NOW_MS).wait_ms is None


@given(st.text())
def test_any_header_is_read(header: str) -> None:
    """No text of an endpoint is an error of ours."""
    wait_ms = judge(429, header, NOW_MS).wait_ms
    assert wait_ms is None or push.RETRY_AFTER_MS_MIN <= wait_ms <= push.RETRY_AFTER_MS_MAX


def failing(times: int, every_ms: int) -> Standing:
    standing = Standing()
    for number in range(times):
        standing = standing.after(FAILED, NOW_MS + number * every_ms)
    return standing


def test_failures_in_a_row_are_probed_one_by_one() -> None:
    """Two change nothing; from the third on one message after a hold that doubles up to five minutes."""
    assert failing(2, 0).room(8, 3, NOW_MS) == 5
    third = failing(3, 0)
    assert [third.room(8, 0, NOW_MS + after) for after in (0, 999, 1_000)] == [0, 0, 1]
    assert third.room(8, 1, NOW_MS + 1_000) == 0
    assert failing(4, 0).held_until_ms == NOW_MS + 2_000
    assert failing(10_000, 0).held_until_ms == NOW_MS + push.HOLD_MS_MAX


def test_a_success_ends_it() -> None:
    """At once and wholly: a poison message among good ones holds nobody for long."""
    assert failing(9, 0).after(judge(200, None, NOW_MS), NOW_MS) == Standing()


def test_retry_after_holds_the_endpoint() -> None:
    """For all messages, and an answer that asks for less does not shorten it."""
    standing = Standing().after(judge(429, "60", NOW_MS), NOW_MS).after(judge(429, "5", NOW_MS), NOW_MS)
    assert [standing.room(1, 0, NOW_MS + after) for after in (59_999, 60_000)] == [0, 1]


@pytest.mark.parametrize(
    ("times", "every_ms", "state"),
    [
        (9, push.PAUSED_AFTER_MS, PushState.ACTIVE),
        (10, push.PAUSED_AFTER_MS // 9 - 1, PushState.ACTIVE),
        (10, push.PAUSED_AFTER_MS // 9, PushState.PAUSED),
    ],
    ids=["too few", "too short", "both"],
)
def test_long_failing_pauses(times: int, every_ms: int, state: PushState) -> None:
    """Only often and for long: neither a burst nor a rare message's failures pause."""
    standing = failing(times, every_ms)
    assert standing.state is state
    assert standing.reason == (
        "10 failures in a row over 3600 s, the last: no answer" if state is PushState.PAUSED else None
    )


@pytest.mark.parametrize("late", [200, 500, 410])
def test_gone_disables_for_good(late: int) -> None:
    """What was under way then changes nothing, also when it succeeds."""
    gone = Standing().after(judge(410, None, NOW_MS), NOW_MS)
    assert (gone.state, gone.reason) == (PushState.DISABLED, "the endpoint answered 410")
    assert gone.room(8, 0, NOW_MS) == 0
    assert gone.after(judge(late, None, NOW_MS), NOW_MS) is gone
