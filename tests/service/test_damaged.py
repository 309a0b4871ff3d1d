"""What was damaged on disk is not shown to anybody; a store that cannot be read says so."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from redrive.contract import shapes
from redrive.domain.errors import Internal, MessageNotFound, Overloaded, RedriveError
from redrive.domain.standing import NoStanding
from redrive.service import Service
from redrive.storage.conformance.rig import damage_memory
from redrive.storage.memory import MemoryEngine
from redrive.storage.port import Damaged, Lost


def publish(service: Service) -> str:
    """One message; its id."""
    request = shapes.Publish(queue="jobs", payload=msgspec.Raw(b'{"amount":5}'), job_key="payment:5")
    message_id: str = service.call("queue.publish", request).message_id
    return message_id


def test_a_damaged_message_is_not_shown() -> None:
    """It is left out of lists, not found by its id; after its turn it is listed as evidence, without body."""
    engine = MemoryEngine()
    service = Service(engine)
    service.start()
    try:
        bad, good = publish(service), publish(service)
        damage_memory(engine)(bad)
        listed = service.call("queue.messages", shapes.MessageList(queue="jobs")).items
        assert [item.message_id for item in listed] == [good]
        with pytest.raises(MessageNotFound, match="damaged on disk"):
            service.call("queue.message", shapes.MessageGet(message_id=bad))
        served = service.call("queue.consume", shapes.Consume(queue="jobs")).messages
        assert [message.message_id for message in served] == [good]
        [dead] = service.call("queue.dlq.list", shapes.DeadLetterList(queue="jobs")).items
        assert (dead.message_id, dead.reason, bytes(dead.payload)) == (bad, "checksum", b"null")
    finally:
        service.close()


def test_a_damaged_dead_letter_is_not_shown() -> None:
    """One that was damaged after its death has another reason, and nothing that could be trusted."""
    engine = MemoryEngine()
    service = Service(engine)
    service.start()
    try:
        bad = publish(service)
        [message] = service.call("queue.consume", shapes.Consume(queue="jobs")).messages
        handle = {"message_id": bad, "receipt_handle": message.receipt_handle}
        service.call("queue.dead_letter", shapes.DeadLetter(queue="jobs", reason="no such payment", **handle))
        assert len(service.call("queue.dlq.list", shapes.DeadLetterList(queue="jobs")).items) == 1
        damage_memory(engine)(bad)
        assert service.call("queue.dlq.list", shapes.DeadLetterList(queue="jobs")).items == []
    finally:
        service.close()


@pytest.mark.parametrize(
    ("failure", "answer"),
    [
        (Lost("the disk"), Overloaded),
        (Damaged("stored rows are damaged"), Internal),
        (msgspec.ValidationError("what a row holds"), Internal),
        (NoStanding("message m is in no state"), Internal),
    ],
)
def test_a_read_that_fails_is_named(failure: Exception, answer: type[RedriveError]) -> None:
    """A store that cannot be read is no bug of the server."""

    class Failing(MemoryEngine):
        def read(self, work: Any) -> Any:
            raise failure

    service = Service(Failing())
    with pytest.raises(answer, match=str(failure)):
        service.call("queue.list", shapes.QueueList())
