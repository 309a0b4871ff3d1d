"""net/http: a health probe that escapes every queue name, reads at most so much, and matches raw text."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from tests.system.programs.manners import Go
from tests.system.programs.wire import tell

NAMES = ["probe.eu_west-1", "a/b", "über", "a b", "%61", "no.such.queue", "q?x=1", "", ".."]
BOUND_BYTES = 4_096  # io.LimitReader


def main() -> dict[str, Any]:
    """Stats of names that exist, that do not, and that no queue can have."""
    go = Go()
    go.call("POST", "/v1/queue/publish", {"queue": NAMES[0], "payload": 1}).data  # noqa: B018
    found: dict[str, Any] = {}
    for name in NAMES:
        answer = go.call("GET", f"/v1/queue/stats/{quote(name, safe='')}")
        text = answer.body[:BOUND_BYTES].decode()
        error = json.loads(text).get("error")
        found[name] = {
            "status": answer.status,
            "ok": '"ok":true' in text,
            "missing": bool(error) and "not found" in error["message"] and error["http_status"] == 404,
        }
    dotted = go.call("GET", "/v1/queue/stats/probe%2Eeu%5Fwest%2D1")
    reading = dotted.json["data"]
    return {
        "found": found,
        "escaped_letters": dotted.status,
        "whole": len(dotted.body) == int(dotted.headers["content-length"]) <= BOUND_BYTES,
        "ready": reading["ready"],
        "numbers": sorted(name for name, value in reading.items() if type(value) in (int, float)),
        "created_by_probing": [
            item["name"]
            for item in go.call("GET", "/v1/queue/list?limit=1000").data["items"]
            if item["name"] == "no.such.queue"
        ],
        "connections": go.connection.opened,
    }


if __name__ == "__main__":
    tell(main())
