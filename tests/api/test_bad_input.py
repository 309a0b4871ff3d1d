"""Every wrong request is a clear 4xx over the wire, and changes nothing in the store."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from redrive.contract import CAPABILITIES, Capability
from redrive.contract.limits_table import limits_of
from redrive.contract.schemas import params_schema
from tests.api import matrix
from tests.api.matrix import Fault
from tests.api.wire import DEADLINE_SECONDS, Caller, Reply

EACH = pytest.mark.parametrize("capability", CAPABILITIES, ids=lambda capability: capability.id)
MESSAGE_CHARS_MAX = 500


class Line:
    """One kept connection, for many requests."""

    def __init__(self, caller: Caller) -> None:
        parts = urlsplit(caller.url)
        self._connection = http.client.HTTPConnection(
            parts.hostname or "", parts.port, timeout=DEADLINE_SECONDS
        )
        self._key = {"Authorization": f"Bearer {caller.key}"}

    def send(self, method: str, target: str, body: bytes | None, headers: dict[str, str]) -> Reply:
        """One request."""
        self._connection.request(method, target, body, {**self._key, **headers})
        answer = self._connection.getresponse()
        return Reply(answer.status, dict(answer.getheaders()), answer.read())

    def close(self) -> None:
        """Close it."""
        self._connection.close()


@pytest.fixture
def line(live: Caller) -> Iterator[Line]:
    """A kept connection to the real service."""
    made = Line(live)
    yield made
    made.close()


@pytest.fixture(scope="module", autouse=True)
def furnished(live: Caller) -> None:
    """The queue of the examples exists, with a message, a leased one and a dead letter."""
    live.post("/v1/queue/create", {"name": "settlement"})
    for n in range(3):
        live.post("/v1/queue/publish", {"queue": "settlement", "payload": n})
    found = live.post("/v1/queue/consume", {"queue": "settlement", "max_messages": 2, "view": "messages"})
    first = found.data["messages"][0]
    handle = {"message_id": first["message_id"], "receipt_handle": first["receipt_handle"]}
    live.post("/v1/queue/dead_letter", {**handle, "queue": "settlement", "reason": "no"})


def _store(live: Caller) -> list[Any]:
    """What an operator can see of the store."""
    queues = live.get("/v1/queue/list?limit=1000").data["items"]
    seen = [queues, live.get("/v1/audit/list?limit=1000").data, live.get("/v1/account/keys/list").data]
    seen.append(live.get("/v1/redrive/plans").data)
    for queue in queues:
        seen.append(live.get(f"/v1/queue/messages/{queue['name']}").data)
        seen.append(live.get(f"/v1/queue/dlq/list/{queue['name']}").data)
    return seen


def _error(reply: Reply) -> dict[str, Any] | None:
    """The refusal: the answer's, or that of its one entry."""
    document = reply.json
    if reply.status != 200:
        error: dict[str, Any] = document["error"]
        assert (document["ok"], document["data"], error["http_status"]) == (False, None, reply.status)
        return error
    items = document["data"].get("items") or [{}]
    own: dict[str, Any] | None = items[0].get("error")
    return own


def _complaint(fault: Fault, reply: Reply) -> str | None:
    """What is not as it should be, or None."""
    error = _error(reply)
    if error is None:
        return f"{fault.label}: accepted with {reply.status}"
    said = f"{fault.label}: {error}"
    if error["http_status"] not in fault.statuses:
        return said
    if len(error["message"]) > MESSAGE_CHARS_MAX or len(json.dumps(error)) > 4 * MESSAGE_CHARS_MAX:
        return f"{fault.label}: an answer of {len(json.dumps(error))} characters"
    details = error.get("details") or {}
    if fault.names and (details.get("field") != fault.names or fault.names not in error["message"]):
        return said
    if error["code"] == "LIMIT_EXCEEDED" and not {"limit", "actual"} <= details.keys():
        return said
    return None


@EACH
def test_every_fault_is_a_clear_refusal_and_changes_nothing(
    live: Caller, line: Line, capability: Capability
) -> None:
    """The refusal names field, limit and what came, cut to a bounded length; nothing is half done."""
    before = _store(live)
    complaints = []
    for fault in matrix.ALL[capability.id]:
        reply = line.send(capability.method, fault.target, fault.body, fault.headers)
        complaints.append(_complaint(fault, reply))
    assert [said for said in complaints if said] == []
    assert _store(live) == before


@EACH
def test_no_field_is_without_its_faults(capability: Capability) -> None:
    """A field or a bound that is added to the contract is in the matrix, or this fails."""
    tried: dict[str, set[str]] = {}
    for fault in matrix.ALL[capability.id]:
        if fault.about is not None:
            tried.setdefault(str(fault.about.path[0]), set()).add(fault.what)
    aliases = {*capability.field_aliases, "idempotency_key" if capability.method != "POST" else ""}
    assert tried.keys() == params_schema(capability)["properties"].keys() - aliases
    for name, row in limits_of(capability).items():
        wanted = {"minimum": "too small", "maximum": "too large", "max_length": "too long"}
        if name in tried and f"{{{name}}}" not in capability.path:
            assert tried[name] >= {wanted[bound] for bound in row if bound in wanted}, name


def test_faults_inside_of_objects_and_entries_are_there() -> None:
    """The walk goes into what a request holds."""
    names = {fault.about.name for fault in matrix.ALL["queue.publish_batch"] if fault.about}
    assert {"messages[0].priority", "messages[0].headers", "messages[0].job_key"} <= names
    names = {fault.about.name for fault in matrix.ALL["queue.create"] if fault.about}
    assert "retry_policy.factor" in names
    assert sum(map(len, matrix.ALL.values())) > 1_500


def test_the_matrix_sees_an_accepted_fault(live: Caller, line: Line) -> None:
    """Its control: a right request in the place of a wrong one is complained about."""
    fault = next(f for f in matrix.ALL["queue.publish"] if f.what == "too large")
    good = line.send("POST", "/v1/queue/publish", b'{"queue":"control","payload":1}', {})
    assert "accepted" in str(_complaint(fault, good))
    other = line.send("POST", "/v1/queue/publish", b'{"queue":"control"}', {})
    assert _complaint(fault, other) is not None
