"""What a receipt handle is good for, and until when."""

from __future__ import annotations

from typing import Any, cast

from redrive.domain.errors import InvalidRequest, MessageNotFound, StaleReceipt
from redrive.storage import commands as c
from redrive.storage.conformance.asking import dead, refused
from redrive.storage.conformance.rig import Rig


class ReceiptsScenarios:
    """What a receipt handle is good for, and until when."""

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
