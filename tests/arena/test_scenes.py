"""What the scenes ask of the queue is valid under the contract."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from redrive.arena.jobs import CLEANUP_QUEUE, SETTLEMENT_QUEUE
from redrive.arena.scenes import QUEUES
from redrive.contract import decode
from redrive.contract.routing import resolve
from redrive.transports.routing import contract_routes, cut

ID = "018f3f5e-0000-7000-8000-000000000000"


@pytest.mark.parametrize(
    ("capability_id", "request_fields"),
    [
        *(("queue.create", queue) for queue in QUEUES),
        (
            "queue.publish",
            {"queue": SETTLEMENT_QUEUE, "job_key": "settlement:2026-10-23:a", "payload": {"a": 1}},
        ),
        (
            "queue.publish_batch",
            {
                "queue": CLEANUP_QUEUE,
                "messages": [{"job_key": "k", "payload": {}, "message_group_id": "eu-west"}],
            },
        ),
        ("queue.stats", {"queue": SETTLEMENT_QUEUE}),
        ("queue.messages", {"queue": SETTLEMENT_QUEUE, "limit": 20}),
        ("queue.dlq.list", {"queue": SETTLEMENT_QUEUE}),
        (
            "queue.dlq.redrive",
            {"queue": SETTLEMENT_QUEUE, "message_ids": [ID], "reason": "currency corrected"},
        ),
    ],
)
def test_every_request_is_one_of_the_contract(capability_id: str, request_fields: dict[str, Any]) -> None:
    """Nothing in it is refused, and nothing is ignored."""
    parts = cut(contract_routes()[capability_id], dict(request_fields))
    target = urlsplit(parts.target)
    capability, params = resolve(parts.method, target.path)
    decoded = decode(capability, params, dict(parse_qsl(target.query)), parts.body or b"")
    assert capability.id == capability_id
    assert not decoded.ignored_fields
