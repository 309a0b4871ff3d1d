"""Scenarios of an attacker: orders of events that a plain reading of the rules forgets."""

from __future__ import annotations

from typing import Any, cast

from redrive.domain import limits
from redrive.domain.errors import Conflict, InvalidRequest, QueueExists, QueueNotFound, StaleReceipt
from redrive.storage import commands as c
from redrive.storage.conformance.asking import bury, dead, key, redrive, refused
from redrive.storage.conformance.rig import Rig
from redrive.storage.plan_commands import PlanMade
from redrive.storage.values import Claimed, DeadFilter


def ids(messages: list[Claimed]) -> list[str]:
    """The ids of what was leased, in order."""
    return [message.message_id for message in messages]


def _reject_head(rig: Rig, queue: str = "jobs") -> str:
    [message] = rig.lease(queue, 1)
    rig.do(c.Reject(message.message_id, message.handle))
    return message.message_id


def _redrive(rig: Rig, *message_ids: str, queue: str = "jobs") -> PlanMade:
    select = DeadFilter(queue=queue, message_ids=message_ids or None)
    answer: PlanMade = rig.do(redrive(select, 100, explicit=bool(message_ids)))
    return answer


class HostileScenarios:
    """What must hold when things happen in the worst order."""

    # -- one batch
    def test_cancel_and_settle_in_one_batch(self, rig: Rig) -> None:
        """A cancel before a nack of the same batch ends the message; before an ack the ack counts."""
        for verb, cause in (("nack", "cancelled"), ("ack", None)):
            rig.publish()
            [message] = rig.lease()
            settle: c.Command = c.Nack(message.message_id, message.handle)
            if verb == "ack":
                settle = c.Ack([(message.message_id, message.handle)])
            outcome = rig.batch(c.Cancel(message.message_id), settle)
            assert outcome.results[0] is False
            if cause is not None:
                assert rig.tombstone(message.message_id).cause == cause
            assert rig.counts().leased == rig.counts().ready == 0

    def test_rejected_and_cancelled_in_one_batch(self, rig: Rig) -> None:
        """A record that opens and closes within one batch is stored closed."""
        rig.publish()
        [message] = rig.lease()
        outcome = rig.batch(c.Reject(message.message_id, message.handle), c.Cancel(message.message_id))
        assert outcome.results[1] is True
        assert dead(rig) == []
        [record] = rig.engine.read(lambda reader: reader.records(message.message_id))
        assert record.closed_by == "cancelled"

    def test_a_refusal_changes_nothing(self, rig: Rig) -> None:
        """A refused command leaves its batch as if it had not been there."""
        rig.create(dlq=None, max_retries=2)
        rig.publish()
        [message] = rig.lease()
        before = rig.engine.read(lambda reader: reader.message(message.message_id))
        stale = c.Nack(message.message_id, "another-handle", delay_ms=0)
        outcome = rig.batch(stale, c.CreateQueue("jobs", None, "nowhere", {"max_retries": 9}), c.Tick())
        assert [type(result) for result in outcome.results[:2]] == [StaleReceipt, QueueNotFound]
        assert rig.engine.read(lambda reader: reader.message(message.message_id)) == before
        queue = rig.engine.read(lambda reader: reader.queue("jobs"))
        assert queue is not None
        assert queue.policy.max_retries == 2

    def test_published_while_the_queue_is_deleted(self, rig: Rig) -> None:
        """A publish in the batch of the delete goes into a fresh queue, never into the vanishing one."""
        old = rig.publish()
        outcome = rig.batch(c.Publish("jobs", [c.Entry(b"{}")]), c.SetQueueState("jobs", "deleting"))
        [fresh] = cast("list[c.Published]", outcome.results[0])
        deleted = cast("Any", outcome.results[1])
        assert ids(rig.lease()) == [fresh.message_id]
        assert rig.do(c.Purge(deleted.name, deleting=True)).removed == 1
        assert rig.engine.read(lambda reader: reader.message(old)) is None
        strict = c.Publish("jobs", [c.Entry(b"{}")], auto_create=False)
        assert isinstance(rig.batch(c.SetQueueState("jobs", "deleting"), strict).results[1], QueueNotFound)

    def test_extend_and_release_in_one_batch(self, rig: Rig) -> None:
        """Of two settles of one lease both count, in their order."""
        rig.publish()
        [message] = rig.lease(seconds=5)
        outcome = rig.batch(
            c.Extend(message.message_id, message.handle, visibility_ms=60_000),
            c.Release(message.message_id, message.handle),
            c.Extend(message.message_id, message.handle, visibility_ms=60_000),
        )
        assert isinstance(outcome.results[2], StaleReceipt)
        assert rig.counts().ready == 1

    # -- the budget
    def test_a_release_past_its_limit_repeated(self, rig: Rig) -> None:
        """Past the limit a release is a nack; repeated, it gives the same answer."""
        rig.create(max_retries=5)
        rig.publish()
        for _ in range(limits.RELEASES_MAX + 1):
            [message] = rig.lease()
            first = rig.do(c.Release(message.message_id, message.handle))
        assert first.attempts_left == 5
        assert rig.do(c.Release(message.message_id, message.handle)) == first
        [again] = rig.lease()
        assert (again.attempt, again.ended) == (2, 2)

    def test_a_lease_is_no_longer_than_the_cap(self, rig: Rig) -> None:
        """max_lease_seconds bounds the first lease and every extension together."""
        rig.create(max_lease_seconds=10)
        rig.publish()
        answer = cast("c.Leased", rig.do(c.Lease("jobs", 1, 3_600_000)))
        assert answer.visibility_ms == 10_000
        [message] = answer.messages
        rig.pass_seconds(10)
        refused(Conflict, rig.do, c.Extend(message.message_id, message.handle, visibility_ms=5_000))
        assert rig.do(c.Expire()) == 1

    def test_late_ack_after_a_redrive(self, rig: Rig) -> None:
        """A lost delivery may still be acked after its redrive, until it is delivered again."""
        rig.create(max_retries=0)
        rig.publish()
        [message] = rig.lease(seconds=1)
        rig.pass_seconds(2)
        rig.do(c.Expire())
        assert _redrive(rig).accepted == 1
        assert rig.ack(message) is True
        assert rig.lease() == []

    # -- priority
    def test_a_dead_letter_with_a_priority(self, rig: Rig) -> None:
        """It can be consumed from its dead-letter queue, and has its level again after a redrive."""
        rig.create(enable_priority=True)
        message_id = rig.publish(priority=7)
        _reject_head(rig)
        [letter] = rig.lease("jobs.dlq")
        assert (letter.message_id, letter.priority) == (message_id, 7)
        rig.do(c.Release(letter.message_id, letter.handle))
        assert _redrive(rig).accepted == 1
        low = rig.publish(priority=3)
        assert ids(rig.lease()) == [message_id, low]

    def test_priority_is_not_turned_off_under_messages(self, rig: Rig) -> None:
        """A level that nobody claims would strand messages: turning levels off needs an empty queue."""
        rig.create(enable_priority=True)
        rig.publish(priority=7)
        message_id = _reject_head(rig)
        rig.publish(priority=5)
        refused(Conflict, rig.do, c.UpdateQueue("jobs", {"enable_priority": False}))
        [message] = rig.lease()
        rig.ack(message)
        rig.do(c.UpdateQueue("jobs", {"enable_priority": False}))
        _redrive(rig)
        assert ids(rig.lease()) == [message_id]

    # -- FIFO and dead letters
    def test_a_group_held_by_several_dead_letters(self, rig: Rig) -> None:
        """A group goes on when the last of its dead letters is closed, in its first order."""
        rig.create(kind="fifo", retention_seconds=60)
        first, second = rig.publish(group="a"), rig.publish(group="a")
        rig.pass_seconds(61)
        assert rig.do(c.Age()) == 2
        third = rig.publish(group="a")
        assert rig.lease() == []
        _redrive(rig, second)
        assert rig.lease() == []
        _redrive(rig, first)
        for expected in (first, second, third):
            [message] = rig.lease()
            assert message.message_id == expected
            rig.ack(message)

    def test_an_old_record_frees_nobody_elses_group(self, rig: Rig) -> None:
        """After continue and block again, closing the older dead letter leaves the newer one's hold."""
        rig.create(kind="fifo")
        rig.publish(group="a"), rig.publish(group="a")
        third = rig.publish(group="a")
        old = _reject_head(rig)
        rig.do(c.UpdateQueue("jobs", {"fifo_on_dead": "continue"}))
        rig.do(c.UpdateQueue("jobs", {"fifo_on_dead": "block"}))
        new = _reject_head(rig)
        assert rig.do(c.Cancel(old)) is True
        assert rig.lease() == []
        assert rig.do(c.Cancel(new)) is True
        assert ids(rig.lease()) == [third]

    def test_a_namesakes_group_is_another_one(self, rig: Rig) -> None:
        """Closing a dead letter of a deleted queue frees no group of a new queue of that name."""
        rig.create(kind="fifo")
        rig.publish(group="a")
        old = _reject_head(rig)
        deleted = rig.do(c.SetQueueState("jobs", "deleting"))
        rig.do(c.Purge(deleted.name, deleting=True))
        rig.create(kind="fifo")
        rig.publish(group="a"), rig.publish(group="a")
        _reject_head(rig)
        assert rig.do(c.Cancel(old)) is True
        assert rig.lease() == []
        assert rig.counts().blocked_groups == 1

    def test_redriven_behind_a_leased_head(self, rig: Rig) -> None:
        """A redrive into a group whose head is leased waits for it, and then goes before the rest."""
        rig.create(kind="fifo", fifo_on_dead="continue")
        first, _, third = (rig.publish(group="a") for _ in range(3))
        _reject_head(rig)
        [second] = rig.lease()
        assert _redrive(rig).accepted == 1
        assert rig.lease() == []
        rig.ack(second)
        for expected in (first, third):
            [message] = rig.lease()
            assert message.message_id == expected
            rig.ack(message)

    def test_a_place_outlives_its_group(self, rig: Rig) -> None:
        """A dead letter whose group was pruned meanwhile comes back before the younger ones."""
        rig.create(kind="fifo", fifo_on_dead="continue")
        for _ in range(3):
            old = rig.publish(group="a")
            _reject_head(rig)
        rig.do(c.Prune())
        rig.pass_seconds(0.001)
        young = [rig.publish(group="a") for _ in range(2)]
        _redrive(rig, old)
        for expected in (old, *young):
            [message] = rig.lease()
            assert message.message_id == expected
            rig.ack(message)

    def test_retention_in_the_middle_of_a_group(self, rig: Rig) -> None:
        """What dies behind a leased head holds the group until it is closed; the head may finish."""
        rig.create(kind="fifo", retention_seconds=60)
        rig.publish(group="a")
        middle = rig.publish(group="a")
        [head] = rig.lease(seconds=600)
        rig.pass_seconds(30)
        last = rig.publish(group="a")
        rig.pass_seconds(31)
        assert rig.do(c.Age()) == 1
        assert rig.ack(head) is True
        assert rig.lease() == []
        assert [m.facts.message_id for m in dead(rig)] == [middle]
        assert rig.do(c.Cancel(middle)) is True
        assert ids(rig.lease()) == [last]

    def test_suspects_of_fifo_groups_travel_alone(self, rig: Rig) -> None:
        """Heads of groups too: a suspect first is the whole answer, a later one ends it before itself."""
        rig.create(kind="fifo", retry_policy={"base_seconds": 0.001})
        suspect = rig.publish(group="a")
        rig.lease(seconds=1)
        rig.pass_seconds(2)
        rig.do(c.Expire())
        rig.pass_seconds(1)
        other = rig.publish(group="b")
        assert [ids(rig.lease()), ids(rig.lease())] == [[suspect], [other]]

    def test_by_hand_into_a_fifo_dead_letter_queue(self, rig: Rig) -> None:
        """What dies where it was published holds no group there."""
        rig.create(kind="fifo")
        rig.publish(group="a")
        letter = _reject_head(rig)
        [held] = rig.lease("jobs.dlq")
        by_hand = rig.publish("jobs.dlq", group="a")
        rig.do(c.Release(held.message_id, held.handle))
        [held] = rig.lease("jobs.dlq")
        rig.ack(held)
        assert held.message_id == letter
        assert _reject_head(rig, "jobs.dlq") == by_hand
        assert ids(rig.lease("jobs.dlq")) == [by_hand]

    def test_a_damaged_message_is_in_nobodys_way(self, rig: Rig) -> None:
        """A body with a wrong checksum is kept and never served, and its dead-letter group goes on."""
        rig.create(kind="fifo", fifo_on_dead="continue")
        damaged = rig.publish(group="a")
        good = rig.publish(group="a")
        rig.damage(damaged)
        assert rig.lease() == []
        assert ids(rig.lease()) == [good]
        assert [m.record.reason for m in dead(rig)] == ["checksum"]
        assert rig.lease("jobs.dlq") == []
        assert _redrive(rig, damaged).skipped == {"skipped": 1}
        by_hand = rig.publish("jobs.dlq", group="a")
        assert ids(rig.lease("jobs.dlq")) == [by_hand]
        rig.jump_seconds(limits.DEAD_RETENTION_SECONDS + 1)
        rig.do(c.Age())
        assert rig.tombstone(damaged).cause == "expired"

    # -- where the dead go
    def test_a_dead_letter_queue_with_one_of_its_own(self, rig: Rig) -> None:
        """A queue that holds others' dead letters buries its own work under its own name."""
        rig.create("last")
        rig.create("orders", dlq="last")
        rig.create("jobs", dlq="orders")
        message_id = rig.publish("orders")
        assert _reject_head(rig, "orders") == message_id
        assert [m.record.origin for m in dead(rig, "orders")] == ["orders"]
        assert _redrive(rig, queue="orders").accepted == 1
        assert ids(rig.lease("orders")) == [message_id]

    def test_a_lease_outlives_its_queues_name(self, rig: Rig) -> None:
        """What is leased from a queue that is being deleted can be acked, and dies under the old name."""
        rig.create("errs")
        rig.create(dlq="errs")
        rig.publish(), rig.publish()
        first, second = rig.lease()
        deleted = rig.do(c.SetQueueState("jobs", "deleting"))
        assert rig.ack(first) is True
        rig.do(c.Reject(second.message_id, second.handle))
        rig.do(c.Purge(deleted.name, deleting=True))
        [letter] = dead(rig, "errs")
        assert (letter.facts.message_id, letter.record.origin) == (second.message_id, "jobs")

    def test_dead_letters_published_first_by_hand(self, rig: Rig) -> None:
        """A dead-letter queue that somebody published into first keeps dead letters as long as any other."""
        rig.publish("jobs.dlq")
        bury(rig)
        [letter] = dead(rig)
        assert letter.record.expires_ms - letter.record.dead_ms == limits.DEAD_RETENTION_SECONDS * 1000

    # -- replays
    def test_a_redriven_message_is_no_duplicate(self, rig: Rig) -> None:
        """Deduplication speaks of publishes: the redriven message is delivered, its id still deduplicates."""
        rig.create(kind="fifo")
        message_id = rig.publish(group="a", deduplication_id="d")
        _reject_head(rig)
        assert _redrive(rig).accepted == 1
        [again] = rig.do(c.Publish("jobs", [c.Entry(b"{}", group="a", deduplication_id="d")]))
        assert (again.message_id, again.duplicate) == (message_id, True)
        assert ids(rig.lease()) == [message_id]

    def test_a_replay_in_the_next_slots(self, rig: Rig) -> None:
        """A recorded answer is found for 24 hours, whatever slot it was written into."""
        for offset in (0, 30, 3 * 3_600, 6 * 3_600 - 1):
            queue = f"q{offset}"
            rig.jump_seconds(6 * 3_600 - rig.clock() // 1000 % (6 * 3_600) + offset)
            publish = c.Publish(queue, [c.Entry(b"{}")], idempotent=key("k"))
            [first] = rig.do(publish)
            for _ in range(4):
                rig.jump_seconds(6 * 3_600)
                rig.do(c.Prune())
                [again] = rig.do(publish)
                assert (again.message_id, again.replayed) == (first.message_id, True)

    def test_ids_cut_off_are_not_gone(self, rig: Rig) -> None:
        """Of more ids than max_messages the rest is neither moved nor called gone."""
        chosen = tuple(bury(rig, 3))
        select = DeadFilter(queue="jobs", message_ids=chosen)
        answer = rig.do(redrive(select, 2, explicit=True))
        assert (answer.accepted, answer.skipped) == (2, {})

    def test_the_first_message_decides_what_a_consume_has_made(self, rig: Rig) -> None:
        """A consumer that comes first, or still asks after a delete, makes no FIFO queue a standard one."""
        rig.create(kind="fifo")
        rig.do(c.SetQueueState("jobs", "deleting"))
        assert rig.lease() == []
        first, second = rig.publish(group="a"), rig.publish(group="a")
        assert [m.message_id for m in rig.lease()] == [first]
        for queue, settle in (("made", rig.create), ("plain", rig.publish)):
            assert rig.lease(queue) == []
            settle(queue)
            refused(InvalidRequest, rig.publish, queue, group="a")
        assert rig.lease("asked") == []
        refused(InvalidRequest, rig.publish, "asked", deduplication_id="d")
        refused(QueueNotFound, rig.create, "asked", "fifo", dlq="nowhere")
        rig.do(c.UpdateQueue("asked", {"max_retries": 7}))
        rig.create("asked", "fifo")
        rig.publish("asked", group="a")
        refused(QueueExists, rig.create, "asked", "standard")
        assert second not in [m.message_id for m in rig.lease()]

    def test_dead_letters_decide_what_a_consume_has_made(self, rig: Rig) -> None:
        """A dead-letter queue has its source's kind, and a redrive finds its group again."""
        assert rig.lease("jobs.dlq") == []
        rig.create(kind="fifo")
        [first] = bury(rig, group="a")
        [dead_letter] = rig.lease("jobs.dlq")
        assert dead_letter.group_key == "a"
        rig.do(c.Release(first, dead_letter.handle))
        rig.do(c.SetQueueState("jobs", "deleting"))
        assert rig.lease() == []
        assert rig.do(redrive(DeadFilter(queue="jobs"), 9, explicit=False)).accepted == 1
        rig.publish(group="a")
        [message] = rig.lease()
        assert (message.message_id, message.group_key) == (first, "a")
