"""Redrive plans: frozen, paced, stopped by their rules, edited, resolved; each member goes once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from redrive.domain import limits
from redrive.domain.abort import AbortRules
from redrive.domain.envelope import Envelope
from redrive.domain.errors import Conflict, InvalidRequest, PlanNotFound
from redrive.domain.fingerprint import ErrorInfo, error_info
from redrive.domain.plans import PlanEvent, members_sha256
from redrive.storage import commands as c
from redrive.storage.conformance.asking import bury, dead, redrive, refused
from redrive.storage.conformance.rig import Rig
from redrive.storage.execute.plans import SLICE
from redrive.storage.plan_commands import Advanced, AdvancePlan, ChangePlan, ResolvePlan, SealPlan
from redrive.storage.plans import Plan, PlanItem
from redrive.storage.values import Claimed, DeadFilter

JOBS = DeadFilter(queue="jobs")
WRONG, OTHER = error_info("bad input"), error_info("the provider is away")


def made(rig: Rig, **fields: Any) -> Plan:
    """A plan over the dead letters of ``jobs``; it runs at once unless told otherwise."""
    plan: Plan = rig.do(redrive(JOBS, fields.pop("count", 100), **fields)).plan
    return plan


def advance(rig: Rig, plan: Plan, seconds: float = 0.0, node: str = "a") -> Advanced:
    """One slice after so long, asked for by a node."""
    rig.pass_seconds(seconds)
    done: Advanced = rig.do(AdvancePlan(plan.plan_id, node))
    return done


def sent_at_once(rig: Rig, **fields: Any) -> Plan:
    """A plan whose envelope holds nobody back, with all members sent."""
    plan = made(rig, **fields)
    advance(rig, plan, 0.1)
    assert "pending" not in outcomes(rig, plan)
    return plan


def change(rig: Rig, plan: Plan, event: PlanEvent, reason: str | None = None) -> Plan:
    """What an operator asks."""
    changed: Plan = rig.do(ChangePlan(plan.plan_id, event, reason, "operator"))
    return changed


def stored(rig: Rig, plan: Plan) -> Plan:
    """The plan as it is now."""
    found = rig.engine.read(lambda reader: reader.plan(plan.plan_id))
    assert found is not None
    return found


def items(rig: Rig, plan: Plan) -> list[PlanItem]:
    """All members."""
    return rig.engine.read(lambda reader: reader.plan_items(stored(rig, plan).number, None, -1, 10_000))


def outcomes(rig: Rig, plan: Plan) -> dict[str, int]:
    """Members by outcome; the reader's counts must say the same."""
    counted = Counter(item.outcome for item in items(rig, plan))
    assert rig.engine.read(lambda reader: reader.plan_counts(stored(rig, plan).number)) == counted
    return dict(counted)


def reject(rig: Rig, message: Claimed, error: ErrorInfo | None = WRONG) -> None:
    """A permanent failure."""
    rig.do(c.Reject(message.message_id, message.handle, error=error))


