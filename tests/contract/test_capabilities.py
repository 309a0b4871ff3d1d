"""The table: what derives from it agrees with it."""

from __future__ import annotations

import json
import re

import msgspec
import pytest

from redrive.api.envelope import data_bytes
from redrive.contract import CAPABILITIES, Capability
from redrive.contract.capability import parameter_of
from redrive.contract.discovery import discovery, discovery_of
from redrive.contract.openapi import openapi
from redrive.contract.reference import reference
from redrive.contract.routing import resolve
from redrive.contract.shapes.keys import SCOPES
from redrive.domain.errors import MethodNotAllowed, NotFound

EACH = pytest.mark.parametrize("capability", CAPABILITIES, ids=lambda capability: capability.id)


@EACH
def test_every_route_leads_to_its_capability(capability: Capability) -> None:
    """Also by its other paths, with a slash at the end, and with an escaped parameter."""
    for method, path in capability.routes:
        found, params = resolve(method, re.sub(r"\{\w+\}", "a%2Eb", path) + "/")
        assert found is capability
        assert params == ({parameter_of(path): "a.b"} if "{" in path else {})


@EACH
def test_its_documents_describe_it(capability: Capability) -> None:
    """Discovery has schemas, errors, limits and examples by language; the page has every answer."""
    document = json.loads(discovery_of(capability.id))
    assert document["id"] == capability.id
    assert document["params"]["$schema"].endswith("2020-12/schema")
    assert {error["code"] for error in document["errors"]} == {error.code for error in capability.all_errors}
    assert {"curl", "python", "javascript", "go"} <= document["examples"].keys()
    page = reference()
    section = page[page.index(f"### {capability.id}\n") :]
    section = section[: section.find("\n### ", 5)]
    for error in capability.all_errors:
        assert f"{error.http_status} {error.code}" in section


@EACH
def test_its_example_answer_has_its_shape(capability: Capability) -> None:
    """The answer's struct reads the example and misses nothing."""
    text = msgspec.json.encode(capability.answer_example)
    answer = msgspec.json.decode(text, type=capability.answer)
    written = json.loads(data_bytes(answer))
    assert written.keys() >= capability.answer_example.keys()


def test_ids_and_routes_are_unique_and_scopes_known() -> None:
    """One capability a route."""
    routes = [route for capability in CAPABILITIES for route in capability.routes]
    assert len(set(routes)) == len(routes)
    assert len({capability.id for capability in CAPABILITIES}) == len(CAPABILITIES)
    assert {capability.scope for capability in CAPABILITIES} <= {*SCOPES, "any"}


def test_discovery_lists_the_queue_capabilities_of_module_scheduling() -> None:
    """As programs for the hosted API look them up."""
    document = json.loads(discovery())
    assert document["version"] == "v1"
    listed = [
        c for c in document["capabilities"] if c["module"] == "scheduling" and c["namespace"] == "queue"
    ]
    assert {"queue.publish", "queue.consume", "queue.ack"} <= {c["id"] for c in listed}
    assert all(c["available"] and c["billing"] == {"is_billable": False, "free": True} for c in listed)


def test_openapi_has_every_route_and_no_loose_reference() -> None:
    """Every reference resolves inside of the document."""
    text = openapi().decode()
    document = json.loads(text)
    routes = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    assert routes == {route for capability in CAPABILITIES for route in capability.routes}
    names = set(re.findall(r'"\$ref":"#/components/schemas/(\w+)"', text))
    assert names <= document["components"]["schemas"].keys()
    assert text.count('"$ref"') == len(re.findall(r'"\$ref":"#/components/schemas/', text))


def test_unknown_paths_and_methods() -> None:
    """404 and 405, with what would be right."""
    for path in ("/v1/queue/nothing", "/v1/queue/get/", "/v1/queue/get/a/b", "/v1/queue/get/%ff"):
        with pytest.raises(NotFound, match="not found"):
            resolve("GET", path)
    with pytest.raises(MethodNotAllowed) as refused:
        resolve("PUT", "/v1/queue/publish")
    assert refused.value.details == {"allow": ["POST"]}
    with pytest.raises(NotFound, match="not found"):
        discovery_of("queue.nothing")
