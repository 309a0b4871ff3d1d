"""Fingerprint policies: what becomes of a failure whose cause an operator has judged."""

from __future__ import annotations

from typing import Any

import msgspec

from redrive.domain import limits
from redrive.domain.errors import Conflict, LimitExceeded, QueueNotFound
from redrive.domain.fingerprint import error_info, fingerprint
from redrive.domain.plans import PlanEvent
from redrive.storage import commands as c
from redrive.storage.conformance.asking import dead, redrive, refused, set_policy
from redrive.storage.conformance.rig import Repeatable, Rig
from redrive.storage.execute import apply
from redrive.storage.plan_commands import AdvancePlan, ChangePlan
from redrive.storage.port import Transaction
from redrive.storage.values import Claimed, DeadFilter, FingerprintRule

_BAD = error_info({"type": "Boom", "message": "payment 7 is unknown"})
_OTHER = error_info({"type": "Timeout", "message": "no answer"})
assert _BAD is not None
assert _OTHER is not None
BAD, OTHER = _BAD.fingerprint, _OTHER.fingerprint
LOST, SILENT = fingerprint("lease_expired", ""), fingerprint("max_attempts", "")


def _failed(rig: Rig, error: Any = _BAD, queue: str = "jobs") -> tuple[Claimed, c.Settled]:
    """A new message and its first delivery, which failed."""
    rig.publish(queue)
    [message] = rig.lease(queue, 1)
    return message, rig.nack(message, error=error)


def _rules(rig: Rig, queue: str = "jobs") -> list[FingerprintRule]:
    def look(reader: Any) -> Any:
        return reader.fingerprint_policies(reader.queue(queue).id)

    found: list[FingerprintRule] = rig.engine.read(look)
    return found


def _ids(rig: Rig, queue: str = "jobs", **fields: Any) -> list[str]:
    return [letter.facts.message_id for letter in dead(rig, queue, **fields)]


class _Counting:
    """A transaction that counts who asks for fingerprint policies."""

    def __init__(self, tx: Transaction) -> None:
        self._tx, self.asked = tx, 0

    def __getattr__(self, name: str) -> Any:
        if name == "fingerprint_policies":
            self.asked += 1
        return getattr(self._tx, name)


