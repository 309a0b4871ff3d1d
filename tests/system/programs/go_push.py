"""net/http: a service that subscribes its webhook to a queue, looks, and leaves."""

from __future__ import annotations

from typing import Any

from tests.system.programs.manners import Go
from tests.system.programs.wire import tell

QUEUE = "go-push"
HOOK = "https://hooks.example.invalid/jobs"


def main() -> dict[str, Any]:
    """An unknown queue first, then a subscription made, listed and ended; another scheme is refused."""
    go = Go()
    subscribe = f"/v1/queue/push_subscribe/{QUEUE}"
    unknown = go.call("POST", subscribe, {"url": HOOK})
    go.call("POST", "/v1/queue/create", {"name": QUEUE}).data  # noqa: B018 - raises unless it was done
    made = go.call("POST", subscribe, {"url": HOOK, "secret": None, "max_in_flight": 2}).data
    scheme = go.call("POST", subscribe, {"url": "ftp://hooks.example.invalid/"})
    listed = go.call("GET", f"/v1/queue/push_list/{QUEUE}").data["items"]
    ended = go.call("DELETE", f"/v1/queue/push_unsubscribe/{QUEUE}/{made['id']}")
    return {
        "unknown": (unknown.status, unknown.code),
        "made": (made["queue"], made["subscribed"]),
        "scheme": (scheme.status, scheme.code),
        "listed": [item["id"] for item in listed] == [made["id"]],
        "ended": ended.status,
        "left": go.call("GET", f"/v1/queue/push_list/{QUEUE}").data["items"],
    }


if __name__ == "__main__":
    tell(main())
