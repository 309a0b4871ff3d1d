"""Keys over the wire: every route × every way in which a key can be wrong, and no secret leaks."""

from __future__ import annotations

import http.client
import io
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import structlog

from redrive.compose import open_service
from redrive.contract import CAPABILITIES, Capability
from redrive.service import ServiceSettings, access
from tests.api.conftest import SECRET, Start, running
from tests.api.matrix import placed
from tests.api.stand import KEY, StandService
from tests.api.wire import DEADLINE_SECONDS, Caller, Reply

EACH = pytest.mark.parametrize("capability", CAPABILITIES, ids=lambda capability: capability.id)
HIDDEN_WORDS = b"hidden-payload-words"


@pytest.fixture(scope="module")
def keys(live: Caller) -> dict[str, str]:
    """One secret of every kind; ``narrow`` is an admin of the queues ``shown*`` alone."""

    def made(**fields: Any) -> dict[str, Any]:
        data: dict[str, Any] = live.post("/v1/account/keys/create", {"name": "n", **fields}).data
        return data

    revoked = made(scopes=["admin"])
    assert live.post(f"/v1/account/keys/revoke/{revoked['id']}").status == 200
    secrets = {
        "expired": made(scopes=["admin"], expires_at="2020-01-01T00:00:00Z")["secret"],
        "revoked": revoked["secret"],
        "narrow": made(scopes=["admin"], queues=["shown*"])["secret"],
    }
    scopes = ("publish", "consume", "operate", "admin", "metrics")
    return {**secrets, **{scope: made(scopes=[scope])["secret"] for scope in scopes}}


@pytest.fixture(scope="module")
def hidden(live: Caller) -> str:
    """A message of a queue outside of the narrow key's pattern; a dead one and a leased one are beside it."""
    ids = []
    for n in range(3):
        body = {"queue": "hidden", "payload": HIDDEN_WORDS.decode(), "job_key": f"hidden-payload-words:{n}"}
        ids.append(live.post("/v1/queue/publish", body).data["message_id"])
    found = live.post("/v1/queue/consume", {"queue": "hidden", "max_messages": 2, "view": "messages"})
    first = found.data["messages"][0]
    handle = {"message_id": first["message_id"], "receipt_handle": first["receipt_handle"]}
    live.post("/v1/queue/dead_letter", {**handle, "queue": "hidden", "reason": "hidden-payload-words"})
    kept: str = ids[-1]
    return kept


def _send(url: str, secret: str | None, capability: Capability, **fields: str) -> Reply:
    target, body = placed(capability, (), None)
    document = json.loads(body) if body is not None else None
    for name, value in fields.items():
        if f"{{{name}}}" in capability.path:
            target = capability.path.replace(f"{{{name}}}", value)
        elif document is not None and name in document:
            document[name] = value
    return Caller(url, secret)(capability.method, target, document)


@EACH
def test_a_key_that_is_wrong_opens_nothing(
    live: Caller, keys: dict[str, str], capability: Capability
) -> None:
    """No key, an unknown, an expired, a revoked one: 401, and the secret is not said back."""
    for kind in (None, "unknown-secret-of-a-key", keys["expired"], keys["revoked"], keys["admin"][:-1]):
        reply = _send(live.url, kind, capability)
        assert (reply.status, reply.error["code"]) == (401, "UNAUTHENTICATED"), capability.id
        assert reply.headers["www-authenticate"].startswith("Bearer")
        assert kind is None or kind.encode() not in reply.body


@EACH
def test_a_missing_scope_is_403(live: Caller, keys: dict[str, str], capability: Capability) -> None:
    """Before the request is read: the refusal names the scope, whatever the body is."""
    for scope in ("publish", "consume", "operate", "metrics"):
        if capability.scope in (scope, "any"):
            continue
        target, _ = placed(capability, (), None)
        reply = Caller(live.url, keys[scope])(capability.method, target, b"{not json")
        assert (reply.status, reply.error["code"]) == (403, "FORBIDDEN"), capability.id
        assert capability.scope in reply.error["message"]


def _without_names(reply: Reply, *names: str) -> str:
    text = re.sub(rb'"(request_id|latency_ms)":("[^"]*"|\d+)', b"", reply.body).decode()
    for name in names:
        text = text.replace(name, "NAME")
    return f"{reply.status} {text}"


BY_QUEUE = [c for c in CAPABILITIES if "queue" in c.example or ("name" in c.example and c.id[:5] == "queue")]


