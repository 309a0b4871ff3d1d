"""requests: a nightly schedule that publishes jobs into a queue, and one that calls a URL, by older names."""

from __future__ import annotations

from typing import Any

from tests.system.programs.manners import Requests
from tests.system.programs.wire import tell

QUEUE = "cron-jobs"
HOOK = "https://hooks.example.invalid/nightly"


def main() -> dict[str, Any]:
    """Create both, trigger one, read its run and its job; pause, resume, list and delete."""
    session = Requests()

    def post(path: str, **fields: Any) -> Any:
        return session.call("POST", path, fields).data

    nightly = post(
        "/v1/cron/create",
        cron_expr="0 3 * * *",
        name="nightly",
        timezone="Europe/Berlin",
        publish={"queue": QUEUE, "payload": {"window": "${scheduled_at}", "run": "${run_id}"}},
    )
    hooked = post(
        "/v1/scheduling/cron/create", schedule="@daily", task_url=HOOK, task_type="http_url", retries=2
    )
    run_id = post(f"/v1/cron/trigger/{nightly['job_id']}")
    (message,) = post("/v1/queue/consume", queue=QUEUE, wait_seconds=20)["messages"]
    runs = session.call("GET", f"/v1/cron/runs/list/{nightly['cron_id']}").data["items"]
    listed = session.call("GET", "/v1/scheduling/cron").data["items"]
    paused = post(f"/v1/cron/pause/{hooked['id']}")
    resumed = post(f"/v1/cron/resume/{hooked['id']}")
    deleted = [session.call("DELETE", f"/v1/cron/delete/{job['id']}").status for job in (nightly, hooked)]
    missing = session.call("GET", f"/v1/cron/get/{nightly['id']}")
    return {
        "first_field": next(iter(nightly)),
        "one_id": len({nightly["job_id"], nightly["cron_id"], nightly["id"]}),
        "hook": (hooked["url"], hooked["task"], hooked["schedule"], bool(hooked["secret"])),
        "triggered": bool(run_id),
        "payload": message["payload"] == {"window": runs[0]["scheduled_at"], "run": runs[0]["run_id"]},
        "run": runs[0]["status"],
        "listed": {nightly["id"], hooked["id"]} <= {item["id"] for item in listed},
        "enabled": [paused["enabled"], resumed["enabled"]],
        "deleted": deleted,
        "missing": (missing.status, missing.code),
    }


if __name__ == "__main__":
    tell(main())
