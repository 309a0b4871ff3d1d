"""What is beside /v1: health, metrics, OpenAPI, docs."""

from __future__ import annotations

import json

import pytest

from redrive.contract import CAPABILITIES, shapes
from redrive.contract.examples import EXAMPLES
from redrive.domain.errors import QueueNotFound
from tests.api.conftest import running
from tests.api.stand import KEY, StandService, caller
from tests.api.wire import Caller, Reply

RECORD, STATS = EXAMPLES["queue.get"][1], EXAMPLES["queue.stats"][1]


def _anyone(url: str, path: str) -> Reply:
    return Caller(url, None).get(path)


def test_public_pages_need_no_key(call: Caller) -> None:
    """Health, readiness, OpenAPI, docs, discovery."""
    for path in ("/healthz", "/readyz", "/openapi.json", "/docs", "/v1/discovery", "/v1/discovery/queue.ack"):
        assert _anyone(call.url, path).status == 200, path
    assert _anyone(call.url, "/v1/discovery/nothing").status == 404


def test_docs_show_every_capability_without_scripts(call: Caller) -> None:
    """One page, nothing fetched from elsewhere."""
    reply = _anyone(call.url, "/docs")
    page = reply.body.decode()
    assert all(f'id="{capability.id}"' in page for capability in CAPABILITIES)
    assert "<script" not in page
    assert "default-src 'none'" in reply.headers["content-security-policy"]


def test_discovery_is_not_enveloped(call: Caller) -> None:
    """Programs read capabilities at the top."""
    document = json.loads(_anyone(call.url, "/v1/discovery").body)
    assert len(document["capabilities"]) == len(CAPABILITIES)


def test_readiness_tells_why_not(stand: StandService) -> None:
    """503 with the reason when the service cannot take work."""
    stand.unready = "the store is read-only"
    with running(stand) as server:
        reply = _anyone(server.url, "/readyz")
    assert (reply.status, reply.body) == (503, b"the store is read-only\n")


@pytest.fixture
def measured(stand: StandService) -> StandService:
    """A service with two queues, one of which is deleted while the metrics are read."""
    second = {**RECORD, "name": "deleted"}
    stand.answers["queue.list"] = shapes.QueuePage(
        items=[shapes.QueueRecord(**RECORD), shapes.QueueRecord(**second)]
    )
    stats = {**STATS, "service_time_ms": shapes.Percentiles(p50=12.0)}
    stand.answers["queue.stats"] = lambda request: (
        shapes.QueueStats(**stats) if request.queue == "settlement" else QueueNotFound("not found")
    )
    return stand


def test_metrics_are_public_on_loopback_and_have_the_numbers(measured: StandService) -> None:
    """Section 6 by queue, and the answers by status."""
    with running(measured) as server:
        _anyone(server.url, "/v1/nothing")
        text = _anyone(server.url, "/metrics").body.decode()
    for line in (
        'redrive_queue_ready{queue="settlement"} 12.0',
        'redrive_queue_published_total{queue="settlement"} 12000.0',
        'redrive_queue_attempts{attempt="1",queue="settlement"} 14.0',
        'redrive_queue_service_time_ms{quantile="0.5",queue="settlement"} 12.0',
        'redrive_requests_total{capability="none",status="404"} 1.0',
    ):
        assert line in text
    assert "deleted" not in text


def test_metrics_need_their_scope_when_others_can_reach_the_server(measured: StandService) -> None:
    """Bound beyond loopback: no key 401, another scope 403, the scope 200."""
    measured.access.callers["m"] = caller("m", "metrics")
    measured.access.callers["p"] = caller("p", "publish")
    with running(measured, host="0.0.0.0") as server:
        url = f"http://127.0.0.1:{server.port}"
        statuses = [Caller(url, key).get("/metrics").status for key in (None, "p", "m", KEY)]
    assert statuses == [401, 403, 200, 200]