@pytest.mark.parametrize("capability", BY_QUEUE, ids=lambda capability: capability.id)
def test_a_queue_outside_of_the_pattern_looks_as_if_it_were_not_there(
    live: Caller, keys: dict[str, str], hidden: str, capability: Capability
) -> None:
    """The answers for a hidden queue and for none are the same, word for word."""
    there = _send(live.url, keys["narrow"], capability, queue="hidden", name="hidden", message_id=hidden)
    absent = "0" * len(hidden)
    not_there = _send(live.url, keys["narrow"], capability, queue="absent", name="absent", message_id=absent)
    assert _without_names(there, "hidden", hidden) == _without_names(not_there, "absent", absent)
    assert HIDDEN_WORDS not in there.body
    if capability.id not in ("queue.ack", "queue.ack_batch"):  # a settled message is answered as such
        assert (there.status, "not found" in there.error["message"]) == (404, True)
    assert live.get(f"/v1/queue/message/{hidden}").data["state"] == "ready"


# what is not asked for by a queue's name, and the test that shows the limits of a narrow key there
BY_OTHER_NAMES = {
    "queue.message": "test_a_message_outside_of_the_pattern_looks_as_if_it_were_not_there",
    "redrive.message": "test_a_message_outside_of_the_pattern_looks_as_if_it_were_not_there",
    "redrive.job": "test_a_message_outside_of_the_pattern_looks_as_if_it_were_not_there",
    "queue.list": "test_lists_hold_nothing_of_hidden_queues",
    "account.keys.list": "test_lists_hold_nothing_of_hidden_queues",
    "audit.list": "test_lists_hold_nothing_of_hidden_queues",
    **dict.fromkeys(
        [c.id for c in CAPABILITIES if "plan_id" in c.example],
        "test_a_plan_outside_of_the_pattern_looks_as_if_it_were_not_there",
    ),
    "redrive.plan.list": "test_a_plan_outside_of_the_pattern_looks_as_if_it_were_not_there",
    "account.keys.create": "test_keys_outside_of_the_pattern_cannot_be_made_or_changed",
    "account.keys.rotate": "test_keys_outside_of_the_pattern_cannot_be_made_or_changed",
    "account.keys.revoke": "test_keys_outside_of_the_pattern_cannot_be_made_or_changed",
    "admin.backup": "test_a_backup_is_never_served",
}


@pytest.mark.usefixtures("hidden")
def test_a_plan_outside_of_the_pattern_looks_as_if_it_were_not_there(
    live: Caller, keys: dict[str, str]
) -> None:
    """It is not listed, and what is asked of it is answered as for one that never was."""
    wanted = {"queue": "hidden", "select": {"text": "none"}, "reason": "hidden"}
    plan_id = live.post("/v1/redrive/plan", wanted).data["plan_id"]
    narrow = Caller(live.url, keys["narrow"])
    assert {plan["queue"] for plan in narrow.get("/v1/redrive/plans").data["items"]} <= {"shown"}
    absent = "0" * len(plan_id)
    for capability in (c for c in CAPABILITIES if "plan_id" in c.example):
        there = _send(live.url, keys["narrow"], capability, plan_id=plan_id)
        not_there = _send(live.url, keys["narrow"], capability, plan_id=absent)
        assert there.status == 404, capability.id
        assert _without_names(there, plan_id) == _without_names(not_there, absent), capability.id
    assert live.get(f"/v1/redrive/plan/{plan_id}").data["state"] == "draft"


def test_every_capability_is_tried_with_a_narrow_key() -> None:
    """A capability that is added to the contract is in one of the two, or this fails."""
    assert {c.id for c in BY_QUEUE}.isdisjoint(BY_OTHER_NAMES)
    assert {c.id for c in BY_QUEUE} | BY_OTHER_NAMES.keys() == {c.id for c in CAPABILITIES}
    assert all(name in globals() for name in BY_OTHER_NAMES.values())


def test_keys_outside_of_the_pattern_cannot_be_made_or_changed(live: Caller, keys: dict[str, str]) -> None:
    """A narrow admin makes no wider key, and a wider one is not there for it."""
    narrow = Caller(live.url, keys["narrow"])
    wide = live.post("/v1/account/keys/create", {"name": "wide", "scopes": ["operate"]}).data
    made = narrow.post("/v1/account/keys/create", {"name": "w", "queues": ["hidden"]})
    assert (made.status, made.error["code"]) == (403, "FORBIDDEN")
    for verb in ("rotate", "revoke"):
        assert narrow.post(f"/v1/account/keys/{verb}/{wide['id']}").status == 404
    assert Caller(live.url, wide["secret"]).get("/v1/queue/list").status == 200


def test_a_backup_is_never_served(live: Caller, keys: dict[str, str]) -> None:
    """A copy holds every queue: a key for some of them may not order one, whatever its scopes."""
    reply = Caller(live.url, keys["narrow"]).post("/v1/admin/backup", {"name": "copy.db"})
    assert reply.status == 403
    assert "is limited to some queues" in reply.error["message"]


