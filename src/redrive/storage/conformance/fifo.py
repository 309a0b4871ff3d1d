"""FIFO groups and deduplication."""

from __future__ import annotations

from typing import cast

from redrive.domain import limits
from redrive.domain.errors import InvalidRequest, LimitExceeded
from redrive.storage import commands as c
from redrive.storage.conformance.asking import redrive, refused, states
from redrive.storage.conformance.rig import Rig
from redrive.storage.values import DeadFilter


class FifoScenarios:
    """FIFO groups and deduplication."""

    def test_fifo_order(self, rig: Rig) -> None:
        """A group's next message waits while its head is leased, delayed or backing off."""
        rig.create(kind="fifo")
        first, second = rig.publish(group="a"), rig.publish(group="a")
        other = rig.publish(group="b")
        leased = rig.lease()
        assert [m.message_id for m in leased] == [first, other]
        assert rig.lease() == []
        rig.nack(leased[0], delay_ms=5_000)
        assert rig.lease() == []
        rig.pass_seconds(5)
        [again] = rig.lease()
        assert again.message_id == first
        rig.ack(again)
        assert [m.message_id for m in rig.lease()] == [second]

    def test_the_head_is_ready_and_the_rest_waits(self, rig: Rig) -> None:
        """What a consumer would get is ready or delayed, what stands behind it waits; so say page, counts
        and the settle that put it there."""
        rig.create(kind="fifo")
        first, second = rig.publish(group="a"), rig.publish(group="a", delay_ms=5_000)
        later, last = rig.publish(group="b", delay_ms=5_000), rig.publish(group="b")
        assert states(rig) == {first: "ready", second: "waiting", later: "delayed", last: "waiting"}
        [message] = rig.lease()
        assert states(rig)[first] == "leased"
        assert states(rig)[second] == "waiting"
        assert rig.nack(message, delay_ms=2_000).state == "delayed"
        assert states(rig)[first] == "delayed"
        rig.pass_seconds(2)
        [message] = rig.lease()
        release = c.Release(message.message_id, message.handle)
        assert (rig.do(release).state, rig.do(release).state) == ("ready", "ready")
        [message] = rig.lease()
        rig.ack(message)
        assert states(rig) == {second: "delayed", later: "delayed", last: "waiting"}
        rig.pass_seconds(5)
        assert states(rig) == {second: "ready", later: "ready", last: "waiting"}

    def test_behind_a_dead_letter_all_wait(self, rig: Rig) -> None:
        """Nobody gets the first at rest while a dead letter holds its group; then it is ready."""
        rig.create(kind="fifo")
        first, second, third = (rig.publish(group="a") for _ in range(3))
        [message] = rig.lease()
        rig.do(c.Reject(message.message_id, message.handle))
        assert states(rig) == {second: "waiting", third: "waiting"}
        assert states(rig, "jobs.dlq") == {first: "dead"}
        assert rig.do(c.Cancel(first)) is True
        assert states(rig) == {second: "ready", third: "waiting"}

    def test_given_back_behind_its_elder(self, rig: Rig) -> None:
        """A redriven message took its old place meanwhile: what is given back then waits behind it."""
        rig.create(kind="fifo", fifo_on_dead="continue")
        first, second = rig.publish(group="a"), rig.publish(group="a")
        [message] = rig.lease()
        rig.do(c.Reject(message.message_id, message.handle))
        [message] = rig.lease()
        rig.do(redrive(DeadFilter(queue="jobs"), 1, explicit=False))
        assert states(rig) == {first: "waiting", second: "leased"}
        assert rig.do(c.Release(message.message_id, message.handle)).state == "waiting"
        assert states(rig) == {first: "ready", second: "waiting"}

    def test_fifo_blocks_behind_a_dead_letter(self, rig: Rig) -> None:
        """By default a dead letter holds its group; a redrive puts it back at its place."""
        rig.create(kind="fifo")
        first, second = rig.publish(group="a"), rig.publish(group="a")
        [message] = rig.lease()
        rig.do(c.Reject(message.message_id, message.handle))
        assert rig.lease() == []
        assert rig.counts().blocked_groups == 1
        rig.do(redrive(DeadFilter(queue="jobs"), 1, explicit=False))
        [message] = rig.lease()
        assert message.message_id == first
        rig.ack(message)
        assert [m.message_id for m in rig.lease()] == [second]

    def test_fifo_unblocked_by_any_close(self, rig: Rig) -> None:
        """However the record is closed, the group goes on: consumed, cancelled, purged, expired."""
        for close in ("consume", "cancel", "purge", "age"):
            queue = f"fifo-{close}"
            rig.create(queue, kind="fifo")
            first, second = rig.publish(queue, group="a"), rig.publish(queue, group="a")
            [message] = rig.lease(queue)
            rig.do(c.Reject(message.message_id, message.handle))
            if close == "consume":
                [letter] = rig.lease(f"{queue}.dlq")
                rig.ack(letter)
            elif close == "cancel":
                assert rig.do(c.Cancel(first)) is True
            elif close == "purge":
                assert rig.do(c.Purge(f"{queue}.dlq")).removed == 1
            else:
                rig.do(c.UpdateQueue(queue, {}))
                rig.jump_seconds(limits.RETENTION_SECONDS_DEFAULT - 60)
                rig.publish(queue, group="a")
                rig.jump_seconds(limits.DEAD_RETENTION_SECONDS - limits.RETENTION_SECONDS_DEFAULT + 61)
                while rig.do(c.Age()):
                    pass
                continue
            assert [m.message_id for m in rig.lease(queue)] == [second]

    def test_fifo_continue(self, rig: Rig) -> None:
        """With fifo_on_dead continue the group goes on; switching to it frees what is held."""
        rig.create(kind="fifo", fifo_on_dead="continue")
        rig.publish(group="a")
        second = rig.publish(group="a")
        [message] = rig.lease()
        rig.do(c.Reject(message.message_id, message.handle))
        [message] = rig.lease()
        assert message.message_id == second
        rig.do(c.UpdateQueue("jobs", {"fifo_on_dead": "block"}))
        third = rig.publish(group="a")
        rig.do(c.Reject(message.message_id, message.handle))
        assert rig.lease() == []
        rig.do(c.UpdateQueue("jobs", {"fifo_on_dead": "continue"}))
        assert [m.message_id for m in rig.lease()] == [third]

    def test_deduplication(self, rig: Rig) -> None:
        """A deduplication id seen within 300 s returns the first message; a redrive is no duplicate."""
        rig.create(kind="fifo", content_deduplication=True)
        entry = c.Entry(b"1", group="a", deduplication_id="d")
        [first] = rig.do(c.Publish("jobs", [entry]))
        outcome = rig.batch(c.Publish("jobs", [entry, c.Entry(b"2"), c.Entry(b"2")]))
        [again, content, same] = cast("list[c.Published]", outcome.results[0])
        assert (again.message_id, again.duplicate) == (first.message_id, True)
        assert (same.message_id, same.duplicate) == (content.message_id, True)
        rig.pass_seconds(301)
        [later] = rig.do(c.Publish("jobs", [entry]))
        assert later.duplicate is False

    def test_wrong_for_the_kind_of_queue(self, rig: Rig) -> None:
        """Groups need a FIFO queue, priority a standard one; a delay fits into the retention."""
        rig.create("plain", retention_seconds=60)
        rig.create("fifo", kind="fifo")
        refused(InvalidRequest, rig.publish, "plain", group="a")
        refused(InvalidRequest, rig.publish, "plain", deduplication_id="a")
        refused(InvalidRequest, rig.publish, "fifo", priority=1)
        refused(LimitExceeded, rig.publish, "plain", delay_ms=60_001)
        rig.publish("plain", delay_ms=60_000)
