"""Redrive plans as an operator meets them: dry run, members, the loop that moves them, estimates."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

from redrive.contract import shapes
from redrive.domain import limits
from redrive.domain.errors import InvalidRequest, PlanNotFound, QueueNotFound
from redrive.domain.plans import members_sha256
from redrive.service import Service
from redrive.storage.memory import MemoryEngine
from tests.database import wait_for
from tests.service.test_redrive import dead

SECONDS = 20.0


def create(service: Service, **fields: Any) -> Any:
    """A plan over the dead letters of ``jobs``."""
    select = shapes.Selection(**fields.pop("select", {}))
    return service.call(
        "redrive.plan.create", shapes.PlanCreate(queue="jobs", select=select, reason="fixed", **fields)
    )


def change(service: Service, verb: str, plan_id: str, reason: str | None = None) -> Any:
    """Start, pause, resume or abort."""
    return service.call(f"redrive.plan.{verb}", shapes.PlanChange(plan_id=plan_id, reason=reason))


def plan_of(service: Service, plan_id: str) -> Any:
    """The plan as it is shown."""
    return service.call("redrive.plan.get", shapes.PlanGet(plan_id=plan_id))


def ended(service: Service, plan_id: str) -> Any:
    """The plan when it does not run any more."""
    wait_for(
        lambda: plan_of(service, plan_id).state not in ("freezing", "running"), SECONDS, "the plan's end"
    )
    return plan_of(service, plan_id)


def consume(service: Service, count: int = 100, wait: int = 5) -> list[Any]:
    """What there is of ``jobs``."""
    asked = shapes.Consume(queue="jobs", max_messages=count, wait_seconds=wait)
    return list(service.call("queue.consume", asked).messages)


def ack(service: Service, message: Any) -> None:
    """Done."""
    asked = shapes.Ack(queue="jobs", message_id=message.message_id, receipt_handle=message.receipt_handle)
    service.call("queue.ack", asked)


def letters(service: Service) -> list[Any]:
    """The dead letters of ``jobs``, whole."""
    return list(service.call("queue.dlq.list", shapes.DeadLetterList(queue="jobs", limit=1_000)).items)


def counts(service: Service) -> tuple[int, ...]:
    """What stands in the dead-letter queue, by state."""
    stats = service.call("queue.stats", shapes.QueueGet(queue="jobs.dlq"))
    return stats.ready, stats.delayed, stats.leased, stats.waiting, stats.dead


def fast(**more: Any) -> shapes.EnvelopeFields:
    """An envelope that holds nobody back."""
    return shapes.EnvelopeFields(rate_per_second=1_000.0, max_in_flight=1_000, **more)


def test_a_dry_run_only_reads(service: Service) -> None:
    """The same report twice; order, counts, times and leases are as before; nothing is stored."""
    ids = dead(service, 7)
    held = service.call("queue.consume", shapes.Consume(queue="jobs.dlq", max_messages=1)).messages
    before = letters(service), counts(service)
    first = create(service, dry_run=True)
    assert create(service, dry_run=True) == first
    assert (first.state, first.plan_id, first.members) == ("dry_run", None, 7)
    assert first.members_sha256 == members_sha256(sorted(ids))
    assert [group.count for group in first.groups] == [7]
    assert service.call("redrive.plan.list", shapes.PlanList()).items == []
    assert (letters(service), counts(service)) == before
    assert held[0].message_id == ids[0]


def test_a_plan_is_a_draft_until_it_is_started(service: Service) -> None:
    """What it would take is what its dry run said; started, it sends every member, and ends with them."""
    ids = dead(service, 20)
    told, oldest_first = create(service, dry_run=True), [letter.message_id for letter in letters(service)]
    plan = create(service, envelope=fast())
    assert (plan.state, plan.members, plan.members_sha256) == ("draft", 20, told.members_sha256)
    assert len(letters(service)) == 20
    assert change(service, "start", plan.plan_id).state == "running"
    assert change(service, "start", plan.plan_id).state == "running"  # a repeated start is no news
    got: list[Any] = []
    while len(got) < len(ids):
        more = consume(service)
        assert more, f"only {len(got)} of {len(ids)} came"
        got += more
    for message in got:
        ack(service, message)
    assert sorted(message.message_id for message in got) == sorted(ids)
    done = ended(service, plan.plan_id)
    assert (done.state, done.counts) == ("completed", {"completed": 20})
    page = service.call("redrive.plan.items", shapes.PlanItems(plan_id=plan.plan_id, limit=15))
    rest = service.call("redrive.plan.items", shapes.PlanItems(plan_id=plan.plan_id, cursor=page.next_cursor))
    assert [item.message_id for item in [*page.items, *rest.items]] == oldest_first
    assert rest.next_cursor is None


def test_the_defaults_are_the_contract(service: Service) -> None:
    """Of the envelope and of the rules."""
    dead(service, 1)
    plan = create(service, dry_run=True)
    assert plan.envelope.rate_per_second == limits.PLAN_RATE_DEFAULT
    assert plan.envelope.max_in_flight == limits.PLAN_IN_FLIGHT_DEFAULT
    assert plan.abort.failure_ratio == limits.PLAN_FAILURE_RATIO_DEFAULT
    assert plan.abort.window_seconds == limits.PLAN_WINDOW_SECONDS_DEFAULT
    assert plan.abort.same_fingerprint is True


def test_operators_with_the_same_selection_send_each_entry_once(service: Service) -> None:
    """Eight plans at the same moment, started at the same moment: every dead letter comes back once."""
    ids = dead(service, 100)
    gate = threading.Barrier(8)

    def operate(_: int) -> str:
        gate.wait(SECONDS)
        plan_id: str = create(service, envelope=fast()).plan_id
        gate.wait(SECONDS)  # every plan holds all: none was made when others had sent
        change(service, "start", plan_id)
        return plan_id

    with ThreadPoolExecutor(8) as pool:
        plans = list(pool.map(operate, range(8)))
    seen: list[str] = []
    while len(seen) < len(ids):
        more = consume(service)
        assert more, f"only {len(seen)} of {len(ids)} came"
        for message in more:
            assert message.redrive.count == 1
            seen.append(message.message_id)
            ack(service, message)
    assert sorted(seen) == sorted(ids)
    shown = [ended(service, plan_id) for plan_id in plans]
    assert {plan.state for plan in shown} == {"completed"}
    assert sum(plan.counts.get("completed", 0) for plan in shown) == 100
    assert sum(plan.counts.get("moved_elsewhere", 0) + plan.counts.get("gone", 0) for plan in shown) == 700
    assert consume(service, wait=0) == []


def test_the_same_cause_pauses_the_plan_and_consumption_goes_on(service: Service) -> None:
    """With the rule and its numbers; what was not selected, or not sent, has not moved."""
    ids = dead(service, 30)
    chosen, others = ids[:20], ids[20:]
    plan = create(service, select={"message_ids": chosen})
    change(service, "start", plan.plan_id)
    [message, *more] = consume(service)
    asked = shapes.Nack(message_id=message.message_id, receipt_handle=message.receipt_handle, permanent=True)
    service.call("queue.nack", asked)
    wait_for(lambda: plan_of(service, plan.plan_id).state == "paused", SECONDS, "the pause")
    paused = plan_of(service, plan.plan_id)
    assert (paused.paused_by.rule, paused.paused_by.seen) == ("same_fingerprint", 1)
    isolated = {letter.message_id for letter in letters(service)}
    assert set(others) <= isolated
    assert paused.counts["pending"] >= 20 - 1 - len(more) - 10  # a second's rate at most was on its way
    service.call("queue.publish", shapes.Publish(queue="jobs", payload=msgspec.Raw(b"1")))
    assert consume(service)
    with pytest.raises(InvalidRequest, match="reason is required"):
        change(service, "resume", plan.plan_id)
    assert change(service, "resume", plan.plan_id, "the record is corrected").state == "running"
    assert change(service, "abort", plan.plan_id, "enough").state == "aborted"


def test_a_restarted_service_goes_on() -> None:
    """Another service over the same store finds the plan and moves it to its end."""
    engine = MemoryEngine()
    first = Service(engine)
    first.start()
    dead(first, 12)
    plan = create(first, envelope=shapes.EnvelopeFields(rate_per_second=20.0))
    change(first, "start", plan.plan_id)
    wait_for(lambda: plan_of(first, plan.plan_id).counts.get("sent", 0) >= 2, SECONDS, "the first members")
    first._redriving.stop()  # the node moves no plan any more
    second = Service(engine)
    second.start()
    try:
        wait_for(lambda: plan_of(second, plan.plan_id).counts == {"sent": 12}, SECONDS, "all members")
        assert len({message.message_id for message in consume(second)}) == 12
    finally:
        second.close()


def test_what_cannot_be_planned_is_refused(service: Service) -> None:
    """An unknown queue, an edit of nobody, no reason, an unknown plan."""
    with pytest.raises(QueueNotFound):
        create(service)
    dead(service, 1)
    with pytest.raises(InvalidRequest, match=r"select\.message_ids"):
        create(service, edit=msgspec.Raw(b'{"a":1}'))
    asked = shapes.PlanCreate(queue="jobs", select=shapes.Selection(), reason="  ")
    with pytest.raises(InvalidRequest, match="reason"):
        service.call("redrive.plan.create", asked)
    with pytest.raises(PlanNotFound, match="nobody"):
        change(service, "start", "nobody")


def test_the_estimate_tells_serial_time_and_spare_capacity(service: Service) -> None:
    """From what was measured; without any measurement it says so with nulls."""
    dead(service, 3)
    blank = service.call("redrive.estimate", shapes.EstimateGet(queue="jobs", select=shapes.Selection()))
    assert (blank.count, blank.serial_seconds, blank.spare_per_second) == (3, None, None)
    assert (blank.bound, blank.seconds_at_envelope) == ("rate_per_second", 0.3)
