"""Attempts, the gaps between them, and the fence of outcomes that are not final."""

from __future__ import annotations

import hashlib

import pytest

from redrive.domain.fingerprint import ErrorInfo
from redrive.ledger import Job, Ledger
from tests.ledger.stores import Delivery, Store

KEY = "job:1"


def state(ledger: Ledger) -> tuple[str, int, int]:
    """(state, generation, delivery) of the job."""
    found = ledger.job(KEY)
    assert found is not None
    return found.state, found.generation, found.delivery


def test_a_failure_is_recorded_with_its_error(store: Store, ledger: Ledger) -> None:
    """Type, message, stack and fingerprint; the job stays accepted."""
    error = ErrorInfo("TimeoutError", "after 30 s", "…")
    ledger.failed(Delivery(KEY, attempt=1), "retry", error)
    [attempt] = ledger.attempts(KEY)
    assert (attempt.outcome, attempt.worker, attempt.attempt) == ("retry", "worker-a", 1)
    assert (attempt.error_type, attempt.error_message) == ("TimeoutError", "after 30 s")
    assert attempt.fingerprint == error.fingerprint
    assert state(ledger) == ("accepted", 0, 1)


@pytest.mark.parametrize(
    "text", ["a\x00b", "lone \ud800 surrogate", "x" * 3_000_000, "é😀" * 20_000, "'; -- %s :x \\", ""]
)
def test_storing_an_error_never_fails(store: Store, ledger: Ledger, text: str) -> None:
    """NUL, lone surrogates and megabytes are cleaned and cut, in every text that a worker hands over."""
    delivery = Delivery(KEY, consumer_id=text, queue=text[:100], message_id=text)
    ledger.failed(delivery, text, ErrorInfo(text, text, text), isolated=True)
    [attempt] = ledger.attempts(KEY)
    assert len((attempt.error_message or "").encode()) <= 8192
    assert state(ledger)[0] == "isolated"


def test_an_older_delivery_does_not_replace_a_newer_ones_outcome(store: Store, ledger: Ledger) -> None:
    """Delivery 2 isolated it; the late word of delivery 1 is recorded as an attempt only."""
    ledger.failed(Delivery(KEY, 2), "reject", None, isolated=True)
    ledger.failed(Delivery(KEY, 1), "retry", None)
    assert state(ledger) == ("isolated", 0, 2)
    ledger.failed(Delivery(KEY, 2), "retry", None)  # within a delivery only forward
    assert state(ledger) == ("isolated", 0, 2)


def test_a_later_delivery_takes_isolated_back(store: Store, ledger: Ledger) -> None:
    """It was redriven; a later generation counts as later whatever its delivery."""
    ledger.failed(Delivery(KEY, 6), "reject", None, isolated=True)
    ledger.failed(Delivery(KEY, 7), "retry", None)
    assert state(ledger) == ("accepted", 0, 7)
    ledger.failed(Delivery(KEY, 1, message_id="m-2", generation=1), "reject", None, isolated=True)
    ledger.failed(Delivery(KEY, 9), "retry", None)
    assert state(ledger) == ("isolated", 1, 1)


def test_a_completion_is_final_and_an_older_delivery_may_win_it(store: Store, ledger: Ledger) -> None:
    """Delivery 1 completes while 2 was noted as isolated; nothing takes it back, and 3 is a duplicate."""
    ledger.failed(Delivery(KEY, 2), "reject", None, isolated=True)
    assert ledger.execute(Delivery(KEY, 1), store.effect(KEY))
    ledger.failed(Delivery(KEY, 3), "reject", None, isolated=True)
    assert state(ledger)[0] == "completed"
    assert not ledger.execute(Delivery(KEY, 4), store.effect(KEY))
    assert ledger.cancel([KEY]) == 0
    assert ledger.redriven([KEY]) == 0
    assert ledger.republish([KEY]) == 0
    assert store.effects(KEY) == 1


