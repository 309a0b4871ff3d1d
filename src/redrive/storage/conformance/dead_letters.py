"""Retention, dead letters, redrive."""

from __future__ import annotations

from redrive.domain import limits
from redrive.storage import commands as c
from redrive.storage.conformance.asking import bury, dead, redrive
from redrive.storage.conformance.rig import Rig
from redrive.storage.plan_commands import PlanMade
from redrive.storage.values import DeadFilter


def _why(answer: PlanMade) -> list[tuple[str, str]]:
    """Who was skipped, by the setting that the detail names; nobody was redriven."""
    settings = ("max_redrives", "forbidden", "review", "by hand", "not there")
    assert (answer.accepted, answer.skipped) == (0, {"skipped": len(answer.named)})
    return [(m.message_id, next(name for name in settings if name in m.detail)) for m in answer.named]


class DeadLettersScenarios:
    """Retention, dead letters, redrive."""

    def test_retention(self, rig: Rig) -> None:
        """Over age a live message becomes a dead letter, a dead one a tombstone; leases are left alone."""
        rig.create(retention_seconds=60)
        message_id = rig.publish()
        rig.publish()
        [leased] = rig.lease(count=1, seconds=3_600)
        rig.pass_seconds(61)
        assert rig.do(c.Age()) == 1
        [letter] = dead(rig)
        assert letter.record.reason == "expired"
        assert letter.facts.message_id != message_id
        assert rig.ack(leased) is True
        rig.jump_seconds(limits.DEAD_RETENTION_SECONDS + 1)
        assert rig.do(c.Age()) == 1
        assert dead(rig) == []
        gone = rig.tombstone(letter.facts.message_id)
        assert gone is not None
        assert (gone.queue, gone.cause, gone.reason) == ("jobs", "expired", "expired")

    def test_archived_letters_are_forgotten(self, rig: Rig) -> None:
        """Live messages age without them; of those that were archived, each goes that is as it was then."""
        first, second, third = bury(rig, 3)
        by_hand = rig.publish("jobs.dlq")
        marks = {i: rig.stored(i).facts.body_hash for i in (first, second, third)}
        until = rig.clock() + limits.DEAD_RETENTION_SECONDS * 1000
        look = rig.engine.read
        assert look(lambda reader: reader.ending(until - 1, 10)) == []
        [ending] = look(lambda reader: reader.ending(until, 10))
        assert (ending.queue, ending.count, ending.first_ms) == ("jobs", 3, until)
        assert [e.count for e in look(lambda reader: reader.ending(until, 2))] == [2]
        assert look(lambda reader: reader.over_age(10)) == []
        assert rig.do(c.Forget(marks, "file")) == 0
        rig.jump_seconds(limits.DEAD_RETENTION_SECONDS + 1)
        assert rig.do(c.Age(dead=False)) == 1
        assert rig.stored(by_hand).facts.dead
        over = look(lambda reader: reader.over_age(10))
        assert [letter.facts.message_id for letter in over] == [first, second, third]
        assert [letter.record.reason for letter in over if letter.record] == ["rejected"] * 3
        [held] = rig.lease("jobs.dlq", 1)
        assert held.message_id == first
        outcome = rig.batch(c.Forget({**marks, third: b"another!", "gone": b""}, "file"))
        assert (outcome.results, outcome.forgotten) == ([1], {"jobs": 1})
        left = rig.tombstone(second)
        assert (left.archive, left.cause, left.reason) == ("file", "expired", "rejected")
        assert (left.dead_ms, left.first_failed_ms) == (rig.clock.start_ms, rig.clock.start_ms)
        assert rig.ack(held)
        assert rig.batch(c.Age()).forgotten == {"jobs": 1}
        assert rig.tombstone(third).archive is None

    def test_redrive(self, rig: Rig) -> None:
        """A redriven message has its id, a fresh budget and a growing delivery; it can die again (D1)."""
        rig.create(max_retries=0)
        for count in (0, 1, 2):
            if count == 0:
                [message_id] = bury(rig)
            else:
                [message] = rig.lease()
                assert (message.message_id, message.attempt, message.delivery) == (message_id, 1, count + 1)
                assert message.redriven == count
                rig.nack(message, delay_ms=0)
            [letter] = dead(rig)
            assert letter.record.redrive_count == count
            answer = rig.do(redrive(DeadFilter(queue="jobs"), 100, explicit=False))
            assert (answer.accepted, dead(rig)) == (1, [])
        assert len(rig.engine.read(lambda reader: reader.records(message_id))) == 3

    def test_redrive_selection(self, rig: Rig) -> None:
        """Filters and ids choose; what cannot go is counted with why."""
        first, second, third = bury(rig, 3)
        [held] = rig.lease("jobs.dlq", 1)
        assert held.message_id == first
        select = DeadFilter(queue="jobs", message_ids=(first, second, "00000000-0000-7000-8000-00000000ffff"))
        answer = rig.do(redrive(select, 100, explicit=True))
        assert (answer.accepted, answer.skipped) == (1, {"in_use": 1, "gone": 1})
        absent = "00000000-0000-7000-8000-00000000ffff"
        assert [(m.message_id, m.obstacle) for m in answer.named] == [(first, "in_use"), (absent, "gone")]
        assert [m.message_id for m in rig.lease()] == [second]
        assert [m.facts.message_id for m in dead(rig)] == [first, third]
        assert [m.facts.message_id for m in dead(rig, text="bad input")] == [first, third]
        assert dead(rig, reason="expired") == dead(rig, error_type="X") == dead(rig, attempts_min=2) == []
        [group] = rig.engine.read(lambda r: r.dead_groups(DeadFilter(queue="jobs"), 10))
        assert (group.count, group.sample) == (2, first)

    def test_redrive_limits(self, rig: Rig) -> None:
        """max_redrives, redrive_policy and a missing source forbid (D7)."""
        rig.create(max_redrives=1)
        oldest = redrive(DeadFilter(queue="jobs"))
        bury(rig)
        assert rig.do(oldest).accepted == 1
        [message] = rig.lease()
        rig.do(c.Reject(message.message_id, message.handle))
        assert _why(rig.do(oldest)) == [(message.message_id, "max_redrives")]
        rig.do(c.UpdateQueue("jobs", {"max_redrives": 9, "redrive_policy": "forbidden"}))
        assert _why(rig.do(oldest)) == [(message.message_id, "forbidden")]
        rig.do(c.UpdateQueue("jobs", {"redrive_policy": "review"}))
        assert _why(rig.do(oldest)) == [(message.message_id, "review")]
        select = DeadFilter(queue="jobs", message_ids=(message.message_id,))
        assert rig.do(redrive(select, 100, explicit=True, reason="looked at")).accepted == 1

    def test_the_dead_letter_queue_is_a_queue(self, rig: Rig) -> None:
        """Consumed by name a dead letter has no budget there; an ack closes its record."""
        rig.create(max_retries=0)
        [message_id] = bury(rig)
        for delivery in (2, 3, 4):
            [message] = rig.lease("jobs.dlq")
            assert (message.message_id, message.delivery, message.dead) == (message_id, delivery, True)
            assert rig.nack(message, delay_ms=0).state == "dead"
        [message] = rig.lease("jobs.dlq")
        rig.do(c.Reject(message.message_id, message.handle))
        [message] = rig.lease("jobs.dlq")
        assert rig.ack(message) is True
        [record] = rig.engine.read(lambda reader: reader.records(message_id))
        assert record.closed_by == "consumed"

    def test_published_into_the_dead_letter_queue(self, rig: Rig) -> None:
        """What is published there by hand lives as anywhere, and dies there without an origin."""
        bury(rig)
        by_hand = rig.publish("jobs.dlq")
        held = rig.lease("jobs.dlq")
        [message] = [m for m in held if m.message_id == by_hand]
        assert message.dead is False
        rig.do(c.Reject(message.message_id, message.handle))
        letters = {m.facts.message_id: m.record.origin for m in dead(rig, "jobs.dlq")}
        assert letters[by_hand] is None
        select = DeadFilter(queue="jobs.dlq", message_ids=(by_hand,))
        assert _why(rig.do(redrive(select, 10, explicit=True))) == [(by_hand, "by hand")]
