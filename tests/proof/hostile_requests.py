"""Thousands of requests drawn from the OpenAPI document, right and wrong ones, against a server process.

Schemathesis draws them and judges the answers: it reads the document as a stranger would, and so sees what
our own reading of it (``tests/api/test_schema.py``) may share with the code. It brings ten small packages;
everything else that it could do (stateful phases, reports) is left aside.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from schemathesis import GenerationMode
from schemathesis.specs.openapi import checks

from redrive.contract.openapi import openapi
from tests.proof.runs import Found, Proof
from tests.system.servers import KEY, SECONDS, ServerProcess

EXAMPLES = 39  # of each operation, each in both modes
CHECKS = [
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
QUEUES = ("a", "b", "fifo", "a.dlq", "none")
SUCCESSES_MIN = 0.1  # of all requests: else they did not reach what they should try
Damage = Callable[[bytes], bytes]


def draw(seed: int, *, examples: int = EXAMPLES, damage: Damage | None = None) -> Found:
    """One round over every operation; ``damage`` is done to answers before they are judged."""
    found, luck = Found(), random.Random(seed)
    document = schemathesis.openapi.from_dict(json.loads(openapi()))
    with tempfile.TemporaryDirectory(prefix="redrive-proof-") as folder, requests.Session() as line:
        line.headers["Authorization"] = f"Bearer {KEY}"
        with ServerProcess(f"sqlite:///{Path(folder) / 'queue.db'}") as server:
            aim = Aim(luck)
            aim.furnish(line, server.url)
            for operation in document.get_all_operations():
                for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                    send = partial(_one, found, aim, line, server.url, damage)
                    _each(operation.ok().as_strategy(generation_mode=mode), seed, examples, send)
            found.expect(server.ready(), "the server is not ready after the requests")
    share = found.counts.get("answered 200", 0) / found.counts["requests"]
    found.expect(share >= SUCCESSES_MIN, f"only {share:.0%} of the requests were successes")
    return found


def _each(strategy: Any, seed: int, examples: int, send: Callable[[Any], None]) -> None:
    @seeded(seed)
    @settings(
        max_examples=examples, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=strategy)
    def run(case: Any) -> None:
        send(case)

    run()


def _one(found: Found, aim: Aim, line: requests.Session, url: str, damage: Damage | None, case: Any) -> None:
    aim(case)
    answer = case.call(base_url=url, session=line, timeout=SECONDS)
    aim.hears(answer)
    if damage is not None:
        answer.content = damage(answer.content)
    found.count("requests")
    found.count(f"answered {answer.status_code}")
    what = f"{case.operation.label} {_told(case)}"
    found.expect(answer.status_code < 500, f"{what}: {answer.status_code} {answer.content[:400]!r}")
    try:
        case.validate_response(answer, checks=CHECKS)
    except* Exception as wrong:
        found.expect(False, f"{what}: {answer.status_code}: {str(wrong.exceptions[0])[:200]}")


def _told(case: Any) -> str:
    """The request in a few words; the key is not in it."""
    parts = (case.path_parameters, case.query, case.body)
    return " ".join(repr(part)[:200] for part in parts if isinstance(part, dict | list | str) and part)


class Aim:
    """Makes requests meet: few names, ids and handles that were given out, and no long waits."""

    def __init__(self, luck: random.Random) -> None:
        self._luck = luck
        self._held = [("0" * 36, "handle")]

    def furnish(self, line: requests.Session, url: str) -> None:
        """Queues of both types, with messages."""
        for body in ({"name": "a", "max_retries": 1}, {"name": "b"}, {"name": "fifo", "type": "fifo"}):
            assert line.post(f"{url}/v1/queue/create", json=body, timeout=SECONDS).status_code == 200
        for number in range(200):
            body = {"queue": "a", "payload": number}
            assert line.post(f"{url}/v1/queue/publish", json=body, timeout=SECONDS).status_code == 200

    def __call__(self, case: Any) -> None:
        """Half of the requests are aimed."""
        aimed = self._luck.random() < 0.5
        for place in (case.path_parameters, case.query, case.body):
            if isinstance(place, dict):
                if isinstance(place.get("wait_seconds"), int | float):
                    place["wait_seconds"] = self._luck.choice((0, 0.01))
                if aimed:
                    self._fill(place)

    def _fill(self, place: dict[str, Any]) -> None:
        for name in ("queue", "name"):
            if isinstance(place.get(name), str):
                place[name] = self._luck.choice(QUEUES)
        message_id, handle = self._luck.choice(self._held)
        items = place.get("items")  # of any type: half of what is drawn is wrong
        for part in [place, *(items if isinstance(items, list) else [])]:
            if isinstance(part, dict) and isinstance(part.get("message_id"), str):
                part["message_id"] = message_id
                if isinstance(part.get("receipt_handle"), str):
                    part["receipt_handle"] = handle

    def hears(self, answer: Any) -> None:
        """Remember what an answer delivered."""
        if answer.status_code == 200 and b'"receipt_handle"' in answer.content:
            messages = json.loads(answer.content)["data"].get("messages") or []
            self._held += [(each["message_id"], each["receipt_handle"]) for each in messages]
            del self._held[1:-20]


def _without_metadata(answer: bytes) -> bytes:
    return answer.replace(b'"metadata":', b'"meta":')


PROOFS = (
    Proof(
        "hostile-requests",
        "Whatever is asked within HTTP, no answer is a 5xx and every one is as its OpenAPI document says.",
        "requests",
        100_000,
        draw,
        {"metadata in answers": partial(draw, examples=1, damage=_without_metadata)},
    ),
)