def test_redriven_takes_isolated_back_to_accepted(store: Store, ledger: Ledger) -> None:
    """And nothing else."""
    ledger.failed(Delivery(KEY, 1), "reject", None, isolated=True)
    assert ledger.redriven([KEY, "unknown"]) == 1
    assert ledger.redriven([KEY]) == 0
    assert state(ledger)[0] == "accepted"


def test_gaps_are_named(store: Store, ledger: Ledger) -> None:
    """The delivery before a lost one is `lost`; others that nobody recorded are `unrecorded`; records
    stand."""
    ledger.failed(Delivery(KEY, 2, previous="nack"), "retry", None)
    ledger.failed(Delivery(KEY, 5, previous="lost"), "retry", None)
    ledger.failed(Delivery(KEY, 6, previous="lost"), "retry", None)
    assert ledger.execute(Delivery(KEY, 8, previous="released"), lambda _: None)
    assert [(a.delivery, a.outcome) for a in ledger.attempts(KEY)] == [
        (1, "unrecorded"), (2, "retry"), (3, "unrecorded"), (4, "lost"),
        (5, "retry"), (6, "retry"), (7, "unrecorded"), (8, "done"),
    ]  # fmt: skip


def test_a_lost_delivery_that_was_only_slow_shows_both_records(store: Store, ledger: Ledger) -> None:
    """What the queue said of it, and its own word; neither replaces the other."""
    assert ledger.execute(Delivery(KEY, 2, previous="lost"), store.effect(KEY))
    assert not ledger.execute(Delivery(KEY, 1), store.effect(KEY))
    ledger.failed(Delivery(KEY, 1), "retry", None)
    assert [(a.delivery, a.outcome, a.derived) for a in ledger.attempts(KEY)] == [
        (1, "lost", True), (1, "duplicate", False), (2, "done", False),
    ]  # fmt: skip


def test_gaps_are_bounded(store: Store, ledger: Ledger) -> None:
    """A delivery number far ahead names the last thousand only."""
    ledger.failed(Delivery(KEY, 5_000, previous="lost"), "retry", None)
    found = ledger.attempts(KEY)
    assert (len(found), found[0].delivery, found[-2].outcome) == (1_001, 4_000, "lost")


def test_status_counts_by_state(store: Store, ledger: Ledger) -> None:
    """Five states, what waits for a relay, the oldest planned job's age."""
    assert ledger.status().planned == 0
    assert ledger.status().oldest_planned_seconds == 0
    db = store.connect(autocommit=True)
    Ledger().publish(db, "q", [Job("a"), Job("b"), Job("c")])
    ledger.execute(Delivery("b"), lambda _: None)
    ledger.failed(Delivery("c"), "reject", None, isolated=True)
    status = ledger.status()
    assert (status.planned, status.completed, status.isolated, status.waiting_for_relay) == (1, 1, 1, 1)
    assert 0 <= status.oldest_planned_seconds < 60


def test_which_jobs_are_completed(store: Store, ledger: Ledger) -> None:
    """Only those, with when and the hash of the result, however their keys are written; no key, no answer."""
    ledger.execute(Delivery("done:1"), store.effect("done:1", {"corrected": 3}))
    ledger.execute(Delivery("Done:1"), store.effect("Done:1"))
    ledger.execute(Delivery("schön:'%s"), store.effect("schön", "é"))
    ledger.failed(Delivery("failed:1"), "reject", None, isolated=True)
    keys = ["done:1", "Done:1", "schön:'%s", "failed:1", "DONE:1", "nobody", "done:1"]
    found = ledger.completed(iter(keys))
    assert sorted(found) == sorted(["done:1", "Done:1", "schön:'%s"])
    assert found["done:1"].result_sha256 == hashlib.sha256(b'{"corrected":3}').hexdigest()
    assert found["Done:1"].result_sha256 is None
    job = ledger.job("done:1")
    assert job is not None
    assert found["done:1"].completed_at_ms == job.completed_at_ms
    assert ledger.completed([]) == {}
    many = [f"many:{n}" for n in range(2_001)]
    assert sorted(ledger.completed([*many, "done:1"])) == ["done:1"]
