"""Fingerprint policies through the service: what an operator sets, sees and is refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from redrive.contract import shapes
from redrive.domain.errors import Conflict, InvalidRequest, QueueNotFound
from redrive.domain.fingerprint import fingerprint
from redrive.service import Service
from redrive.service.access import Caller

BAD, OTHER = fingerprint("Boom", "payment 7"), fingerprint("Timeout", "no answer")
_ERRORS = {BAD: {"type": "Boom", "message": "payment 7"}, OTHER: {"type": "Timeout", "message": "no answer"}}


def failed(service: Service, cause: str, queue: str = "jobs", **fields: Any) -> Any:
    """A new message whose first delivery fails of this cause; what the nack says."""
    service.call("queue.publish", shapes.Publish(queue=queue, payload=msgspec.Raw(b"1")))
    [message] = service.call("queue.consume", shapes.Consume(queue=queue, max_messages=1)).messages
    return service.call(
        "queue.nack", shapes.Nack(message_id=message.message_id, error=_ERRORS[cause], **fields)
    )


def judge(service: Service, policy: str, cause: str = BAD, queue: str = "jobs", **more: Any) -> Any:
    """Set a policy."""
    asked = shapes.FingerprintPolicySet(queue=queue, fingerprint=cause, policy=policy, reason="looked at")  # type: ignore[arg-type]
    return service.call("queue.dlq.policy", asked, **more)


def groups(service: Service, queue: str = "jobs", **fields: Any) -> Any:
    """The groups of a queue."""
    return service.call("queue.dlq.groups", shapes.DeadLetterGroups(queue=queue, **fields))


def redrive(service: Service, **fields: Any) -> Any:
    """Redrive the dead letters of ``jobs``."""
    return service.call("queue.dlq.redrive", shapes.DeadLetterRedrive(queue="jobs", **fields))


def test_a_policy_is_set_seen_and_taken_back(service: Service) -> None:
    """The answer, the list, the groups and the audit log say the same."""
    assert failed(service, BAD).state == "delayed"
    done = judge(service, "hold")
    assert (done.queue, done.fingerprint, done.policy, done.reason) == ("jobs", BAD, "hold", "looked at")
    listed = service.call("queue.dlq.policies", shapes.FingerprintPolicyList(queue="jobs"))
    assert (listed.items, listed.next_cursor) == ([done], None)
    assert failed(service, BAD).state == "dead"
    assert failed(service, OTHER).state == "delayed"
    assert failed(service, OTHER, permanent=True).state == "dead"
    seen = {group.fingerprint: group.policy for group in groups(service).items}
    assert seen == {group.fingerprint: group.policy for group in groups(service, "jobs.dlq").items}
    assert seen == {BAD: "hold", OTHER: "retry"}
    assert judge(service, "retry").policy == "retry"
    assert service.call("queue.dlq.policies", shapes.FingerprintPolicyList(queue="jobs")).items == []
    rows = service.call("audit.list", shapes.AuditList(action="dlq.policy")).items
    assert [(row.queue, row.reason, row.outcome) for row in rows] == [("jobs", "looked at", "done")] * 2
    told = [msgspec.to_builtins(row.details) for row in rows]
    assert [(row["fingerprint"], row["before"], row["after"]) for row in told] == [
        (BAD, "hold", "retry"),
        (BAD, "retry", "hold"),
    ]


def test_a_held_cause_must_be_named(service: Service) -> None:
    """Redrive, dry run and estimate leave it out alike; a selection by its fingerprint takes it."""
    service.call("queue.create", shapes.QueueCreate(name="jobs"))
    judge(service, "hold")
    failed(service, BAD)
    failed(service, OTHER, permanent=True)
    for selection, count in (
        (shapes.Selection(), 1),
        (shapes.Selection(reason="rejected"), 1),
        (shapes.Selection(fingerprint=BAD), 1),
        (shapes.Selection(error_type="Boom"), 0),
    ):
        asked = shapes.PlanCreate(queue="jobs", select=selection, reason="try", dry_run=True)
        dry = service.call("redrive.plan.create", asked)
        assert dry.members == count
        assert "without_held" not in dry.selection
        estimate = shapes.EstimateGet(queue="jobs", select=selection)
        assert service.call("redrive.estimate", estimate).count == count
    assert redrive(service, error_type="Boom").redriven == 0
    assert redrive(service).redriven == 1
    [left] = groups(service).items
    assert (left.fingerprint, left.count) == (BAD, 1)
    assert redrive(service, message_ids=[left.sample_message_id]).redriven == 1


def test_without_the_policy_they_all_go(service: Service) -> None:
    """The control: the same dead letters, and nothing is held."""
    service.call("queue.create", shapes.QueueCreate(name="jobs"))
    judge(service, "reject")
    failed(service, BAD)
    failed(service, OTHER, permanent=True)
    assert redrive(service).redriven == 2


def test_one_cause_is_one_group(service: Service) -> None:
    """However its messages died: the budget spent, permanent, or by policy; in pages, the largest first."""
    service.call("queue.create", shapes.QueueCreate(name="jobs", max_retries=0))
    failed(service, BAD)
    failed(service, BAD, permanent=True)
    failed(service, OTHER)
    first = groups(service, limit=1)
    assert [(group.fingerprint, group.count) for group in first.items] == [(BAD, 2)]
    assert first.items[0].first_dead_at <= first.items[0].last_dead_at
    assert first.items[0].error.type == "Boom"
    second = groups(service, limit=1, cursor=first.next_cursor)
    assert [(group.fingerprint, group.count) for group in second.items] == [(OTHER, 1)]
    assert second.next_cursor is None
    with pytest.raises(InvalidRequest, match="cursor"):
        groups(service, cursor="next")


def test_a_key_that_may_not_see_the_queue(service: Service) -> None:
    """It neither sets nor sees policies; one that may, does (control)."""
    failed(service, BAD)
    other, own = (Caller("k", "k", ("operate",), (pattern,)) for pattern in ("game-*", "jobs"))
    with pytest.raises(QueueNotFound):
        judge(service, "hold", caller=other)
    with pytest.raises(QueueNotFound):
        service.call("queue.dlq.policies", shapes.FingerprintPolicyList(queue="jobs"), caller=other)
    assert failed(service, BAD).state == "delayed"
    assert judge(service, "hold", caller=own).actor == "k"


def test_policies_come_in_pages(service: Service) -> None:
    """By fingerprint, each once."""
    service.call("queue.create", shapes.QueueCreate(name="jobs"))
    every = [f"{n:016x}" for n in range(5)]
    for cause in reversed(every):
        judge(service, "reject", cause)
    found: list[str] = []
    cursor = None
    while True:
        asked = shapes.FingerprintPolicyList(queue="jobs", limit=2, cursor=cursor)
        page = service.call("queue.dlq.policies", asked)
        found += [rule.fingerprint for rule in page.items]
        assert len(page.items) <= 2
        cursor = page.next_cursor
        if cursor is None:
            break
    assert found == every


@pytest.mark.parametrize("wrong", ["x", BAD[:-1], BAD.upper(), "g" * 16, BAD[:-1] + "\n", "٣" * 16])
def test_what_is_no_fingerprint_is_refused(service: Service, wrong: str) -> None:
    """It would never be found, and the policy would seem to hold; field, wanted and actual are named."""
    failed(service, BAD)
    with pytest.raises(InvalidRequest, match="fingerprint must be 16 digits of 0-9 and a-f, got") as refused:
        judge(service, "hold", wrong)
    assert (refused.value.details or {})["field"] == "fingerprint"
    assert (refused.value.details or {})["actual"] == wrong


def test_where_a_policy_cannot_stand(service: Service) -> None:
    """A queue that is not there, and a dead-letter queue, where nothing has a budget."""
    with pytest.raises(QueueNotFound):
        judge(service, "hold")
    failed(service, BAD, permanent=True)
    with pytest.raises(Conflict, match=r"jobs\.dlq is a dead-letter queue"):
        judge(service, "hold", queue="jobs.dlq")
