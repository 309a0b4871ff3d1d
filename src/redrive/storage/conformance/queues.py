"""Idempotency, and queues made, changed, paused, purged and deleted."""

from __future__ import annotations

from typing import Any, cast

from redrive.domain import limits
from redrive.domain.errors import (
    Conflict,
    IdempotencyKeyReused,
    InvalidRequest,
    LimitExceeded,
    MessageNotFound,
    QueueExists,
    QueueNotFound,
)
from redrive.storage import commands as c
from redrive.storage.conformance.asking import bury, dead, key, redrive, refused
from redrive.storage.conformance.rig import Rig
from redrive.storage.values import DeadFilter


class QueuesScenarios:
    """Idempotency, and queues made, changed, paused, purged and deleted."""

    def test_idempotent_publish(self, rig: Rig) -> None:
        """The same key and request give the first answer; another request is an error, nothing done."""
        [first] = rig.do(c.Publish("jobs", [c.Entry(b"{}")], idempotent=key("k")))
        outcome = rig.batch(*[c.Publish("jobs", [c.Entry(b"{}")], idempotent=key("k")) for _ in range(2)])
        for [answer] in cast("list[list[c.Published]]", outcome.results):
            assert (answer.message_id, answer.replayed) == (first.message_id, True)
        other = c.Publish("jobs", [c.Entry(b"{}")], idempotent=key("k", b"request2"))
        refused(IdempotencyKeyReused, rig.do, other)
        assert len(rig.lease()) == 1
        rig.jump_seconds(31 * 3_600)
        [later] = rig.do(c.Publish("jobs", [c.Entry(b"{}")], idempotent=key("k")))
        assert later.replayed is False

    def test_idempotent_within_a_batch(self, rig: Rig) -> None:
        """Two equal requests in one batch are one message; entries have keys of their own."""
        publish = c.Publish("jobs", [c.Entry(b"{}")], idempotent=key("k"))
        outcome = rig.batch(publish, c.Publish("jobs", [c.Entry(b"{}")], idempotent=key("k")))
        [[first], [second]] = cast("list[list[c.Published]]", outcome.results)
        assert (second.message_id, second.replayed) == (first.message_id, True)
        entries: list[Any] = [c.Entry(b"1", idempotent=key("e")), c.Entry(b"1", idempotent=key("e"))]
        answers = rig.do(c.Publish("jobs", entries))
        assert answers[0].message_id == answers[1].message_id
        assert len(rig.lease()) == 2

    def test_idempotency_belongs_to_the_queue_itself(self, rig: Rig) -> None:
        """A queue that was deleted and made anew is another resource."""
        publish = c.Publish("jobs", [c.Entry(b"{}")], idempotent=key("k"))
        rig.do(publish)
        rig.do(c.SetQueueState("jobs", "deleting"))
        [answer] = rig.do(publish)
        assert answer.replayed is False

    def test_a_publish_that_stores_nothing_makes_no_queue(self, rig: Rig) -> None:
        """Every entry refused, before it came here or by the kind of the queue to be; or no entry at all."""
        broken = InvalidRequest("payload is missing")
        keyed, ordered = c.Entry(b"1", deduplication_id="d"), c.Entry(b"1", group="g", priority=1)
        retained = c.Entry(b"1", delay_ms=limits.RETENTION_SECONDS_DEFAULT * 1000 + 1)
        cases: list[list[Any]] = [[broken], [keyed], [ordered], [retained], [broken, keyed], []]
        for entries in cases:
            answers = rig.do(c.Publish("jobs", entries, idempotent=key("k")))
            assert [type(answer) for answer in answers] == [
                LimitExceeded if entry is retained else InvalidRequest for entry in entries
            ]
            assert rig.engine.read(lambda reader: reader.queue_page("", 10)) == []
        refused(QueueNotFound, rig.do, c.Publish("jobs", [broken], auto_create=False))
        outcome = rig.batch(c.Publish("jobs", [broken]), c.Publish("jobs", [broken, c.Entry(b"1")]))
        [[first], [second, third]] = cast("list[list[Any]]", outcome.results)
        assert (first.code, second.code, third.duplicate) == ("INVALID_REQUEST", "INVALID_REQUEST", False)
        [queue] = rig.engine.read(lambda reader: reader.queue_page("", 10))
        assert (queue.name, queue.implicit, queue.kind) == ("jobs", True, "standard")
        assert [m.message_id for m in rig.lease()] == [third.message_id]

    def test_create_again(self, rig: Rig) -> None:
        """Equal settings succeed, others are refused with the differences; implicit queues take them."""
        rig.create(max_retries=3, retry_policy={"base_seconds": 2.0})
        rig.create(max_retries=3)
        refusal = refused(QueueExists, rig.create, max_retries=4)
        assert refusal.details == {"differences": {"max_retries": {"existing": 3, "requested": 4}}}
        rig.publish("implicit")
        rig.create("implicit", max_retries=7)
        refused(QueueExists, rig.create, "implicit", max_retries=8)
        refused(QueueNotFound, rig.create, "x", dlq="nowhere")

    def test_idempotent_create(self, rig: Rig) -> None:
        """A create is replayed while its queue exists, and creates again when it is gone."""
        create = c.CreateQueue("jobs", None, None, {}, idempotent=key("k"))
        first = rig.do(create)
        assert (rig.do(create).queue.id, rig.do(create).replayed) == (first.queue.id, True)
        rig.do(c.SetQueueState("jobs", "deleting"))
        again = rig.do(create)
        assert (again.replayed, again.queue.id != first.queue.id) == (False, True)

    def test_pause(self, rig: Rig) -> None:
        """A paused queue takes messages and delivers none."""
        rig.create()
        rig.do(c.SetQueueState("jobs", "paused"))
        rig.publish()
        assert rig.lease() == []
        rig.do(c.SetQueueState("jobs", "active"))
        assert len(rig.lease()) == 1

    def test_delete(self, rig: Rig) -> None:
        """Deleting frees the name at once and takes the messages along; dead letters stay."""
        [dead_id] = bury(rig)
        message_id = rig.publish()
        rig.lease()
        deleted = rig.do(c.SetQueueState("jobs", "deleting"))
        fresh = rig.publish()
        assert rig.do(c.Purge(deleted.name, deleting=True)).removed == 1
        assert [m.message_id for m in rig.lease()] == [fresh]
        gone = rig.tombstone(message_id)
        assert (gone.queue, gone.cause) == ("jobs", "purged")
        assert [m.facts.message_id for m in dead(rig)] == [dead_id]
        assert rig.do(redrive(DeadFilter(queue="jobs"), 1, explicit=False)).accepted == 1
        rig.create("a", dlq="jobs.dlq")
        refused(Conflict, rig.do, c.SetQueueState("jobs.dlq", "deleting"))

    def test_purge_in_slices(self, rig: Rig) -> None:
        """A purge removes every state in slices, and spares what came after it began."""
        for _ in range(5):
            rig.publish()
        rig.publish(delay_ms=10_000)
        rig.lease(count=2)
        began = rig.clock()
        rig.pass_seconds(1)
        late = rig.publish()
        removed, more = 0, True
        while more:
            answer = rig.do(c.Purge("jobs", limit=2, before_ms=began))
            removed, more = removed + answer.removed, answer.more
        assert removed == 6
        assert [m.message_id for m in rig.lease()] == [late]

    def test_queue_limits(self, rig: Rig) -> None:
        """max_in_flight and max_per_second bound what is leased."""
        rig.create(max_in_flight=3)
        for _ in range(5):
            rig.publish()
        held = rig.lease()
        assert (len(held), rig.lease()) == (3, [])
        rig.ack(held[0])
        assert len(rig.lease()) == 1
        rig.create("slow", max_per_second=2)
        for _ in range(9):
            rig.publish("slow")
        rig.pass_seconds(10)
        assert (len(rig.lease("slow")), len(rig.lease("slow"))) == (2, 0)
        rig.pass_seconds(0.5)
        assert len(rig.lease("slow")) == 1

    def test_cancel(self, rig: Rig) -> None:
        """Cancel removes what nobody holds; of a lease it waits, extend is refused, a nack ends it (E3)."""
        idle, held = rig.publish(delay_ms=1_000), rig.publish()
        assert rig.do(c.Cancel(idle)) is True
        refused(MessageNotFound, rig.do, c.Cancel(idle))
        [message] = rig.lease()
        assert rig.do(c.Cancel(held)) is False
        refused(Conflict, rig.do, c.Extend(held, message.handle, visibility_ms=1_000))
        rig.nack(message)
        tombstone = rig.tombstone(held)
        assert tombstone.cause == "cancelled"
        assert rig.lease() == []
