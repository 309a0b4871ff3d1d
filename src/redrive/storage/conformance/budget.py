"""One budget for every way a delivery can end; suspects and outages."""

from __future__ import annotations

from redrive.domain import limits
from redrive.domain.fingerprint import error_info
from redrive.storage import commands as c
from redrive.storage.conformance.asking import bury, dead
from redrive.storage.conformance.rig import Rig


class BudgetScenarios:
    """One budget for every way a delivery can end; suspects and outages."""

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

    def test_a_stall_is_an_outage_whatever_is_in_it(self, rig: Rig) -> None:
        """While a batch of the only writer takes eight seconds nobody can extend: leases are shifted, with a
        tick in that batch or not."""
        rig.publish()
        [message] = rig.lease(seconds=30)
        for command in (c.Tick(), c.Prune()):
            rig.do(c.Tick())
            rig.stall(8, command)
            assert rig.batch(c.Expire()).outage_ms == 8_000
        rig.pass_seconds(29)
        assert rig.do(c.Expire()) == 0
        rig.pass_seconds(1)
        assert rig.do(c.Expire()) == 1
        assert rig.ack(message) is True