ALIASES = [(c, method, path) for c in CAPABILITIES for method, path in c.aliases]


@pytest.mark.parametrize(("capability", "method", "path"), ALIASES, ids=[path for *_, path in ALIASES])
def test_another_path_to_a_capability_is_guarded_alike(
    live: Caller, keys: dict[str, str], hidden: str, capability: Capability, method: str, path: str
) -> None:
    """By no, wrong, expired and revoked keys, by a missing scope, and by the pattern of queues."""
    rest = {name: value for name, value in capability.example.items() if name != "queue"}
    target = path.replace("{queue}", "hidden")
    for secret in (None, "unknown-secret-of-a-key", keys["expired"], keys["revoked"]):
        assert Caller(live.url, secret)(method, target, rest).status == 401
    for scope in {"publish", "consume", "operate", "metrics"} - {capability.scope}:
        assert Caller(live.url, keys[scope])(method, target, rest).status == 403
    there = Caller(live.url, keys["narrow"])(method, target, {**rest, "message_id": hidden})
    absent = Caller(live.url, keys["narrow"])(method, path.replace("{queue}", "absent"), rest)
    assert HIDDEN_WORDS not in there.body
    assert there.status == absent.status
    assert live.get(f"/v1/queue/message/{hidden}").data["state"] == "ready"


def test_a_message_outside_of_the_pattern_looks_as_if_it_were_not_there(
    live: Caller, keys: dict[str, str], hidden: str
) -> None:
    """By its id, under the name of a queue that the key may see."""
    narrow = Caller(live.url, keys["narrow"])
    narrow.post("/v1/queue/publish", {"queue": "shown", "payload": 1})
    absent = "0" * len(hidden)
    for path, more in (
        ("ack", {}), ("nack", {}), ("cancel", {}), ("dead_letter", {"reason": "r"}),
        ("extend", {"receipt_handle": "h", "visibility_timeout": 5}), ("release", {"receipt_handle": "h"}),
    ):  # fmt: skip
        replies = [
            narrow.post(f"/v1/queue/{path}", {"queue": "shown", "message_id": message_id, **more})
            for message_id in (hidden, absent)
        ]
        assert _without_names(replies[0], hidden) == _without_names(replies[1], absent), path
    job_key = live.get(f"/v1/queue/message/{hidden}").data["job_key"]
    for path, name in (("queue/message", hidden), ("redrive/message", hidden), ("redrive/job", job_key)):
        replies = [narrow.get(f"/v1/{path}/{each}") for each in (name, absent)]
        assert _without_names(replies[0], name) == _without_names(replies[1], absent), path
        assert (replies[0].status, live.get(f"/v1/{path}/{name}").status) == (404, 200), path
    redriven = narrow.post("/v1/queue/dlq/redrive/shown", {"message_ids": [hidden]})
    assert redriven.data["redriven"] == 0


def test_lists_hold_nothing_of_hidden_queues(live: Caller, keys: dict[str, str], hidden: str) -> None:
    """Queues, keys and the audit log, for a key that may do everything with some queues."""
    narrow = Caller(live.url, keys["narrow"])
    live.post("/v1/queue/pause/hidden", {"reason": HIDDEN_WORDS.decode()})
    live.post("/v1/queue/resume/hidden")
    for path in ("/v1/queue/list", "/v1/account/keys/list", "/v1/audit/list"):
        assert HIDDEN_WORDS not in narrow.get(path).body
        assert b"hidden" not in narrow.get(path).body
        assert hidden.encode() not in narrow.get(path).body


MALFORMED = {
    "no scheme": KEY, "no key": "Bearer", "blank": "Bearer   ", "another scheme": f"Basic {KEY}",
    "two keys": f"Bearer {KEY} {KEY}", "a comma": f"Bearer {KEY},", "long": "Bearer " + "x" * 8_000,
    "not ASCII": "Bearer \xff\xfe", "a quote": f'Bearer "{KEY}"',
}  # fmt: skip


@pytest.mark.parametrize("given", MALFORMED.values(), ids=MALFORMED)
def test_malformed_authorizations_are_401(call: Caller, given: str) -> None:
    """None of them is read as the key that it holds."""
    reply = Caller(call.url, None).post("/v1/queue/ack", {}, {"Authorization": given})
    assert (reply.status, reply.error["code"]) == (401, "UNAUTHENTICATED")


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "Bearer "])
def test_the_scheme_has_no_case(call: Caller, scheme: str) -> None:
    """As HTTP says."""
    headers = {"Authorization": f"{scheme} {KEY}"}
    assert Caller(call.url, None).post("/v1/queue/ack", {}, headers).status == 400


