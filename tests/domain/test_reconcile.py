"""The rule of reconciliation: every state of a job against everything that a queue can hold of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from redrive.domain import reconcile
from redrive.domain.reconcile import Cause, Fate, Held, Known, judge

NOW_MS, SETTLE_MS = 1_000_000, 60_000
KNOWN = Known("k", "q", "accepted", 0, "m", False, True, None, 500_000)
STATES = ("ready", "delayed", "leased", "waiting", "dead", "damaged")
LONG_AGO_MS, JUST_NOW_MS = NOW_MS - SETTLE_MS, NOW_MS - SETTLE_MS + 1


def held(*states: str) -> list[Held]:
    """Messages of the job, one of each state."""
    return [Held("k", f"m-{state}", "q", state) for state in states]


def causes(known: Known | None, *states: str, fate: Fate | None = None) -> list[str]:
    """The causes that are found."""
    return [verdict.cause.value for verdict in judge(known, held(*states), NOW_MS, SETTLE_MS, fate)]


def job(state: str, **fields: Any) -> Known:
    """A job of the ledger."""
    return msgspec.structs.replace(KNOWN, state=state, **fields)


@pytest.mark.parametrize("state", STATES)
def test_what_the_queue_holds_explains_an_accepted_job(state: str) -> None:
    """Whatever its state there; as a dead letter it is explained, and the ledger behind."""
    assert causes(job("accepted"), state) == (["stale"] if state == "dead" else [])


@pytest.mark.parametrize(
    ("fate", "cause"),
    [
        (Fate(end="acked"), "early_ack"),
        (Fate(end="expired"), "expired"),
        (Fate(end="purged"), "purged"),
        (Fate(end="cancelled"), "withdrawn"),
        (Fate(end="already_completed"), "resolved"),
        (Fate(end="something new"), "unknown_end"),
        (Fate(), "unknown_end"),
        (None, "unknown_end"),
        (Fate(sure=False), "not_known"),
    ],
)
def test_an_accepted_job_that_nobody_holds_is_lost_by_its_messages_end(fate: Fate | None, cause: str) -> None:
    """Each end has its cause; what cannot be known is never called lost."""
    assert causes(job("accepted"), fate=fate) == [cause]


@pytest.mark.parametrize("state", ["planned", "accepted", "isolated"])
def test_a_job_that_waits_for_a_relay_is_explained(state: str) -> None:
    """It is in the outbox, or a repair is under way."""
    assert causes(job(state, waits=True)) == []


def test_a_planned_job_is_explained() -> None:
    """With and without a message: the relay may have died after its publish."""
    assert causes(job("planned")) == causes(job("planned"), "ready") == []


@pytest.mark.parametrize("state", STATES)
def test_what_the_queue_holds_overrides_a_stale_isolated(state: str) -> None:
    """An isolated job that is live again was redriven; as a dead letter all is as it should be."""
    assert causes(job("isolated"), state) == ([] if state in ("dead", "damaged") else ["stale"])


def test_an_isolated_job_without_its_dead_letter_is_noticed_but_explained() -> None:
    """By the rule it is isolated; that nothing is left to redrive is worth a notice."""
    assert causes(job("isolated"), fate=Fate(end="expired")) == ["isolated_gone"]
    assert Cause.ISOLATED_GONE not in reconcile.UNEXPLAINED


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("final", ["completed", "cancelled"])
def test_a_final_job_is_held_by_nobody(final: str, state: str) -> None:
    """Except under a lease for a moment: its ack is on its way."""
    times = {"updated_ms": LONG_AGO_MS} | ({"completed_ms": LONG_AGO_MS} if final == "completed" else {})
    assert causes(job(final, **times), state) == ["still_queued"]
    times = dict.fromkeys(times, JUST_NOW_MS)
    assert causes(job(final, **times), state) == ([] if state == "leased" else ["still_queued"])
    assert causes(job(final, **times)) == []


def test_every_message_of_a_final_job_is_named() -> None:
    """Each has to be taken out by itself."""
    assert causes(job("completed", completed_ms=0), "ready", "dead") == ["still_queued"] * 2


def test_a_message_without_a_job_has_an_unknown_producer() -> None:
    """Named once a job key."""
    assert causes(None, "ready", "dead") == ["unknown_producer"]
    assert causes(None) == []


def test_a_live_message_beside_a_dead_one_counts() -> None:
    """The job will be tried again."""
    assert causes(job("accepted"), "dead", "ready") == []
    assert causes(job("isolated"), "dead", "ready") == ["stale"]


def test_every_cause_is_explained_to_people() -> None:
    """What it means and what to do; what loses a job can be requeued."""
    for cause in Cause:
        assert reconcile.MEANING[cause]
        assert reconcile.REMEDY[cause]
        repair = reconcile.REPAIR_OF.get(cause)
        assert repair is None or f"--repair {repair} " in reconcile.REMEDY[cause]
    assert {reconcile.REPAIR_OF[cause] for cause in reconcile.LOST} == {"requeue"}
    assert set(reconcile.REPAIR_OF.values()) == set(reconcile.REPAIRS)


@pytest.mark.parametrize(("updated_ms", "found"), [(LONG_AGO_MS, ["stale"]), (JUST_NOW_MS, [])])
def test_a_state_that_just_changed_is_not_stale_yet(updated_ms: int, found: list[str]) -> None:
    """The ledger is written a moment before the nack, or after it."""
    assert causes(job("isolated", updated_ms=updated_ms), "leased") == found
    assert causes(job("accepted", updated_ms=updated_ms), "dead") == found
