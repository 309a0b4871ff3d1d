"""Every operator action leaves a row: who by key and by their own word, what, why, and what came of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from redrive.compose import open_service
from redrive.contract.capabilities import CAPABILITIES
from redrive.domain import limits
from redrive.service import ServiceSettings
from redrive.service.batching import SLICE
from tests.api.conftest import SECRET, running
from tests.api.wire import Caller, Reply

# reading, or asked of nobody's queue: no action
NO_ACTIONS = {"redrive.estimate"}
ACTIONS = {c.id for c in CAPABILITIES if c.scope in ("operate", "admin") and c.method != "GET"} - NO_ACTIONS
Send = Callable[..., Reply]


def actor(name: str) -> dict[str, str]:
    """The header, whose bytes the client takes as Latin-1."""
    return {"X-Redrive-Actor": name.encode().decode("latin-1")}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Caller]:
    """A server with a store of its own and a place for backups."""
    settings = ServiceSettings(api_key=SECRET, backup_directory=tmp_path / "backups")
    service = open_service(f"sqlite:///{tmp_path / 'jobs.db'}", settings)
    service.start(first_key=True)
    with running(service) as server:
        yield Caller(server.url, SECRET, service)
    service.close()


def dead(call: Caller, count: int) -> list[str]:
    """Dead letters of ``jobs``; their ids."""
    messages = [{"payload": n, "job_key": f"job-{n}"} for n in range(count)]
    call.post("/v1/queue/publish_batch", {"queue": "jobs", "messages": messages})
    held = call.post("/v1/queue/consume", {"queue": "jobs", "max_messages": count}).data["messages"]
    for message in held:
        call.post("/v1/queue/nack", {"message_id": message["message_id"], "permanent": True})
    return [message["message_id"] for message in held]


def act(call: Caller, send: Send) -> Iterator[tuple[str, str]]:
    """Each action once, through ``send(method, path, body)``; the capability and what the log calls it."""
    send("POST", "/v1/queue/create", {"name": "jobs"})
    yield "queue.create", "queue.create"
    send("POST", "/v1/queue/update", {"name": "jobs", "max_retries": 2})
    yield "queue.update", "queue.update"
    for verb in ("pause", "resume"):
        send("POST", f"/v1/queue/{verb}/jobs", {"reason": "a reason"})
        yield f"queue.{verb}", f"queue.{verb}"
    message_id = call.post("/v1/queue/publish", {"queue": "jobs", "payload": 1}).data["message_id"]
    send("POST", "/v1/queue/cancel", {"queue": "jobs", "message_id": message_id})
    yield "queue.cancel", "message.cancel"
    policy = {"fingerprint": "0123456789abcdef", "policy": "hold", "reason": "a reason"}
    send("POST", "/v1/queue/dlq/policy/jobs", policy)
    yield "queue.dlq.policy", "dlq.policy"
    first, second, third = dead(call, 3)
    send("POST", "/v1/queue/dlq/redrive/jobs", {"message_ids": [first], "reason": "a reason"})
    yield "queue.dlq.redrive", "dlq.redrive"
    plan = {"queue": "jobs", "select": {"message_ids": [second, third]}, "reason": "a reason"}
    slow = {"rate_per_second": 0.01}
    plan_id = send("POST", "/v1/redrive/plan", {**plan, "envelope": slow}).data["plan_id"]
    yield "redrive.plan.create", "plan.create"
    evidence = {"job_key": "job-2", "completed_at": "2026-10-23T02:00:00.000Z", "result_hash": "ab"}
    items = [{"message_id": third, "evidence": evidence}]
    send("POST", f"/v1/redrive/plan/{plan_id}/resolve", {"items": items})
    yield "redrive.plan.resolve", "plan.resolve"
    for verb in ("start", "pause", "resume", "abort"):
        send("POST", f"/v1/redrive/plan/{plan_id}/{verb}", {"reason": "a reason"})
        yield f"redrive.plan.{verb}", f"plan.{verb}"
    token = call.post("/v1/queue/purge/jobs").error["details"]["confirm"]
    send("POST", "/v1/queue/purge/jobs", {"confirm": token, "reason": "a reason"})
    yield "queue.purge", "queue.purge"
    send("DELETE", "/v1/queue/delete/jobs?reason=a+reason", None)
    yield "queue.delete", "queue.delete"
    key_id = send("POST", "/v1/account/keys/create", {"name": "night"}).data["id"]
    yield "account.keys.create", "key.create"
    for verb in ("rotate", "revoke"):
        send("POST", f"/v1/account/keys/{verb}/{key_id}", {})
        yield f"account.keys.{verb}", f"key.{verb}"
    send("POST", "/v1/admin/backup", {"name": "copy.db"})
    yield "admin.backup", "admin.backup"


def test_every_action_is_audited(served: Caller) -> None:
    """With key, actor, reason where one was given, and the selection's hash where there is a selection."""

    def send(method: str, path: str, body: Any) -> Reply:
        given = None if body is None else json.dumps(body).encode()
        reply = served(method, path, given, actor("Åsa"))
        assert reply.status == 200, reply.body
        return reply

    done = set()
    for capability, action in act(served, send):
        row = served.get("/v1/audit/list?limit=1").data["items"][0]
        assert (row["action"], row["actor"], row["on_behalf_of"]) == (action, "REDRIVE_API_KEY", "Åsa")
        assert row["outcome"] == "done"
        assert row["reason"] == ("a reason" if capability not in _REASONLESS else None), capability
        assert (row["selection_sha256"] is not None) == action.startswith(("plan.", "dlq.redrive")), (
            capability
        )
        done.add(capability)
    assert done == ACTIONS
    assert served.get("/v1/audit/verify").data["broken"] is None