def test_what_is_compared_is_a_hash_and_in_constant_time(
    live: Caller, keys: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Secrets are looked up by their SHA-256 and compared by compare_digest; no secret is compared itself."""
    compared: list[tuple[str, str]] = []

    def watched(one: str, two: str) -> bool:
        compared.append((one, two))
        return one == two

    monkeypatch.setattr(access.hmac, "compare_digest", watched)
    assert Caller(live.url, keys["operate"]).get("/v1/queue/list").status == 200
    assert compared
    assert all(re.fullmatch("[0-9a-f]{64}", part) for pair in compared for part in pair)


@pytest.fixture
def logs(capfd: pytest.CaptureFixture[str]) -> Iterator[Any]:
    """Everything that is logged or printed by the server; read by calling it."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)

    def read() -> str:
        printed = capfd.readouterr()
        return stream.getvalue() + printed.out + printed.err

    yield read
    root.removeHandler(handler)
    root.setLevel(level)


def test_no_secret_is_kept_or_logged(tmp_path: Path, logs: Any) -> None:
    """Made, used, rotated, revoked, refused: it is not in the store's files, in logs, lists, or the audit."""
    service = open_service(f"sqlite:///{tmp_path / 'jobs.db'}", ServiceSettings(api_key=SECRET))
    service.start(first_key=True)
    secrets = [SECRET]
    with running(service) as server:
        admin = Caller(server.url, SECRET)
        made = admin.post("/v1/account/keys/create", {"name": "n", "scopes": ["admin"]}).data
        turned = admin.post(f"/v1/account/keys/rotate/{made['id']}").data
        secrets += [made["secret"], turned["secret"]]
        for secret in secrets:
            caller = Caller(server.url, secret)
            for capability in CAPABILITIES:
                if not capability.id.startswith("account."):
                    _send(server.url, secret, capability)
            caller.post("/v1/queue/publish", b"{not json")
            caller.get("/v1/nothing")
        admin.post(f"/v1/account/keys/revoke/{made['id']}")
        Caller(server.url, made["secret"]).get("/v1/queue/list")
        seen = b"".join(admin.get(f"/v1/{path}").body for path in ("account/keys/list", "audit/list"))
        kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    service.close()
    kept += b"".join(path.read_bytes() for path in tmp_path.iterdir())
    text = logs()
    assert "stopped" in text  # the control: logs are seen
    assert made["id"].encode() in kept  # and the keys are in what was read
    for secret in secrets:
        assert secret.encode() not in kept
        assert secret.encode() not in seen
        assert secret not in text
    assert len({turned["secret"], made["secret"]}) == 2


def test_a_bug_does_not_log_what_the_request_held(start: Start, stand: StandService, logs: Any) -> None:
    """The log has the exception's lines under the request id, without the frames' variables."""

    def bug(request: Any) -> Any:
        raise ZeroDivisionError(type(request).__name__)

    stand.answers["queue.ack"] = RuntimeError("a bug")
    prepare = stand.prepare
    stand.prepare = lambda name, *rest: bug(rest[1]) if name == "queue.nack" else prepare(name, *rest)  # type: ignore[method-assign]
    caller = Caller(start().url, KEY)
    body = {"queue": "q", "message_id": "payload-words"}
    replies = [caller.post(f"/v1/queue/{name}", body) for name in ("ack", "nack")]
    text = logs()
    for reply in replies:
        assert reply.status == 500
        assert reply.json["metadata"]["request_id"] in text
    assert "ZeroDivisionError" in text
    assert "in _answer" in text
    assert KEY not in text
    assert "payload-words" not in text


def test_a_logger_that_is_handed_an_exception_prints_variables(logs: Any) -> None:
    """The control of the test above: this is what the endpoint must not do."""
    pytest.importorskip("rich")
    secret = KEY
    logger = structlog.wrap_logger(
        structlog.PrintLogger(),
        processors=[
            structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.RichTracebackFormatter())
        ],
    )
    try:
        raise ZeroDivisionError
    except ZeroDivisionError:
        logger.exception("bug")
    assert secret in logs()


def test_a_key_ends_on_a_kept_connection_too(live: Caller) -> None:
    """A connection is not a session: the next request of a revoked key is refused."""
    made = live.post("/v1/account/keys/create", {"name": "n", "scopes": ["operate"]}).data
    parts = urlsplit(live.url)
    line = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=DEADLINE_SECONDS)
    statuses = []
    for revoke in (False, True):
        if revoke:
            live.post(f"/v1/account/keys/revoke/{made['id']}")
        line.request("GET", "/v1/queue/list", headers={"Authorization": f"Bearer {made['secret']}"})
        answer = line.getresponse()
        answer.read()
        statuses.append(answer.status)
    line.close()
    assert statuses == [200, 401]
