"""axios: a deployment that creates its queue four times under one key and waits as long as it is told.

With IMPATIENT in the environment it does not wait: the control.
"""

from __future__ import annotations

import os
import threading
from typing import Any

from tests.system.programs.manners import Axios
from tests.system.programs.wire import Answer, tell

FIELDS = {"name": "js-deploy", "max_retries": 7}
KEY = {"Idempotency-Key": "deploy-js-deploy"}
CREATES = 4
TRIES_MAX = 12
PATIENT = "IMPATIENT" not in os.environ


def main() -> dict[str, Any]:
    """Four answers to the same create, through as many 429s as it takes."""
    axios = Axios()
    refused: list[Answer] = []
    made: list[Answer] = []
    for _ in range(TRIES_MAX if PATIENT else CREATES):
        answer = axios.call("POST", "/v1/queue/create", FIELDS, KEY)
        if answer.status == 429:
            refused.append(answer)
            if PATIENT:
                threading.Event().wait(int(answer.headers["retry-after"]))
            continue
        made.append(answer)
        if len(made) == CREATES:
            break
    return {
        "made": [(answer.status, answer.cache_hit) for answer in made],
        "records": len({str(answer.data) for answer in made}),
        "refused": len(refused),
        "envelopes": [answer.json for answer in refused],
        "headers": [
            {name: answer.headers.get(name) for name in ("retry-after", "ratelimit", "ratelimit-policy")}
            for answer in refused
        ],
        "connections": axios.connection.opened,
    }


if __name__ == "__main__":
    tell(main())