_REASONLESS = {
    "queue.create", "queue.update", "queue.cancel", "redrive.plan.resolve", "account.keys.create",
    "account.keys.rotate", "account.keys.revoke", "admin.backup",
}  # fmt: skip


def test_what_reads_leaves_no_row(served: Caller) -> None:
    """A dry run, an estimate, a purge without its token, lists."""
    dead(served, 2)
    before = served.get("/v1/audit/list").data["items"]
    plan = {"queue": "jobs", "select": {"reason": "rejected"}, "reason": "look", "dry_run": True}
    assert served.post("/v1/redrive/plan", plan).status == 200
    assert served.post("/v1/redrive/estimate", {"queue": "jobs", "select": {}}).status == 200
    assert served.post("/v1/queue/purge/jobs").status == 428
    assert served.get("/v1/queue/dlq/list/jobs").status == 200
    assert served.get("/v1/audit/list").data["items"] == before


def test_a_purge_and_a_delete_leave_counts_and_a_reason(served: Caller) -> None:
    """A purge of several slices begins with a row in the first one's transaction and ends with one."""
    messages = [{"payload": n} for n in range(2 * SLICE + 1)]
    served.post("/v1/queue/publish_batch", {"queue": "big", "messages": messages})
    token = served.post("/v1/queue/purge/big").error["details"]["confirm"]
    assert served.post("/v1/queue/purge/big", {"confirm": token, "reason": "test data"}).data[
        "purged"
    ] == len(messages)
    rows = served.get("/v1/audit/list?queue=big").data["items"]
    assert [(row["outcome"], row["details"], row["reason"]) for row in rows] == [
        ("done", {"purged": len(messages)}, "test data"),
        ("begun", {"purged": SLICE}, "test data"),
    ]
    served.post("/v1/queue/publish_batch", {"queue": "big", "messages": messages[:3]})
    assert served("DELETE", "/v1/queue/delete/big?reason=moved").data["messages"] == 3
    row = served.get("/v1/audit/list?queue=big").data["items"][0]
    counts = {"ready": 3, "delayed": 0, "waiting": 0, "leased": 0}
    assert (row["action"], row["reason"], row["details"]) == ("queue.delete", "moved", counts)


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_an_actors_name_has_a_limit(served: Caller, more: int) -> None:
    """ACTOR_CHARS_MAX characters, however many bytes."""
    name = "å" * (limits.ACTOR_CHARS_MAX + more)
    reply = served.post("/v1/queue/create", {"name": "jobs"}, actor(name))
    if more <= 0:
        assert reply.status == 200
        assert served.get("/v1/audit/list?limit=1").data["items"][0]["on_behalf_of"] == name
    else:
        assert (reply.status, "at most 80 characters" in reply.error["message"]) == (422, True)


@pytest.mark.parametrize("name", [b"\xff\xfe", b"a\x1bb", b"tab\tbed"])
def test_an_actors_name_is_text(served: Caller, name: bytes) -> None:
    """What could move a cursor in the list is refused."""
    reply = served.post("/v1/queue/create", {"name": "jobs"}, {"X-Redrive-Actor": name.decode("latin-1")})
    assert reply.status == 400
    assert served.get("/v1/audit/list?queue=jobs").data["items"] == []


def test_an_actor_is_no_key(served: Caller) -> None:
    """The key's name stands beside it, whatever the header says."""
    served.post("/v1/queue/create", {"name": "jobs"}, {"X-Redrive-Actor": "system"})
    row = served.get("/v1/audit/list?limit=1").data["items"][0]
    assert (row["actor"], row["on_behalf_of"]) == ("REDRIVE_API_KEY", "system")