class PlanScenarios:
    """Redrive plans."""

    def test_members_are_frozen_slice_by_slice(self, rig: Rig) -> None:
        """What dies while the plan is written down, or after, is no member; the hash is over the ids."""
        ids = bury(rig, SLICE + 3)
        plan = made(rig, count=limits.PLAN_MEMBERS_MAX, start=False)
        assert (plan.state, plan.members) == ("freezing", SLICE)
        listed = advance(rig, plan)
        assert (listed.state, listed.listed) == ("freezing", True)
        late = bury(rig, 1)
        sealed = rig.do(SealPlan(plan.plan_id, members_sha256(sorted(ids))))
        assert (sealed.state, sealed.members, sealed.members_sha256) == (
            "draft", SLICE + 3, members_sha256(sorted(ids)),
        )  # fmt: skip
        assert [item.message_id for item in items(rig, plan)] == ids
        number = stored(rig, plan).number
        pages = rig.engine.read(lambda reader: reader.member_ids(number, "", 10_000))
        assert pages == sorted(ids)
        assert len(dead(rig)) == 100  # a page: nothing has moved
        assert late[0] not in pages

    def test_a_start_during_freezing_is_remembered(self, rig: Rig) -> None:
        """It runs when it is frozen; an abort during freezing ends it."""
        ids = bury(rig, SLICE + 1)
        plan = made(rig, count=limits.PLAN_MEMBERS_MAX, start=False)
        assert change(rig, plan, PlanEvent.START).state == "freezing"
        advance(rig, plan)
        assert rig.do(SealPlan(plan.plan_id, members_sha256(sorted(ids)))).state == "running"
        other = made(rig, count=limits.PLAN_MEMBERS_MAX, start=False)
        assert change(rig, other, PlanEvent.ABORT).state == "aborted"
        assert advance(rig, other).state == "aborted"

    def test_the_envelope_is_kept(self, rig: Rig) -> None:
        """Not faster than the rate, no burst above a tenth of a second's, not more at once than allowed."""
        bury(rig, 30)
        plan = made(rig, envelope=Envelope(20, 5))
        assert outcomes(rig, plan) == {"pending": 29, "sent": 1}  # the first token is there at once
        assert advance(rig, plan).sent == 0
        assert advance(rig, plan, 0.1).sent == 2
        assert advance(rig, plan, 3.0).sent == 2  # what was waiting is no more than a burst
        assert advance(rig, plan, 3.0).sent == 0  # five are on their way
        held = rig.lease(count=2)
        rig.ack(held[0])
        rig.nack(held[1], delay_ms=0)  # still unfinished
        assert advance(rig, plan, 3.0).sent == 1
        assert outcomes(rig, plan) == {"pending": 24, "sent": 5, "completed": 1}

    def test_it_ends_when_every_member_has_ended(self, rig: Rig) -> None:
        """Completed, dead again, gone: each has its outcome, and the plan is completed then, not before."""
        ids = bury(rig, 3)
        plan = sent_at_once(rig)
        held = {message.message_id: message for message in rig.lease()}
        rig.ack(held[ids[0]])
        reject(rig, held[ids[1]], OTHER)
        assert advance(rig, plan).state == "running"
        rig.nack(held[ids[2]], delay_ms=0)
        rig.do(c.Cancel(ids[2]))
        assert advance(rig, plan).state == "completed"
        assert [item.outcome for item in items(rig, plan)] == ["completed", "dead_again", "gone"]
        assert [letter.facts.message_id for letter in dead(rig)] == [ids[1]]
        assert stored(rig, plan).finished_ms == rig.clock.now_ms
        assert change(rig, plan, PlanEvent.START).state == "completed"
        refused(Conflict, change, rig, plan, PlanEvent.RESUME)

    def test_the_same_cause_stops_it_at_once(self, rig: Rig) -> None:
        """One member rejected with what it died of: nothing more is sent, what is left stays isolated."""
        ids = bury(rig, 10)
        plan = made(rig, envelope=Envelope(10, 10), abort=AbortRules())
        [message] = rig.lease()
        reject(rig, message)
        assert (advance(rig, plan, 3.0).state, advance(rig, plan, 3.0).sent) == ("paused", 0)
        paused = stored(rig, plan).paused_by
        assert paused is not None
        assert (paused.rule, paused.limit, paused.seen, paused.actor) == ("same_fingerprint", 0, 1, None)
        assert ids[0] in paused.reason
        assert outcomes(rig, plan) == {"dead_again": 1, "pending": 9}
        assert len(dead(rig)) == 10
        rig.publish()
        assert len(rig.lease()) == 1  # consumption goes on

    def test_another_cause_does_not_stop_it(self, rig: Rig) -> None:
        """The control: one failure of another kind, or the rule switched off."""
        bury(rig, 10)
        plan = made(rig, envelope=Envelope(10, 10), abort=AbortRules())
        [message] = rig.lease()
        reject(rig, message, OTHER)
        assert advance(rig, plan, 1.0).state == "running"
        careless = made(rig, envelope=Envelope(10, 10), abort=AbortRules(same_fingerprint=False))
        [message, *_] = rig.lease()
        reject(rig, message)
        assert advance(rig, careless, 1.0).state == "running"

    def test_too_many_failures_stop_it(self, rig: Rig) -> None:
        """A share of the verdicts within the window; a few are no share yet."""
        rig.create(max_retries=5)
        bury(rig, 20)
        plan = sent_at_once(rig, abort=AbortRules(same_fingerprint=False, failure_ratio=0.5))
        held = rig.lease(count=20)
        for message in held[:5]:
            rig.ack(message)
        for message in held[5:9]:
            rig.nack(message, delay_ms=60_000, error=OTHER)
        assert advance(rig, plan).state == "running"  # nine verdicts
        rig.nack(held[9], delay_ms=60_000, error=OTHER)
        assert advance(rig, plan).state == "paused"
        paused = stored(rig, plan).paused_by
        assert paused is not None
        assert (paused.rule, paused.limit, paused.seen) == ("failure_ratio", 0.5, 0.5)

    def test_after_a_rule_a_reason_is_needed(self, rig: Rig) -> None:
        """Resuming is a decision then; what was seen before the pause does not stop it again."""
        bury(rig, 10)
        plan = made(rig, envelope=Envelope(10, 10), abort=AbortRules())
        [message] = rig.lease()
        reject(rig, message)
        advance(rig, plan, 1.0)
        refusal = refused(InvalidRequest, change, rig, plan, PlanEvent.RESUME)
        assert "same_fingerprint" in refusal.message
        assert stored(rig, plan).state == "paused"
        assert change(rig, plan, PlanEvent.RESUME, "the record is corrected").state == "running"
        assert advance(rig, plan, 1.0).sent == 1
        assert change(rig, plan, PlanEvent.PAUSE, "lunch").state == "paused"
        by_hand = stored(rig, plan).paused_by
        assert by_hand is not None
        assert (by_hand.actor, by_hand.rule, by_hand.reason) == ("operator", None, "lunch")
        assert advance(rig, plan, 3.0).sent == 0
        assert change(rig, plan, PlanEvent.RESUME).state == "running"  # no rule: no reason is needed

    def test_two_plans_send_a_member_once(self, rig: Rig) -> None:
        """What the one has sent has moved for the other, also when it is dead once more."""
        ids = bury(rig, 4)
        slow = made(rig, envelope=Envelope(10, 100))
        assert outcomes(rig, sent_at_once(rig)) == {"sent": 3}
        held = rig.lease()
        assert sorted(message.message_id for message in held) == sorted(ids)
        for message in held:
            reject(rig, message, OTHER)
        assert advance(rig, slow, 3.0).state in ("running", "completed")
        assert advance(rig, slow, 3.0).state == "completed"
        assert outcomes(rig, slow) == {"dead_again": 1, "moved_elsewhere": 3}
        assert rig.lease() == []

    def test_one_node_moves_a_plan_until_it_is_silent(self, rig: Rig) -> None:
        """Another waits, and takes over after a moment: a crash forgets nothing."""
        bury(rig, 30)
        plan = made(rig, envelope=Envelope(10, 100))
        assert advance(rig, plan, 3.5, node="a").sent == 1
        waits = advance(rig, plan, 1.0, node="b")
        assert waits.sent == 0
        assert waits.wait_ms is not None
        assert 0 < waits.wait_ms <= 3_000
        assert advance(rig, plan, 3.0, node="b").sent == 1

    def test_an_edit_changes_the_payload_of_named_messages(self, rig: Rig) -> None:
        """A merge patch; the id stays, the body has its new checksum, the member tells the difference."""
        [message_id] = bury(rig, 1, body=b'{"amount":-5,"note":"x"}')
        select = DeadFilter(queue="jobs", message_ids=(message_id,))
        asked = redrive(select, 1, explicit=True, reason="typo", edit=b'{"amount":5,"note":null}')
        plan = rig.do(asked).plan
        [message] = rig.lease()
        assert (message.message_id, msgspec.json.decode(message.body)) == (message_id, {"amount": 5})
        [item] = items(rig, plan)
        assert item.detail is not None
        assert item.detail.startswith("edited: checksum ")
        reject(rig, message)
        [item] = items(rig, plan)
        assert item.detail is not None
        assert item.detail.endswith("; rejected")
        rows = rig.engine.read(lambda reader: reader.audit_page(0, 10))
        [row] = [row for row in rows if row.action == "message.edit"]
        said = msgspec.json.decode(row.detail or b"")
        assert (said["patch"], said["undo"]) == ({"amount": 5, "note": None}, {"amount": -5, "note": "x"})

    def test_an_edit_that_makes_a_payload_too_large_is_skipped(self, rig: Rig) -> None:
        """The letter stays as it was; one byte less is sent."""
        room = limits.BODY_BYTES_MAX - len(b'{"a":""}')
        for size, sent in ((room + 1, 0), (room, 1)):
            [message_id] = bury(rig, 1, body=b"{}")
            select = DeadFilter(queue="jobs", message_ids=(message_id,))
            patch = b'{"a":"%b"}' % (b"x" * size)
            plan = rig.do(redrive(select, 1, explicit=True, reason="long", edit=patch)).plan
            assert outcomes(rig, plan) == ({"sent": 1} if sent else {"skipped": 1})
            assert len(rig.lease()) == sent

    def test_completed_jobs_are_resolved_without_being_sent(self, rig: Rig) -> None:
        """On evidence for the right job key only; the dead letter goes and leaves a tombstone."""
        first, second = bury(rig, 1, job_key="pay:1") + bury(rig, 1, job_key="pay:2")
        plan = made(rig, start=False)
        evidence = {
            "job_key": "pay:1",
            "completed_at": "2026-12-01T00:00:00Z",
            "result_hash": None,
            "by": "k",
        }
        done = rig.do(ResolvePlan(plan.plan_id, {first: evidence, second: evidence}, "operator"))
        assert (done.resolved, done.left) == (1, {second: "pending: its job key is pay:2"})
        assert outcomes(rig, plan) == {"already_completed": 1, "pending": 1}
        assert rig.tombstone(first).cause == "already_completed"
        change(rig, plan, PlanEvent.START)
        advance(rig, plan, 1.0)
        assert [message.message_id for message in rig.lease()] == [second]

    def test_what_was_not_sent_stays_after_an_abort(self, rig: Rig) -> None:
        """It is isolated as before, and a new plan may have it."""
        bury(rig, 5)
        plan = made(rig, envelope=Envelope(10, 100))
        assert change(rig, plan, PlanEvent.ABORT, "wrong queue").state == "aborted"
        assert advance(rig, plan, 3.0).sent == 0
        assert outcomes(rig, plan) == {"sent": 1, "pending": 4}
        assert len(dead(rig)) == 4
        refused(Conflict, change, rig, plan, PlanEvent.RESUME)
        assert rig.do(redrive(JOBS)).accepted == 4

    def test_a_redrive_inside_the_deduplication_window_delivers(self, rig: Rig) -> None:
        """It is the message's own return, no second publish; a second publish is still a duplicate."""
        rig.create("orders", kind="fifo")
        message_id = rig.publish("orders", group="g", deduplication_id="once")
        [message] = rig.lease("orders")
        reject(rig, message)
        assert rig.do(redrive(DeadFilter(queue="orders"))).accepted == 1
        [again] = rig.lease("orders")
        assert (again.message_id, again.attempt, again.redriven) == (message_id, 1, 1)
        [answer] = rig.do(c.Publish("orders", [c.Entry(b"{}", group="g", deduplication_id="once")]))
        assert (answer.message_id, answer.duplicate) == (message_id, True)

    def test_an_unknown_plan(self, rig: Rig) -> None:
        """It is named; a node that comes to move it has nothing to do."""
        nowhere = "00000000-0000-7000-8000-00000000ffff"
        for plan_id in (nowhere, "no id", "\N{SNOWMAN}"):
            refused(PlanNotFound, rig.do, ChangePlan(plan_id, PlanEvent.START, None, "operator"))
            assert rig.do(AdvancePlan(plan_id, "a")) == Advanced(None)

    def test_old_plans_go_with_their_members(self, rig: Rig) -> None:
        """With the records of that time; one that has not ended stays."""
        bury(rig, 3)
        ended, draft = made(rig), made(rig, start=False)
        change(rig, ended, PlanEvent.ABORT)
        rig.jump_seconds(limits.DEAD_RETENTION_SECONDS + 10)
        for _ in range(20):
            rig.do(c.Prune())
        assert rig.engine.read(lambda reader: reader.plan(ended.plan_id)) is None
        assert stored(rig, draft).state == "draft"
