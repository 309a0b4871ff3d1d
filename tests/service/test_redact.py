"""What a queue redacts is in no answer that shows a message; what is stored and delivered stays whole."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from redrive.contract import shapes
from redrive.service import Service
from redrive.transports.local import open_local

CARD, TOKEN = "4111-2222-3333-4444", "bearer-of-secrets"
PAYLOAD = {"card": CARD, "amount": 12}
ERROR = {"type": "Refused", "message": f"card {CARD} with {TOKEN}", "stack": f"pay({CARD!r})"}
REDACT = ["card", "headers.authorization"]


def _dead(service: Service, redact: list[str] | None = None) -> str:
    service.call("queue.create", shapes.QueueCreate(name="pay", max_retries=1, redact=redact))
    client = open_local(service)
    client.call(
        "queue.publish",
        {"queue": "pay", "payload": PAYLOAD, "headers": {"Authorization": TOKEN, "trace": "seen"}},
    )
    for _ in range(2):
        (lease,) = client.consume(
            "pay", max_messages=1, visibility_timeout=None, wait_seconds=0, consumer_id="c"
        ).messages
        assert lease.json() == PAYLOAD
        assert lease.headers == {"Authorization": TOKEN, "trace": "seen"}
        client.nack("pay", lease.message_id, lease.receipt_handle, delay_seconds=0, error=ERROR)
    return lease.message_id


def _answers(service: Service, message_id: str, queue: str = "pay") -> dict[str, Any]:
    """Everything that shows a dead letter, by what asks for it."""
    client = open_local(service)
    asked: dict[str, dict[str, Any]] = {
        "queue.dlq.list": {"queue": queue},
        "queue.dlq.groups": {"queue": queue},
        "queue.messages": {"queue": "pay.dlq"},
        "queue.message": {"message_id": message_id},
    }
    return {name: client.call(name, request) for name, request in asked.items()}


def _leaks(answers: dict[str, Any]) -> set[str]:
    return {name for name, answer in answers.items() if any(w in json.dumps(answer) for w in (CARD, TOKEN))}


def test_no_page_shows_what_is_redacted(service: Service) -> None:
    """Lists of dead letters and messages, groups, a message with attempts and lineage; the rest is there."""
    message_id = _dead(service, REDACT)
    answers = _answers(service, message_id)
    assert _leaks(answers) == set()
    (item,) = answers["queue.dlq.list"]["items"]
    assert item["payload"] == {"card": "***", "amount": 12}
    assert item["headers"] == {"Authorization": "***", "trace": "seen"}
    assert item["error"] == {"type": "Refused", "message": "card *** with ***", "stack": "pay('***')"}
    record = answers["queue.message"]
    assert [attempt["error"] for attempt in record["attempts"]] == [item["error"]] * 2
    assert record["lineage"][0]["error"] == item["error"]


def test_without_redact_all_of_them_show_it(service: Service) -> None:
    """The control: the same answers, found by the same search. A later ``redact`` hides them."""
    message_id = _dead(service)
    answers = _answers(service, message_id)
    assert _leaks(answers) == set(answers)
    service.call("queue.update", shapes.QueueUpdate(name="pay", redact=REDACT))
    assert _leaks(_answers(service, message_id)) == set()


def test_a_redriven_message_is_whole(service: Service) -> None:
    """What was masked on a page comes back to the consumer as it was published."""
    message_id = _dead(service, REDACT)
    client = open_local(service)
    client.call("queue.dlq.redrive", {"queue": "pay", "message_ids": [message_id]})
    found = client.consume("pay", max_messages=1, visibility_timeout=None, wait_seconds=10, consumer_id="c")
    assert [(lease.message_id, lease.json()) for lease in found.messages] == [(message_id, PAYLOAD)]
    assert found.messages[0].redact == tuple(REDACT)


def test_dead_letters_of_a_deleted_queue_stay_redacted(service: Service) -> None:
    """They outlive their queue, whose settings are gone."""
    message_id = _dead(service, REDACT)
    service.call("queue.delete", shapes.QueueDelete(queue="pay"))
    answers = _answers(service, message_id, "pay.dlq")
    assert len(answers["queue.dlq.list"]["items"]) == 1
    assert _leaks(answers) == set()


def test_an_edit_is_shown_without_the_new_value(service: Service) -> None:
    """A corrected card number is as secret as a wrong one; what is delivered has it."""
    message_id = _dead(service, REDACT)
    client = open_local(service)
    made = service.call(
        "redrive.plan.create",
        shapes.PlanCreate(
            queue="pay",
            select=shapes.Selection(message_ids=[message_id]),
            reason="card corrected",
            edit=msgspec.Raw(b'{"card":"5500-0000","amount":13}'),
        ),
    )
    assert bytes(made.edit) == b'{"card":"***","amount":13}'
    client.call("redrive.plan.start", {"plan_id": made.plan_id, "reason": "go"})
    found = client.consume("pay", max_messages=1, visibility_timeout=None, wait_seconds=10, consumer_id="c")
    assert [lease.json() for lease in found.messages] == [{"card": "5500-0000", "amount": 13}]


@pytest.mark.parametrize("redact", [None, REDACT])
def test_a_consume_names_the_paths_only_where_there_are_some(
    service: Service, redact: list[str] | None
) -> None:
    """A worker learns what to keep out of its logs; other programs see the answer that they know."""
    service.call("queue.create", shapes.QueueCreate(name="pay", redact=redact))
    answer = open_local(service).call("queue.consume", {"queue": "pay"})
    assert answer.get("redact") == redact
