"""Named scenarios over any engine. Subclass, and give ``rig`` as a pytest fixture."""

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
    RedriveError,
    StaleReceipt,
)  # fmt: skip
from redrive.domain.fingerprint import error_info
from redrive.storage import commands as c
from redrive.storage.conformance.rig import Rig
from redrive.storage.values import Claimed, DeadFilter


def refused(kind: type[RedriveError], action: Any, *arguments: Any, **fields: Any) -> RedriveError:
    """The refusal that an action must raise."""
    try:
        action(*arguments, **fields)
    except kind as refusal:
        return refusal
    raise AssertionError(f"{kind.__name__} was expected")


def key(name: str, request: bytes = b"request1") -> c.Idempotent:
    """An idempotency key."""
    return c.Idempotent("queue.publish", name, request)


def dead(rig: Rig, queue: str = "jobs", **fields: Any) -> list[Any]:
    """Open dead letters of a queue."""
    select = DeadFilter(queue=queue, **fields)
    return rig.engine.read(lambda reader: reader.dead_page(select, (0, ""), 100))


def bury(rig: Rig, count: int = 1, queue: str = "jobs", **fields: Any) -> list[str]:
    """Publish and reject messages; their ids."""
    ids = [rig.publish(queue, **fields) for _ in range(count)]
    for _ in range(count):
        [message] = rig.lease(queue, 1)
        rig.do(c.Reject(message.message_id, message.handle, error=error_info("bad input")))
    return ids


