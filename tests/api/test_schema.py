"""Requests drawn from the OpenAPI document, right and spoiled ones: no 5xx, answers as it describes."""

from __future__ import annotations

import copy
import http.client
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from redrive.contract.openapi import openapi
from tests.api.schema import ANYTHING, TEXT, Schemas
from tests.api.wire import DEADLINE_SECONDS, Caller, Reply

DOCUMENT = json.loads(openapi())
SCHEMAS = Schemas(DOCUMENT["components"]["schemas"])
OPERATIONS = [
    (method.upper(), path, operation)
    for path, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
]
# few names, so that requests meet; few seconds, so that nobody waits
NAMES = st.sampled_from(["a", "b", "a.dlq", "fifo", "none"])
KNOWN: dict[str, st.SearchStrategy[Any]] = {
    "queue": NAMES,
    "name": NAMES,
    "dead_letter_queue": NAMES,
    "wait_seconds": st.sampled_from([0, 0.01, 20.5]),
    "message_id": st.none(),
    "receipt_handle": st.none(),
}


class Pool:
    """A connection to the real service, and the ids and handles that it has given out."""

    def __init__(self, live: Caller) -> None:
        parts = urlsplit(live.url)
        self._line = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=DEADLINE_SECONDS)
        self._key = {"Authorization": f"Bearer {live.key}"}
        self._held: list[tuple[str, str]] = [("0" * 36, "handle")]
        self.answered: Counter[int] = Counter()

    def fill(self, body: Any, number: int) -> None:
        """Put an id and its handle where the request has room for them."""
        for part in [body, *(body.get("items") or [])] if isinstance(body, dict) else []:
            message_id, handle = self._held[number % len(self._held)]
            if isinstance(part, dict):
                given = {"message_id": message_id, "receipt_handle": handle}
                part.update({name: value for name, value in given.items() if part.get(name, "") is None})

    def send(self, method: str, target: str, body: bytes | None, headers: dict[str, str]) -> Reply:
        """One request; what it delivers is remembered."""
        self._line.request(method, target, body, {**self._key, **headers})
        answer = self._line.getresponse()
        reply = Reply(answer.status, dict(answer.getheaders()), answer.read())
        self.answered[reply.status] += 1
        if reply.status == 200:
            found = reply.json["data"].get("messages")
            if isinstance(found, list):
                self._held += [(m["message_id"], m["receipt_handle"]) for m in found]
            del self._held[1:-20]
        return reply

    def close(self) -> None:
        """Close the connection."""
        self._line.close()


@pytest.fixture(scope="module")
def pool(live: Caller) -> Iterator[Pool]:
    """Queues of both types with messages in them."""
    live.post("/v1/queue/create", {"name": "fifo", "type": "fifo"})
    live.post("/v1/queue/create", {"name": "a", "retry_policy": {"base_seconds": 0}, "max_retries": 1})
    made = Pool(live)
    yield made
    made.close()


def _query(operation: dict[str, Any], draw: Any) -> tuple[dict[str, str], dict[str, str]]:
    path, query = {}, {}
    for parameter in operation["parameters"]:
        name, place = parameter["name"], parameter["in"]
        if place == "header":
            continue
        drawn = draw(KNOWN[name] if name == "queue" else SCHEMAS.values(parameter["schema"], KNOWN))
        if place == "path":
            path[name] = str(drawn or "x")
        elif drawn is not None and draw(st.booleans()):
            query[name] = str(drawn)
    return path, query


def _spoiled(body: Any, draw: Any) -> Any:
    """The body with one member replaced, taken out or added, somewhere."""
    spoiled = copy.deepcopy(body)
    places = [spoiled]
    for place in places:
        if isinstance(place, dict | list):
            inner = place.values() if isinstance(place, dict) else place
            places += [value for value in inner if isinstance(value, dict | list)]
    place = draw(st.sampled_from(places))
    if isinstance(place, list):
        place.append(draw(ANYTHING))
    elif place and draw(st.booleans()):
        place[draw(st.sampled_from(sorted(place)))] = draw(ANYTHING)
    else:
        place[draw(TEXT)] = draw(ANYTHING)
    return spoiled


def _complaints(reply: Reply, operation: dict[str, Any]) -> list[str]:
    described = operation["responses"].get(str(reply.status))
    if reply.status >= 500 and reply.status != 503:
        return [f"{reply.status}: {reply.body!r}"]
    if described is None:
        return [f"{reply.status} is not described: {reply.body!r}"]
    return SCHEMAS.complaints(reply.json, described["content"]["application/json"]["schema"])


@pytest.mark.parametrize(
    ("method", "path", "operation"),
    OPERATIONS,
    ids=[operation["operationId"] for *_, operation in OPERATIONS],
)
@settings(
    max_examples=20, deadline=None, phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
@given(data=st.data())
def test_answers_are_as_described(
    pool: Pool, method: str, path: str, operation: dict[str, Any], data: st.DataObject
) -> None:
    """Every operation with a score of requests; half of them spoiled."""
    named, query = _query(operation, data.draw)
    target = path
    for name, value in named.items():
        target = target.replace(f"{{{name}}}", quote(value, safe=""))
    if query:
        target += "?" + urlencode(query)
    raw: bytes | None = None
    headers: dict[str, str] = {}
    if "requestBody" in operation:
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        body = data.draw(SCHEMAS.values(schema, KNOWN))
        pool.fill(body, data.draw(st.integers(0, 20)))
        if data.draw(st.booleans()):
            body = _spoiled(body, data.draw)
        raw = json.dumps(body).encode()
        if data.draw(st.booleans()):
            headers["Prefer"] = "handling=strict"
    reply = pool.send(method, target, raw, headers)
    assert _complaints(reply, operation) == []


def test_the_requests_reached_the_service(pool: Pool) -> None:
    """The control: a right request is a right one, and answers that are not as described are seen."""
    operation = DOCUMENT["paths"]["/v1/queue/publish"]["post"]
    reply = pool.send("POST", "/v1/queue/publish", b'{"queue":"a","payload":1}', {})
    assert _complaints(reply, operation) == []
    document = reply.json
    for spoiled in (
        {**document, "data": {}},
        {**document, "data": {"message_id": 5, "duplicate": False}},
        {**document, "ok": 1.5},
        {name: value for name, value in document.items() if name != "metadata"},
    ):
        assert _complaints(Reply(200, {}, json.dumps(spoiled).encode()), operation) != []
    assert _complaints(Reply(500, {}, b"{}"), operation) != []
    assert _complaints(Reply(418, {}, b"{}"), operation) != []
