"""Everything that happened to a message, and to the messages of a job, in one answer."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from redrive.contract import shapes
from redrive.domain.errors import InvalidRequest, MessageNotFound, NotFound
from redrive.service import Caller, Service
from redrive.service import lineage as module
from redrive.service import story as story_module
from tests.database import wait_for

KEY = "settlement:7"
NARROW = Caller("narrow", "k2", ("operate",), ("game-*",))


def publish(service: Service, queue: str = "night", job_key: str | None = KEY, payload: bytes = b"{}") -> str:
    """One message; its id."""
    request = shapes.Publish(queue=queue, job_key=job_key, payload=msgspec.Raw(payload))
    return str(service.call("queue.publish", request).message_id)


def take(service: Service, queue: str = "night") -> Any:
    """The next delivery; waits for it."""
    request = shapes.Consume(queue=queue, wait_seconds=10, max_messages=1)
    [found] = service.call("queue.consume", request).messages
    return found


def reject(service: Service, queue: str = "night") -> None:
    """The next delivery fails for good."""
    error = {"type": "Mismatch", "message": "no such payment", "stack": "line 1"}
    message = take(service, queue)
    request = shapes.Nack(
        message_id=message.message_id, receipt_handle=message.receipt_handle, error=error, permanent=True
    )
    service.call("queue.nack", request)


def plan(service: Service, message_id: str, edit: bytes | None = None, **fields: Any) -> str:
    """A plan over one message, started; its id."""
    request = shapes.PlanCreate(
        queue="night",
        select=shapes.Selection(message_ids=[message_id]),
        reason="payment 7 is there now",
        edit=None if edit is None else msgspec.Raw(edit),
        **fields,
    )
    made = service.call("redrive.plan.create", request)
    service.call("redrive.plan.start", shapes.PlanChange(plan_id=made.plan_id))
    return str(made.plan_id)


def of(service: Service, message_id: str, **fields: Any) -> Any:
    """The lineage of a message."""
    return service.call("redrive.message", shapes.MessageLineageGet(message_id=message_id), **fields)


def steps(lineage: Any) -> list[str]:
    """What happened, in order."""
    return [step.step for step in lineage.steps]


def test_the_whole_story_is_one_answer(service: Service) -> None:
    """Publish, attempt, dead, plan with an edit, attempt, dead, plan, ack: also when the message is gone."""
    message_id = publish(service, payload=b'{"payment":7,"amount":1}')
    reject(service)
    first = plan(service, message_id, b'{"amount":12345678901234567890}', actor="anna")
    delivered = take(service)
    assert delivered.redrive.plan_id == first
    assert bytes(delivered.payload) == b'{"payment":7,"amount":12345678901234567890}'
    request = shapes.Nack(
        message_id=message_id, receipt_handle=delivered.receipt_handle, error="again", permanent=True
    )
    service.call("queue.nack", request)
    second = plan(service, message_id)
    delivered = take(service)
    held = of(service, message_id)
    assert (held.state, held.message.redrive.plan_id, held.message.redrive.count) == ("leased", second, 2)
    service.call(
        "queue.ack",
        shapes.Ack(queue="night", message_id=message_id, receipt_handle=delivered.receipt_handle),
    )
    story = of(service, message_id)
    assert (story.state, story.message, story.queue, story.job_key) == ("gone", None, "night", KEY)
    assert [name for name in steps(story) if name != "closed"] == [
        *("published", "attempt", "dead", "planned", "redriven"),
        *("attempt", "dead", "outcome", "planned", "redriven", "outcome"),
    ]
    told = [step for step in story.steps if step.step in ("planned", "redriven", "outcome")]
    assert [step.plan_id for step in told] == [first] * 3 + [second] * 3
    assert told[0].actor == "system (anna)"
    assert bytes(told[1].edit) == b'{"amount":12345678901234567890}'
    assert [step.outcome for step in told if step.outcome] == ["dead_again", "completed"]
    attempt = story.steps[1]
    assert (attempt.end, attempt.error.type, attempt.error.stack) == ("rejected", "Mismatch", "")
    [by_key] = service.call("redrive.job", shapes.JobLineageGet(job_key=KEY)).items
    assert by_key == story


def test_a_message_that_only_waits_has_a_story(service: Service) -> None:
    """Its publish; and after a cancel its tombstone says what became of it."""
    message_id = publish(service)
    story = of(service, message_id)
    assert (story.state, steps(story)) == ("ready", ["published"])
    service.call("queue.cancel", shapes.Cancel(queue="night", message_id=message_id))
    story = of(service, message_id)
    assert (story.state, steps(story), story.steps[-1].reason) == (
        "gone",
        ["published", "removed"],
        "cancelled",
    )


def test_what_is_not_known_is_not_found(service: Service) -> None:
    """An unknown id, an unknown key, and a message that was done at once, of which the ledger knows."""
    message_id = publish(service)
    done = take(service)
    service.call(
        "queue.ack", shapes.Ack(queue="night", message_id=message_id, receipt_handle=done.receipt_handle)
    )
    for gone in (message_id, "no-such-id", "019a1f3c-5a10-7000-8000-00000000002a"):
        with pytest.raises(MessageNotFound, match="not found"):
            of(service, gone)
    with pytest.raises(NotFound, match="job settlement:7 is not found"):
        service.call("redrive.job", shapes.JobLineageGet(job_key=KEY))
    with pytest.raises(InvalidRequest):
        service.call("redrive.job", shapes.JobLineageGet(job_key=KEY, cursor="7"))


def test_a_key_sees_the_messages_of_its_queues(service: Service) -> None:
    """Held, dead, and gone: judged by the source; the control is a key that may see everything."""
    mine, theirs = publish(service, "game-a"), publish(service, "bank")
    request = shapes.JobLineageGet(job_key=KEY)
    for change in (lambda _: None, lambda queue: reject(service, queue)):
        change("game-a")
        change("bank")
        assert of(service, mine, caller=NARROW).message_id == mine
        with pytest.raises(MessageNotFound):
            of(service, theirs, caller=NARROW)
        items = service.call("redrive.job", request, caller=NARROW).items
        assert [item.message_id for item in items] == [mine]
        assert len(service.call("redrive.job", request).items) == 2
    for _ in range(3):
        theirs = publish(service, "bank")
    last = publish(service, "game-a")
    seen, cursor = [], None
    for _ in range(5):
        request = shapes.JobLineageGet(job_key=KEY, limit=1, cursor=cursor)
        page = service.call("redrive.job", request, caller=NARROW)
        seen += [item.message_id for item in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
        assert cursor == seen[-1]  # never the id of a message that is hidden
    assert seen == sorted([mine, last])


def test_the_messages_of_a_job_come_in_pages(service: Service) -> None:
    """Oldest first, each once; the dead and the held together."""
    ids = [publish(service) for _ in range(5)]
    reject(service)
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = service.call("redrive.job", shapes.JobLineageGet(job_key=KEY, limit=2, cursor=cursor))
        seen += [item.message_id for item in page.items]
        cursor = page.next_cursor
        assert page.complete
        if cursor is None:
            break
    assert seen == sorted(ids)


def test_a_page_ends_before_it_is_too_long(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its steps; every message still comes once. The oldest attempts are counted only."""
    ids = []
    for _ in range(3):
        ids.append(publish(service))
        reject(service)
    monkeypatch.setattr(module, "STEPS_MAX", 4)
    pages, cursor = [], None
    while len(pages) < 9:
        page = service.call("redrive.job", shapes.JobLineageGet(job_key=KEY, cursor=cursor))
        pages.append([item.message_id for item in page.items])
        cursor = page.next_cursor
        if cursor is None:
            break
    assert sorted(ids) == [message_id for page in pages for message_id in page]
    assert len(pages) == 2
    monkeypatch.setattr(story_module, "ATTEMPTS_MAX", 1)
    message_id = publish(service, "tries")
    for _ in range(3):
        held = take(service, "tries")
        handle = {"message_id": message_id, "receipt_handle": held.receipt_handle, "delay_seconds": 0}
        service.call("queue.nack", shapes.Nack(**handle, error="x" * 9_000))
    found = of(service, message_id)
    [attempt] = [step for step in found.steps if step.step == "attempt"]
    assert (attempt.delivery, found.left_out) == (3, 2)
    assert len(attempt.error.message) <= 1_024


