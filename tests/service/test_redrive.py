"""What a redrive tells of the members that it skipped: how many, which, and why."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from redrive.contract import shapes
from redrive.contract.idempotency import Idempotency
from redrive.domain import limits
from redrive.service import Service


def dead(service: Service, count: int, queue: str = "jobs") -> list[str]:
    """Dead letters of a queue; their ids, oldest first."""
    for number in range(count):
        payload = msgspec.Raw(str(number).encode())
        service.call("queue.publish", shapes.Publish(queue=queue, payload=payload))
    held = service.call("queue.consume", shapes.Consume(queue=queue, max_messages=count)).messages
    for message in held:
        service.call("queue.nack", shapes.Nack(message_id=message.message_id, permanent=True))
    return [message.message_id for message in held]


def redrive(service: Service, **fields: Any) -> Any:
    """Redrive the dead letters of ``jobs``."""
    return service.call("queue.dlq.redrive", shapes.DeadLetterRedrive(queue="jobs", **fields))


def test_each_skipped_member_is_named_with_why(service: Service) -> None:
    """One goes; one is leased from the dead-letter queue, one is unknown."""
    first, second = dead(service, 2)
    [held] = service.call("queue.consume", shapes.Consume(queue="jobs.dlq", max_messages=1)).messages
    assert held.message_id == first
    answer = redrive(service, message_ids=[first, second, "unknown"])
    assert (answer.redriven, answer.skipped_count) == (1, 2)
    assert [(m.message_id, m.reason) for m in answer.skipped] == [(first, "in_use"), ("unknown", "gone")]
    assert "leased" in answer.skipped[0].detail


def test_a_policy_is_named(service: Service) -> None:
    """What an operator has to change stands in the detail."""
    service.call("queue.create", shapes.QueueCreate(name="jobs", redrive_policy="review"))
    [message_id] = dead(service, 1)
    [skipped] = redrive(service).skipped
    assert (skipped.message_id, skipped.reason) == (message_id, "skipped")
    assert "redrive_policy of jobs is review" in skipped.detail
    done = redrive(service, message_ids=[message_id], reason="looked at")
    assert (done.redriven, done.skipped_count, done.skipped) == (1, 0, [])


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_the_names_are_bounded_and_the_count_is_not(service: Service, more: int) -> None:
    """REDRIVE_SKIPPED_MAX members are named, the oldest; all are counted."""
    service.call("queue.create", shapes.QueueCreate(name="jobs", redrive_policy="forbidden"))
    count = limits.REDRIVE_SKIPPED_MAX + more
    dead(service, count)
    listed = service.call("queue.dlq.list", shapes.DeadLetterList(queue="jobs", limit=1_000)).items
    answer = redrive(service, max_messages=1_000)
    assert (answer.redriven, answer.skipped_count, len(listed)) == (0, count, count)
    oldest = [item.message_id for item in listed[: limits.REDRIVE_SKIPPED_MAX]]
    assert [m.message_id for m in answer.skipped] == oldest


def test_what_was_cut_off_is_not_skipped(service: Service) -> None:
    """max_messages ends the work; who comes behind it was not asked for yet."""
    ids = dead(service, 3)
    answer = redrive(service, message_ids=ids, max_messages=2)
    assert (answer.redriven, answer.skipped_count) == (2, 0)


def test_the_same_request_again_tells_the_same(service: Service) -> None:
    """The first answer, with the members that were skipped then, though nothing holds them now."""
    [message_id] = dead(service, 1)
    [held] = service.call("queue.consume", shapes.Consume(queue="jobs.dlq")).messages
    request = shapes.DeadLetterRedrive(queue="jobs", message_ids=[message_id])
    key = Idempotency(key="once", request_hash=b"12345678", route="queue.dlq.redrive")
    first = service.call("queue.dlq.redrive", request, key)
    service.call("queue.nack", shapes.Nack(message_id=message_id, receipt_handle=held.receipt_handle))
    again = service.call("queue.dlq.redrive", request, key)
    assert first.skipped_count == 1
    assert again == first