class FingerprintScenarios:
    """Fingerprint policies."""

    def test_a_rejected_fingerprint_dies_at_once(self, rig: Rig) -> None:
        """With its budget unspent, as ``rejected``; other causes, other queues, and the same one after
        ``retry``, are tried again."""
        rig.create()
        assert _failed(rig)[1].state == "delayed"
        rule = rig.do(set_policy("jobs", BAD, "reject", "no such payment"))
        assert (rule.policy, rule.reason, rule.actor) == ("reject", "no such payment", "rig")
        assert _rules(rig) == [rule]
        message, settled = _failed(rig)
        assert (settled.state, settled.attempts_left) == ("dead", 0)
        [letter] = dead(rig)
        assert letter.record.fingerprint == BAD
        assert (letter.record.reason, letter.record.attempts) == ("rejected", 1)
        assert rig.nack(message, error=_BAD).state == "dead"  # the same settle again
        assert _failed(rig, _OTHER)[1].state == _failed(rig, None)[1].state == "delayed"
        assert _failed(rig, queue="others")[1].state == "delayed"
        assert rig.do(set_policy("jobs", BAD, "retry")).policy == "retry"
        assert _rules(rig) == []
        assert _failed(rig)[1].state == "delayed"

    def test_a_held_fingerprint_is_left_out_of_redrives(self, rig: Rig) -> None:
        """Dead at the first failure; only ids or that very fingerprint bring it back."""
        rig.create()
        rig.do(set_policy("jobs", BAD, "hold"))
        held = _failed(rig)[0].message_id
        [message] = [rig.lease(count=1)[0] for _ in [rig.publish()]]
        rig.do(c.Reject(message.message_id, message.handle, error=_OTHER))
        assert _ids(rig) == [held, message.message_id]  # a list shows both
        for select, members in (
            (DeadFilter(queue="jobs.dlq", error_type="Boom"), 0),
            (DeadFilter(queue="jobs", reason="rejected", error_type="Boom"), 0),
            (DeadFilter(queue="jobs"), 1),  # not the oldest
        ):
            assert rig.do(redrive(select, 1)).plan.members == members
        assert _ids(rig) == [held]
        by_cause = rig.do(redrive(DeadFilter(queue="jobs", fingerprint=BAD)))
        assert (by_cause.accepted, _ids(rig)) == (1, [])
        [again] = [m for m in rig.lease() if m.message_id == held]
        assert rig.nack(again, error=_BAD).state == "dead"
        by_id = rig.do(redrive(DeadFilter(queue="jobs", message_ids=(held,))))
        assert (by_id.accepted, _ids(rig)) == (1, [])

    def test_what_died_before_is_held_too(self, rig: Rig) -> None:
        """A policy is of the cause, not of the death; taken back, it lets go."""
        rig.create(max_retries=0)
        held = _failed(rig)[0].message_id
        rig.do(set_policy("jobs", BAD, "hold"))
        assert rig.do(redrive(DeadFilter(queue="jobs"))).plan.members == 0
        assert rig.do(redrive(DeadFilter(queue="jobs.dlq"))).plan.members == 0
        assert _ids(rig) == [held]
        rig.do(set_policy("jobs", BAD, "reject"))
        assert rig.do(redrive(DeadFilter(queue="jobs"))).accepted == 1

    def test_a_plan_that_runs_sends_none_that_are_held_since(self, rig: Rig) -> None:
        """A member that was chosen before the policy came is skipped, with why."""
        rig.create(max_retries=0)
        first = _failed(rig)[0].message_id
        draft = rig.do(redrive(DeadFilter(queue="jobs"), start=False)).plan
        rig.do(set_policy("jobs", BAD, "hold"))
        rig.do(ChangePlan(draft.plan_id, PlanEvent.START, None, "rig"))
        for _ in range(3):
            rig.do(AdvancePlan(draft.plan_id, "node"))
        [item] = rig.engine.read(lambda reader: reader.plan_items(draft.number, None, -1, 10))
        assert item.outcome == "skipped"
        assert f"jobs holds fingerprint {BAD}" in str(item.detail)
        assert _ids(rig) == [first]

    def test_failures_without_an_error_have_a_fingerprint_too(self, rig: Rig) -> None:
        """A lost lease and a nack that says nothing: that of the group in which they would be found."""
        rig.create()
        for cause, reason in ((SILENT, "rejected"), (LOST, "lease_expired")):
            rig.do(set_policy("jobs", cause, "reject"))
            rig.publish()
            [message] = rig.lease(count=1, seconds=2)
            if cause == SILENT:
                rig.nack(message)
            else:
                rig.pass_seconds(3)
                assert rig.do(c.Expire()) == 1
            [letter] = dead(rig, fingerprint=cause)
            assert (letter.record.reason, letter.record.attempts) == (reason, 1)
        other = _failed(rig, _OTHER)[1]
        assert other.state == "delayed"

    def test_the_dead_side_has_no_policies(self, rig: Rig) -> None:
        """A dead letter that an operator nacks stays where it is; its queue takes no policy."""
        rig.create(max_retries=0)
        _failed(rig)
        rig.do(set_policy("jobs", BAD, "reject"))
        [message] = rig.lease("jobs.dlq")
        assert rig.nack(message, error=_BAD, delay_ms=0).state == "dead"
        refusal = refused(Conflict, rig.do, set_policy("jobs.dlq", BAD, "hold"))
        assert "jobs.dlq is a dead-letter queue" in refusal.message
        refused(QueueNotFound, rig.do, set_policy("nowhere", BAD, "hold"))

    def test_a_queue_has_so_many_policies(self, rig: Rig) -> None:
        """Up to the limit; one that is there can be changed, and one taken back makes room."""
        rig.create()
        limit = limits.FINGERPRINT_POLICIES_MAX
        rig.batch(*(set_policy("jobs", f"{n:016x}", "hold") for n in range(limit - 1)))
        rig.do(set_policy("jobs", BAD, "hold"))
        refusal = refused(LimitExceeded, rig.do, set_policy("jobs", OTHER, "hold"))
        assert (refusal.details or {})["limit"] == limit
        assert (refusal.details or {})["actual"] == limit + 1
        rig.do(set_policy("jobs", BAD, "reject"))
        rig.do(set_policy("jobs", f"{0:016x}", "retry"))
        rig.do(set_policy("jobs", OTHER, "hold"))
        assert len(_rules(rig)) == limit
        assert _failed(rig)[1].state == "dead"

    def test_policies_go_with_their_queue(self, rig: Rig) -> None:
        """A queue made anew under the name has none, and holds none of the old one's dead letters."""
        rig.create(max_retries=0)
        held = _failed(rig)[0].message_id
        rig.do(set_policy("jobs", BAD, "hold"))
        deleting = rig.do(c.SetQueueState("jobs", "deleting"))
        rig.do(c.Purge(deleting.name, deleting=True))
        rig.create()
        assert _rules(rig) == []
        assert _failed(rig)[1].state == "delayed"
        assert rig.do(redrive(DeadFilter(queue="jobs"))).accepted == 1
        assert held not in _ids(rig)

    def test_each_change_is_audited(self, rig: Rig) -> None:
        """Who, why, and from what to what; also one that changes nothing."""
        rig.create()
        for policy in ("hold", "reject", "retry", "retry"):
            rig.do(set_policy("jobs", BAD, policy, "because"))
        rows = rig.engine.read(lambda reader: reader.audit_page(0, 10))
        told = [msgspec.json.decode(row.detail) for row in reversed(rows)]
        assert [(each["before"], each["after"]) for each in told] == [
            ("retry", "hold"), ("hold", "reject"), ("reject", "retry"), ("retry", "retry"),
        ]  # fmt: skip
        assert {(row.actor, row.action, row.target, row.reason) for row in rows} == {
            ("rig", "dlq.policy", "jobs", "because")
        }
        assert {each["fingerprint"] for each in told} == {BAD}

    def test_without_policies_nothing_is_read(self, rig: Rig) -> None:
        """A nack of a queue without policies asks the store for none; with some, once a batch (control)."""
        rig.create()
        for wanted in (0, 1):
            for _ in range(3):
                rig.publish()
            held = rig.lease(count=3)
            nacks = [c.Nack(m.message_id, m.handle, error=_OTHER) for m in held]

            def counted(tx: Transaction, nacks: list[c.Nack] = nacks) -> int:
                counting = _Counting(tx)
                apply(counting, nacks, None, Repeatable())
                return counting.asked

            assert (len(held), rig.engine.run(counted)) == (3, wanted)
            rig.do(set_policy("jobs", BAD, "hold"))