class EngineConformance:
    """What every engine must do, told as scenarios."""

    # -- delivery
    def test_publish_lease_ack(self, rig: Rig) -> None:
        """A message is delivered once with its body and headers, and is gone after the ack."""
        message_id = rig.publish(body=b'{"a":1}', headers=b'{"h":"1"}', job_key="job-1")
        [message] = rig.lease()
        assert (message.message_id, message.body, message.headers) == (message_id, b'{"a":1}', b'{"h":"1"}')
        assert (message.job_key, message.attempt, message.delivery, message.ended) == ("job-1", 1, 1, 0)
        assert rig.lease() == []
        assert rig.ack(message) is True
        assert rig.ack(message) is False
        assert rig.counts().leased == 0

    def test_order_is_due_then_arrival(self, rig: Rig) -> None:
        """Due messages come in the order of their due times, then of their arrival."""
        late = rig.publish(delay_ms=5_000)
        first, second = rig.publish(), rig.publish()
        rig.pass_seconds(6)
        assert [m.message_id for m in rig.lease()] == [first, second, late]

    def test_delay(self, rig: Rig) -> None:
        """A delayed message is not delivered before its time."""
        rig.publish(delay_ms=3_000)
        answer = cast("c.Leased", rig.do(c.Lease("jobs", 1)))
        assert answer.messages == []
        assert answer.next_due_ms == rig.clock() + 3_000
        rig.pass_seconds(2.9)
        assert rig.lease() == []
        rig.pass_seconds(0.1)
        assert len(rig.lease()) == 1

    def test_priority(self, rig: Rig) -> None:
        """With enable_priority higher levels go first; without it the number is ignored."""
        rig.create(enable_priority=True)
        low, high = rig.publish(priority=0), rig.publish(priority=9)
        middle = rig.publish(priority=5)
        assert [m.message_id for m in rig.lease()] == [high, middle, low]
        plain = [rig.publish("plain", priority=level) for level in (0, 9)]
        assert [m.message_id for m in rig.lease("plain")] == plain

    def test_bytes_of_one_answer(self, rig: Rig) -> None:
        """An answer stops before 8 MiB of bodies, and holds at least one message."""
        body = b"x" * (limits.BODY_BYTES_MAX)
        rig.do(c.Publish("jobs", [c.Entry(body) for _ in range(40)]))
        assert len(rig.lease(count=100)) == limits.CONSUME_BYTES_MAX // limits.BODY_BYTES_MAX

    def test_published_in_the_batch_that_leases(self, rig: Rig) -> None:
        """A lease sees what the same batch publishes, whatever their order."""
        outcome = rig.batch(c.Lease("jobs", 1), c.Publish("jobs", [c.Entry(b"{}")]))
        assert len(cast("c.Leased", outcome.results[0]).messages) == 1

    # -- receipts
    def test_stale_receipt(self, rig: Rig) -> None:
        """After the next delivery the old handle does nothing."""
        rig.publish()
        [old] = rig.lease(seconds=1)
        rig.pass_seconds(2)
        rig.do(c.Expire())
        rig.pass_seconds(10)
        [new] = rig.lease()
        assert (new.delivery, new.attempt, new.ended) == (2, 2, 1)
        refused(StaleReceipt, rig.ack, old)
        refused(StaleReceipt, rig.nack, old)
        refused(StaleReceipt, rig.do, c.Extend(old.message_id, old.handle, visibility_ms=1000))
        assert rig.ack(new) is True

    def test_late_ack(self, rig: Rig) -> None:
        """An expired lease that was not delivered again may still be acked; nothing else works late."""
        rig.publish()
        [message] = rig.lease(seconds=1)
        rig.pass_seconds(2)
        rig.do(c.Expire())
        refused(StaleReceipt, rig.nack, message)
        refused(StaleReceipt, rig.do, c.Release(message.message_id, message.handle))
        assert rig.ack(message) is True

    def test_late_ack_of_a_dead_letter(self, rig: Rig) -> None:
        """An expiry that made a dead letter is undone by the late ack: the record closes as resolved."""
        rig.create(max_retries=0)
        message_id = rig.publish()
        [message] = rig.lease(seconds=1)
        rig.pass_seconds(2)
        rig.do(c.Expire())
        assert [m.record.reason for m in dead(rig)] == ["lease_expired"]
        assert rig.ack(message) is True
        assert dead(rig) == []
        [record] = rig.engine.read(lambda reader: reader.records(message_id))
        assert record.closed_by == "resolved_late"

    def test_repeated_settles(self, rig: Rig) -> None:
        """The same settle again gives the same answer; another verb after it is stale."""
        rig.publish()
        [message] = rig.lease()
        first = rig.nack(message, delay_ms=60_000)
        assert rig.nack(message, delay_ms=60_000) == first
        refused(StaleReceipt, rig.ack, message)
        refused(StaleReceipt, rig.do, c.Release(message.message_id, message.handle))

    def test_settles_of_the_gone(self, rig: Rig) -> None:
        """Ack of a gone message is False, every other settle is not found."""
        rig.publish()
        [message] = rig.lease()
        rig.ack(message)
        refused(MessageNotFound, rig.nack, message)
        refused(MessageNotFound, rig.do, c.Extend(message.message_id, message.handle, visibility_ms=1))
        refused(MessageNotFound, rig.do, c.Release(message.message_id, message.handle))
        refused(MessageNotFound, rig.do, c.Reject(message.message_id, message.handle))

    def test_without_a_handle(self, rig: Rig) -> None:
        """Without a handle a settle applies to the current lease and is counted; a queue may refuse it."""
        message_id = rig.publish()
        assert rig.do(c.Ack([(message_id, None)])) == [False]
        rig.lease()
        outcome = rig.batch(c.Ack([(message_id, None)]))
        assert outcome.results == [[True]]
        assert sum(delta.unfenced for delta in outcome.stats.values()) == 1
        rig.create("strict", require_receipt_handle=True)
        strict = rig.publish("strict")
        rig.lease("strict")
        [answer] = rig.do(c.Ack([(strict, None)]))
        assert isinstance(answer, InvalidRequest)

    def test_order_within_a_batch(self, rig: Rig) -> None:
        """Of two settles of one delivery in one batch the first one counts."""
        rig.publish()
        [message] = rig.lease()
        nack = c.Nack(message.message_id, message.handle, delay_ms=1_000)
        outcome = rig.batch(nack, c.Ack([(message.message_id, message.handle)]))
        assert cast("c.Settled", outcome.results[0]).state == "delayed"
        [answer] = cast("list[Any]", outcome.results[1])
        assert isinstance(answer, StaleReceipt)

    # -- budget
    def test_budget_by_nack(self, rig: Rig) -> None:
        """After max_retries retries the message is dead, with the last error and a fingerprint."""
        rig.create(max_retries=2)
        message_id = rig.publish()
        for attempt in (1, 2, 3):
            [message] = rig.lease()
            assert message.attempt == attempt
            answer = rig.nack(message, delay_ms=0, error=error_info({"type": "Boom", "message": "no 7"}))
        assert (answer.state, answer.attempts_left) == ("dead", 0)
        [letter] = dead(rig)
        assert letter.facts.message_id == message_id
        assert (letter.record.reason, letter.record.error_type) == ("max_attempts", "Boom")
        assert letter.record.attempts == 3
        assert rig.nack(message, delay_ms=0).state == "dead"
        history = rig.engine.read(lambda reader: reader.attempts(message_id))
        assert [attempt.end for attempt in history] == ["nacked"] * 3

    def test_budget_by_expiry_equals_nack(self, rig: Rig) -> None:
        """Deliveries that end by expiry spend the same budget (A9, E1, E5)."""
        rig.create(max_retries=1)
        rig.publish()
        for _ in range(2):
            assert len(rig.lease(seconds=1)) == 1
            rig.pass_seconds(10)
            rig.do(c.Expire())
            rig.pass_seconds(10)
        assert rig.lease() == []
        assert [m.record.reason for m in dead(rig)] == ["lease_expired"]

    def test_backoff(self, rig: Rig) -> None:
        """A nack without delay waits by the backoff: jittered, within its ceiling, never in a burst."""
        rig.create(retry_policy={"base_seconds": 8.0, "jitter": False})
        rig.publish()
        for attempt in (1, 2, 3):
            [message] = rig.lease()
            assert rig.nack(message).visible_ms == rig.clock() + 8_000 * 2 ** (attempt - 1)
            assert rig.lease() == []
            rig.pass_seconds(8 * 2 ** (attempt - 1))

    def test_reject(self, rig: Rig) -> None:
        """A permanent failure goes to the dead letters at once."""
        [message_id] = bury(rig)
        [letter] = dead(rig)
        assert (letter.facts.message_id, letter.record.reason) == (message_id, "rejected")
        assert rig.counts().dead == 1

    def test_release_gives_the_attempt_back(self, rig: Rig) -> None:
        """Releasing spends no attempt, up to the limit of one budget; past it the budget is spent."""
        rig.create(max_retries=0)
        rig.publish()
        for delivery in range(1, limits.RELEASES_MAX + 1):
            [message] = rig.lease()
            assert (message.attempt, message.delivery) == (1, delivery)
            rig.do(c.Release(message.message_id, message.handle))
        [message] = rig.lease()
        assert rig.do(c.Release(message.message_id, message.handle)).state == "dead"

    def test_extend(self, rig: Rig) -> None:
        """Extending moves the lease's end, up to the hard cap; by 0 gives back and spends the attempt."""
        rig.create(max_lease_seconds=40)
        rig.publish()
        [message] = rig.lease(seconds=10)
        extend = c.Extend(message.message_id, message.handle, visibility_ms=30_000)
        rig.pass_seconds(5)
        assert rig.do(extend).lease_until_ms == rig.clock() + 30_000
        rig.pass_seconds(28)
        assert rig.do(c.Expire()) == 0
        assert rig.do(extend).lease_until_ms == rig.clock() + 7_000
        back = c.Extend(message.message_id, message.handle, visibility_ms=0)
        assert rig.do(back).state == "ready"
        [again] = rig.lease()
        assert (again.attempt, again.ended) == (2, 2)

    def test_expiry_counts_lease_time_as_backoff(self, rig: Rig) -> None:
        """An expired message is due at the later of now and lease start plus backoff."""
        rig.create(retry_policy={"base_seconds": 5.0, "jitter": False})
        rig.publish()
        rig.lease(seconds=20)
        rig.pass_seconds(21)
        assert rig.do(c.Expire()) == 1
        assert len(rig.lease()) == 1

    # -- suspects
    def test_a_suspect_travels_alone(self, rig: Rig) -> None:
        """A message whose last delivery was lost is the only one of its answer."""
        rig.create(retry_policy={"base_seconds": 0.001})
        suspect = rig.publish()
        rig.lease(seconds=1)
        others = [rig.publish() for _ in range(3)]
        rig.pass_seconds(2)
        rig.do(c.Expire())
        answers = [[m.message_id for m in rig.lease()] for _ in range(3)]
        assert answers == [others, [suspect], []]

    def test_an_outage_is_taken_out(self, rig: Rig) -> None:
        """Leases and backoffs that ran when the service stopped are shifted by the outage, once."""
        rig.create(retry_policy={"base_seconds": 100.0, "jitter": False})
        rig.publish(), rig.publish(delay_ms=7_200_000)
        [message] = rig.lease(seconds=30)
        rig.publish()
        [failed] = rig.lease()
        rig.nack(failed)
        for gap in (3_600, -3_600, 86_400):
            rig.do(c.Tick())
            rig.jump_seconds(gap)
            assert rig.batch(c.Expire()).outage_ms == gap * 1000
            assert rig.batch(c.Expire()).outage_ms == 0
        assert rig.counts().leased == 1
        assert rig.ack(message) is True
        rig.pass_seconds(99)
        assert [m.message_id for m in rig.lease()] != [failed.message_id]
        rig.pass_seconds(1)
        assert [m.message_id for m in rig.lease()] == [failed.message_id]

    # -- retention
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
        gone = rig.engine.read(lambda reader: reader.tombstone(letter.facts.message_id))
        assert gone is not None
        assert (gone.queue, gone.cause, gone.reason) == ("jobs", "expired", "expired")

    # -- dead letters
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
            answer = rig.do(c.Redrive(DeadFilter(queue="jobs"), 100, explicit=False))
            assert (answer.redriven, dead(rig)) == (1, [])
        assert len(rig.engine.read(lambda reader: reader.records(message_id))) == 3

    def test_redrive_selection(self, rig: Rig) -> None:
        """Filters and ids choose; what cannot go is counted with why."""
        first, second, third = bury(rig, 3)
        [held] = rig.lease("jobs.dlq", 1)
        assert held.message_id == first
        select = DeadFilter(queue="jobs", message_ids=(first, second, "00000000-0000-7000-8000-00000000ffff"))
        answer = rig.do(c.Redrive(select, 100, explicit=True))
        assert (answer.redriven, answer.skipped) == (1, {"in_use": 1, "gone": 1})
        assert [m.message_id for m in rig.lease()] == [second]
        assert [m.facts.message_id for m in dead(rig)] == [first, third]
        assert [m.facts.message_id for m in dead(rig, text="bad input")] == [first, third]
        assert dead(rig, reason="expired") == dead(rig, error_type="X") == dead(rig, attempts_min=2) == []
        [group] = rig.engine.read(lambda r: r.dead_groups(DeadFilter(queue="jobs"), 10))
        assert (group.count, group.sample) == (2, first)

    def test_redrive_limits(self, rig: Rig) -> None:
        """max_redrives, redrive_policy and a missing source forbid (D7)."""
        rig.create(max_redrives=1)
        redrive = c.Redrive(DeadFilter(queue="jobs"), 100, explicit=False)
        bury(rig)
        assert rig.do(redrive).redriven == 1
        [message] = rig.lease()
        rig.do(c.Reject(message.message_id, message.handle))
        assert rig.do(redrive).skipped == {"skipped": 1}
        rig.do(c.UpdateQueue("jobs", {"max_redrives": 9, "redrive_policy": "forbidden"}))
        assert rig.do(redrive).skipped == {"skipped": 1}
        rig.do(c.UpdateQueue("jobs", {"redrive_policy": "review"}))
        assert rig.do(redrive).skipped == {"skipped": 1}
        select = DeadFilter(queue="jobs", message_ids=(message.message_id,))
        assert rig.do(c.Redrive(select, 100, explicit=True, reason="looked at")).redriven == 1

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
        assert rig.do(c.Redrive(select, 10, explicit=True)).skipped == {"skipped": 1}

    # -- FIFO
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

    def test_fifo_blocks_behind_a_dead_letter(self, rig: Rig) -> None:
        """By default a dead letter holds its group; a redrive puts it back at its place."""
        rig.create(kind="fifo")
        first, second = rig.publish(group="a"), rig.publish(group="a")
        [message] = rig.lease()
        rig.do(c.Reject(message.message_id, message.handle))
        assert rig.lease() == []
        assert rig.counts().blocked_groups == 1
        rig.do(c.Redrive(DeadFilter(queue="jobs"), 1, explicit=False))
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
        rig.create("plain", retention_seconds=60), rig.create("fifo", kind="fifo")
        refused(InvalidRequest, rig.publish, "plain", group="a")
        refused(InvalidRequest, rig.publish, "plain", deduplication_id="a")
        refused(InvalidRequest, rig.publish, "fifo", priority=1)
        refused(LimitExceeded, rig.publish, "plain", delay_ms=60_001)
        rig.publish("plain", delay_ms=60_000)

    # -- idempotency
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

    # -- queues
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
        gone = rig.engine.read(lambda reader: reader.tombstone(message_id))
        assert (gone.queue, gone.cause) == ("jobs", "purged")
        assert [m.facts.message_id for m in dead(rig)] == [dead_id]
        assert rig.do(c.Redrive(DeadFilter(queue="jobs"), 1, explicit=False)).redriven == 1
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
        tombstone = rig.engine.read(lambda reader: reader.tombstone(held))
        assert tombstone.cause == "cancelled"
        assert rig.lease() == []

    # -- transactions and evidence
    def test_a_failed_batch_leaves_nothing(self, rig: Rig) -> None:
        """An error inside the transaction undoes all of it."""

        def half(tx: Any) -> None:
            queue = tx.queues(["jobs"])["jobs"]
            tx.write_groups(list(tx.groups([(queue.id, "g")]).values()))
            tx.remove_queue(queue.id)
            raise ZeroDivisionError

        rig.create()
        try:
            rig.engine.run(half)
        except ZeroDivisionError:
            pass
        assert rig.publish(), rig.counts().ready == 1

    def test_prune(self, rig: Rig) -> None:
        """Bookkeeping that is over goes; what is held stays."""
        rig.create("fifo", kind="fifo")
        rig.publish("fifo", group="a", deduplication_id="x", idempotent=key("k"))
        [message] = rig.lease("fifo")
        rig.ack(message)
        assert rig.do(c.Prune()) == 1
        rig.pass_seconds(limits.DEDUPLICATION_SECONDS)
        assert rig.do(c.Prune()) == 1
        rig.jump_seconds(31 * 3_600)
        assert rig.do(c.Prune()) == 1
        assert rig.do(c.Prune()) == 0

    def test_reads(self, rig: Rig) -> None:
        """Lists page by number and by state; one message shows all of it."""
        ids = [rig.publish(body=b"%d" % n) for n in range(3)]
        delayed = rig.publish(delay_ms=9_000)
        [message] = rig.lease(count=1)

        def page(state: str | None, after: int = 0, limit: int = 10) -> list[Any]:
            return rig.engine.read(
                lambda r: r.messages(cast("Any", r.queue("jobs")), state, None, after, limit)
            )

        assert [m.facts.message_id for m in page(None)] == [*ids, delayed]
        assert [m.facts.message_id for m in page(None, page(None)[1].facts.id)] == [ids[2], delayed]
        assert [m.facts.message_id for m in page("ready")] == ids[1:]
        assert [m.facts.message_id for m in page("delayed")] == [delayed]
        assert [m.facts.message_id for m in page("leased")] == [message.message_id]
        one = rig.engine.read(lambda r: r.message(ids[0]))
        assert (one.body, one.queue, one.facts.handle) == (b"0", "jobs", message.handle)
        counts = rig.counts()
        assert (counts.ready, counts.delayed, counts.leased) == (2, 1, 1)
        assert counts.attempts == {0: 3, 1: 1}


def claimed_ids(messages: list[Claimed]) -> list[str]:
    """The ids of what was leased, in order."""
    return [message.message_id for message in messages]