def test_a_search_that_is_cut_says_so(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """What died is found by its index, whatever there was no time to look through."""
    publish(service)
    reject(service)
    publish(service)
    monkeypatch.setattr(module, "SEARCH_SECONDS", -1.0)
    page = service.call("redrive.job", shapes.JobLineageGet(job_key=KEY))
    assert (page.complete, [item.state for item in page.items]) == (False, ["dead"])
    assert not service.call("redrive.job", shapes.JobLineageGet(job_key="other")).complete


def test_redacted_fields_stay_out(service: Service) -> None:
    """Of the payload, also while it is dead, and of the edit; the control is the queue without `redact`."""
    service.call("queue.create", shapes.QueueCreate(name="night"))
    message_id = publish(service, payload=b'{"pan":"4000","n":1}')
    reject(service)

    def shown() -> str:
        return msgspec.json.encode(of(service, message_id)).decode()

    assert "4000" in shown()
    service.call("queue.update", shapes.QueueUpdate(name="night", redact=["pan"]))
    assert "4000" not in shown()
    looked = service.call("queue.message", shapes.MessageGet(message_id=message_id))
    assert bytes(looked.payload) == b'{"pan":"***","n":1}'
    plan(service, message_id, b'{"pan":"5000","n":2}')
    wait_for(lambda: "redriven" in steps(of(service, message_id)), 10, "the plan to send it")
    assert "5000" not in shown()
    [edit] = [step.edit for step in of(service, message_id).steps if step.step == "redriven"]
    assert bytes(edit) == b'{"pan":"***","n":2}'
