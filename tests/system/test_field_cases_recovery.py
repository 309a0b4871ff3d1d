"""Kinds of faults around dead letters that users of other job systems reported; each named after its case.

D1 and D7 are in the engines' conformance suite. What needs load, kills or two nodes is in tests/proof.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from redrive.domain import limits
from redrive.transports import Entry
from redrive.transports.contract_transport import ContractTransport
from tests.database import wait_for
from tests.system.application import QUEUE, dead
from tests.system.servers import SECONDS, ServerProcess

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
FAST = {"rate_per_second": 1_000, "max_in_flight": 1_000}


def bury(client: ContractTransport, count: int, error: str = "Mismatch", **fields: Any) -> list[str]:
    """Jobs that were rejected with this error; their keys."""
    keys = [f"{error}:{n}" for n in range(count)]
    client.publish(QUEUE, [Entry(payload=1, job_key=key, **fields) for key in keys])
    left = set(keys)
    while left:
        for message in take(client):
            told = {"type": error, "message": "no such payment"}
            client.nack(QUEUE, message.message_id, message.receipt_handle, error=told, permanent=True)
            left.discard(message.job_key)
    return keys


def take(client: ContractTransport, wait_seconds: float = 10) -> list[Any]:
    """What there is of the queue."""
    lease = client.consume(
        QUEUE, max_messages=1_000, visibility_timeout=60, wait_seconds=wait_seconds, consumer_id="test"
    )
    return list(lease.messages)


def planned(client: ContractTransport, **fields: Any) -> dict[str, Any]:
    """A plan over the dead letters; a draft."""
    asked = {"queue": QUEUE, "select": {}, "reason": "repaired", "envelope": FAST}
    made: dict[str, Any] = client.call("redrive.plan.create", asked | fields)
    return made


def ran(client: ContractTransport, plan_id: str) -> dict[str, Any]:
    """The plan, started, when nobody is pending any more; what it sent is acknowledged."""
    client.call("redrive.plan.start", {"plan_id": plan_id})

    def over() -> dict[str, Any] | None:
        for message in take(client, wait_seconds=0.2):
            client.ack(QUEUE, [(message.message_id, message.receipt_handle)])
        plan: dict[str, Any] = client.call("redrive.plan.get", {"plan_id": plan_id})
        return plan if plan["state"] == "completed" else None

    found: dict[str, Any] = wait_for(over, SECONDS, "the plan's end")
    return found


def test_d3_the_same_replay_again_sends_nothing_twice(client: ContractTransport) -> None:
    """A plan that is started twice, a second plan over the same ids, and the plain call with its key."""
    bury(client, 5)
    ids = [letter["message_id"] for letter in dead(client).values()]
    first, second = (planned(client, select={"message_ids": ids}) for _ in range(2))
    assert first["members_sha256"] == second["members_sha256"]
    client.call("redrive.plan.start", {"plan_id": first["plan_id"]})
    assert ran(client, first["plan_id"])["counts"] == {"completed": 5}
    assert ran(client, second["plan_id"])["counts"] == {"gone": 5}
    assert dead(client) == {}
    again = client.call("queue.dlq.redrive", {"queue": QUEUE, "message_ids": ids})
    assert (again["redriven"], again["skipped_count"]) == (0, 5)


def test_d5_one_plan_takes_them_all_and_tells_of_each(client: ContractTransport) -> None:
    """No page by page: the server does it, within its rate, and each member has its outcome."""
    bury(client, 1_200)
    plan = planned(client)
    plan_id = plan["plan_id"]

    def frozen() -> bool:
        return bool(client.call("redrive.plan.get", {"plan_id": plan_id})["state"] == "draft")

    wait_for(frozen, SECONDS, "the members to be written down")
    held = take_dead(client)
    done = ran(client, plan_id)
    assert done["counts"] == {"completed": 1_199, "in_use": 1}
    asked = {"plan_id": plan_id, "outcome": "in_use"}
    [item] = client.call("redrive.plan.items", asked)["items"]
    assert (item["message_id"], "leased" in item["detail"]) == (held, True)


def take_dead(client: ContractTransport) -> str:
    """Lease one message from the dead-letter queue; its id."""
    lease = client.consume(
        f"{QUEUE}.dlq", max_messages=1, visibility_timeout=60, wait_seconds=10, consumer_id="operator"
    )
    return str(lease.messages[0].message_id)


def test_d9_what_is_replayed_is_chosen(client: ContractTransport) -> None:
    """By error, cause, job, time, attempts and text; everything else stays."""
    keys = bury(client, 3, "Timeout")
    bury(client, 2, "Mismatch")
    letters = dead(client)
    cause = letters[keys[0]]["fingerprint"]
    for select, count in (
        ({"error_type": "Timeout"}, 3),
        ({"fingerprint": cause}, 3),
        ({"job_key": keys[1]}, 1),
        ({"text": "such payment"}, 5),
        ({"reason": "rejected"}, 5),
        ({"reason": "expired"}, 0),
        ({"attempts_min": 2}, 0),
        ({"since": letters[keys[0]]["dead_at"]}, 5),
        ({"until": letters[keys[0]]["dead_at"]}, 0),
        ({"error_type": "Timeout", "max_messages": 2}, 2),
    ):
        assert planned(client, select=select, dry_run=True)["members"] == count, select
    assert ran(client, planned(client, select={"error_type": "Timeout"})["plan_id"])["counts"] == {
        "completed": 3
    }
    assert {letter["error"]["type"] for letter in dead(client).values()} == {"Mismatch"}


def test_d11_a_count_keeps_nobody_from_acting(client: ContractTransport) -> None:
    """A plan needs no dry run before it; a dry run says whether it saw all (how it is cut: test_survey)."""
    bury(client, 3)
    assert planned(client, dry_run=True)["complete"] is True
    assert ran(client, planned(client)["plan_id"])["counts"] == {"completed": 3}


def test_d13_the_trace_survives_and_unsafe_queues_are_kept(client: ContractTransport) -> None:
    """Under redrive_policy review only named messages go, with a reason; their trace context goes along."""
    client.call("queue.create", {"name": QUEUE, "redrive_policy": "review"})
    client.call("queue.publish", {"queue": QUEUE, "payload": 1, "job_key": "traced", "traceparent": TRACE})
    [message] = take(client)
    client.nack(QUEUE, message.message_id, message.receipt_handle, permanent=True)
    [letter] = dead(client).values()
    assert letter["headers"]["traceparent"] == TRACE
    assert ran(client, planned(client)["plan_id"])["counts"] == {"skipped": 1}
    plan = planned(client, select={"message_ids": [letter["message_id"]]})
    client.call("redrive.plan.start", {"plan_id": plan["plan_id"]})
    [again] = take(client)
    assert again.headers["traceparent"] == TRACE


def test_d15_a_dry_run_is_a_pure_read(client: ContractTransport) -> None:
    """Order, counts, times and leases are as before; run twice, it tells the same."""
    bury(client, 4)
    take_dead(client)
    before = (
        client.call("queue.dlq.list", {"queue": QUEUE}),
        client.call("queue.messages", {"queue": f"{QUEUE}.dlq"}),
    )
    first, second = planned(client, dry_run=True), planned(client, dry_run=True)
    assert first == second
    assert (first["plan_id"], first["members"]) == (None, 4)
    after = (
        client.call("queue.dlq.list", {"queue": QUEUE}),
        client.call("queue.messages", {"queue": f"{QUEUE}.dlq"}),
    )
    assert after == before
    assert client.call("redrive.plan.list", {})["items"] == []


@pytest.mark.parametrize("retention", [60, limits.RETENTION_SECONDS_MAX])
def test_d17_the_clock_of_a_dead_letter_begins_at_its_death(
    server: ServerProcess, client: ContractTransport, retention: int
) -> None:
    """Not at its publish, whatever its queue's retention is (the warning ahead: test_retention)."""
    client.call("queue.create", {"name": QUEUE, "retention_seconds": retention})
    bury(client, 1)
    [letter] = dead(client).values()
    died, ends = (datetime.fromisoformat(letter[name]) for name in ("dead_at", "expires_at"))
    assert round((ends - died).total_seconds()) == limits.DEAD_RETENTION_SECONDS
    assert letter["enqueued_at"] < letter["dead_at"]
