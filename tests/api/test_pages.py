"""What is beside /v1: health, metrics, OpenAPI, docs."""

from __future__ import annotations

import json
import re

import pytest

from redrive.contract import CAPABILITIES, shapes
from redrive.contract.examples import EXAMPLES
from redrive.contract.openapi import openapi
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


def test_every_page_is_public_or_guarded_by_decision(stand: StandService) -> None:
    """A page that is added must be named here: what needs no key tells nothing about queues."""
    public, guarded = {"/", "/healthz", "/readyz", "/openapi.json", "/docs"}, {"/metrics"}
    with running(stand, host="0.0.0.0") as server:
        paths = {getattr(route, "path", "") for route in server.application.pages.routes}
        statuses = {path: _anyone(f"http://127.0.0.1:{server.port}", path).status for path in paths}
    assert paths == public | guarded
    assert {path for path, status in statuses.items() if status == 401} == guarded
    assert stand.seen == []


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


def test_a_full_disk_is_told_and_is_no_reason_to_stop_sending(stand: StandService) -> None:
    """Ready, for acks and reads go on; the words and the gauge say what does not."""
    stand.answers["queue.list"] = shapes.QueuePage(items=[])
    found = []
    with running(stand) as server:
        for stand.disk in (None, "no room on the disk"):
            ready, metrics = _anyone(server.url, "/readyz"), _anyone(server.url, "/metrics")
            found.append((ready.status, ready.body, b"redrive_storage_full 1.0" in metrics.body))
    assert found == [
        (200, b"ready\n", False),
        (200, b"ready for all but new work: no room on the disk\n", True),
    ]


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


def test_metrics_show_a_limited_key_its_own_queues(live: Caller) -> None:
    """As every other answer: what is outside of the key's pattern is not there."""
    for queue in ("shown-a", "hidden-a"):
        assert live.post("/v1/queue/publish", {"queue": queue, "payload": 1}).status == 200
    fields = {"name": "m", "scopes": ["metrics"], "queues": ["shown*"]}
    secret = live.post("/v1/account/keys/create", fields).data["secret"]
    with running(live.service, host="0.0.0.0") as server:
        url = f"http://127.0.0.1:{server.port}"
        narrow, whole = (Caller(url, key).get("/metrics").body.decode() for key in (secret, live.key))
    assert 'queue="shown-a"' in narrow
    assert "hidden-a" not in narrow
    assert 'queue="hidden-a"' in whole


def test_metrics_have_every_number_of_the_statistics(measured: StandService) -> None:
    """What queue.stats answers is on the page under the same name; a new number that is not fails here."""
    with running(measured) as server:
        text = _anyone(server.url, "/metrics").body.decode()
    named = {name for name in shapes.QueueStats.__struct_fields__ if name != "queue"}
    shown = set(re.findall(r'^redrive_queue_(\w+)\{[^}]*queue="settlement"', text, re.MULTILINE))
    assert named == shown
    assert text.count("# HELP ") == text.count("# TYPE ") >= len(named)
    for line in text.splitlines():
        assert re.fullmatch(r"# (HELP|TYPE) .+|\w+(\{[^}]*\})? [0-9.e+]+", line), line


def test_metrics_take_any_name_of_a_queue(measured: StandService) -> None:
    """A name that could end a label's text cannot be made; the page is read line by line all the same."""
    measured.answers["queue.list"] = shapes.QueuePage(
        items=[shapes.QueueRecord(**{**RECORD, "name": 'a"}\n1 ' + "\\"})]
    )
    stats = {**STATS, "queue": 'a"}\n1 \\', "service_time_ms": shapes.Percentiles()}
    measured.answers["queue.stats"] = shapes.QueueStats(**stats)
    with running(measured) as server:
        text = _anyone(server.url, "/metrics").body.decode()
    assert 'queue="a\\"}\\n1 \\\\"' in text


def test_metrics_are_not_read_when_a_key_is_wrong(measured: StandService) -> None:
    """The control of the key: nothing is asked of the service before it is judged."""
    measured.answers.clear()
    with running(measured, host="0.0.0.0") as server:
        assert Caller(f"http://127.0.0.1:{server.port}", "wrong").get("/metrics").status == 401


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/openapi.json", "/docs", "/metrics"])
def test_pages_answer_head_and_refuse_the_rest(call: Caller, stand: StandService, path: str) -> None:
    """HEAD as GET without a body; 405 with Allow and the envelope for the others."""
    stand.answers["queue.list"] = shapes.QueuePage(items=[])
    head = call("HEAD", path)
    assert (head.status, head.body) == (200, b"")
    for method in ("POST", "DELETE", "OPTIONS"):
        refused = call(method, path)
        assert (refused.status, refused.error["code"]) == (405, "METHOD_NOT_ALLOWED")
        assert "GET" in refused.headers["allow"]


def test_openapi_is_the_documents_own_words(call: Caller) -> None:
    """What the server hands out is what the declaration writes."""
    document = json.loads(_anyone(call.url, "/openapi.json").body)
    assert document == json.loads(openapi())
    assert document["openapi"].startswith("3.1")
    operations = [o for item in document["paths"].values() for o in item.values()]
    assert len({o["operationId"] for o in operations}) == len(operations)
    for operation in operations:
        assert {"200", "400", "401", "403", "422", "429", "500", "503"} <= operation["responses"].keys()
