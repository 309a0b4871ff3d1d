"""fetch with a serialiser that knows only doubles: every number has a fraction, also where it is whole."""

from __future__ import annotations

from typing import Any

from tests.system.programs.manners import Fetch
from tests.system.programs.wire import tell

CALLS = {
    "create": '{"name":"js-numbers","max_retries":5.0,"enable_priority":true}',
    "retention": '{"name":"js-retention","retention_seconds":8.64e4,"max_in_flight":50.0}',
    "publish": '{"queue":"js-numbers","payload":{"n":1.0,"big":1e21},"priority":3.0,"delay_seconds":0.0}',
    "publish_batch": '{"queue":"js-numbers","messages":[{"payload":30.0,"priority":9.0,"delay_seconds":0}]}',
    "consume": '{"queue":"js-numbers","max_messages":10.0,"visibility_timeout":30.0,"wait_seconds":0.0}',
    "dlq/redrive/js-numbers": '{"max_messages":10.0}',
}


def main() -> dict[str, Any]:
    """The statuses; and what a fraction in a whole number gets."""
    fetch = Fetch()
    answers = {
        name: fetch.send("POST", f"/v1/queue/{'create' if name == 'retention' else name}", body)
        for name, body in CALLS.items()
    }
    seconds = fetch.send(
        "POST", "/v1/queue/consume", '{"queue":"js-numbers","visibility_timeout":3e1,"wait_seconds":0.0}'
    )
    half = fetch.send("POST", "/v1/queue/consume", '{"queue":"js-numbers","max_messages":1.5}')
    return {
        "statuses": {name: answer.status for name, answer in answers.items()},
        "batch": [item.get("error", {}).get("message") for item in answers["publish_batch"].data["items"]],
        "seconds": (seconds.status, seconds.data["lease_seconds"]),
        "half": (half.status, half.code),
        "listed": fetch.call("GET", "/v1/queue/list?limit=10.0").status,
    }


if __name__ == "__main__":
    tell(main())
