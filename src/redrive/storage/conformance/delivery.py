"""Publishing and leasing."""

from __future__ import annotations

from typing import cast

from redrive.domain import limits
from redrive.storage import commands as c
from redrive.storage.conformance.rig import Rig


class DeliveryScenarios:
    """Publishing and leasing."""

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
