"""No secret of a running ``redrive serve`` is seen in anything that others can read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.api.wire import Caller
from tests.cli.program import Program, Running

ROOT_KEY = "root-secret-0123456789-not-to-be-seen"
PASSWORD = "database-password-not-to-be-seen"
WORDS = "payload-words-not-to-be-seen"
SERVE = ["serve", "--storage", "sqlite:///queue.db", "--port", "0", "--json", "--log-level", "debug"]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """The program with the root key in its environment."""
    return Program(tmp_path, {"api_key": ROOT_KEY})


def exercise(url: str) -> tuple[list[str], bytes]:
    """All kinds of success and failure: the secrets that were made, and what a metrics page and lists say."""
    admin = Caller(url, ROOT_KEY)
    made = admin.post("/v1/account/keys/create", {"name": "n", "scopes": ["publish", "admin"]}).data
    turned = admin.post(f"/v1/account/keys/rotate/{made['id']}").data
    secrets = [made["secret"], turned["secret"]]
    for secret in (ROOT_KEY, *secrets):
        caller = Caller(url, secret)
        caller.post("/v1/queue/publish", {"queue": "q", "payload": WORDS, "job_key": "j"})
        caller.post("/v1/queue/publish", b'{"queue":"q","payload":"' + WORDS.encode() + b'"')
        caller.post("/v1/queue/publish", {"queue": "q", "payload": WORDS, "delay_seconds": -1})
        caller.post("/v1/queue/publish", {"queue": "q", "payload": secret[:4]}, {"X-Big": "x" * 40_000})
        caller.post("/v1/queue/consume", {"queue": "q", "max_messages": 1_000_000})
        caller.get(f"/v1/nothing/{'x' * 300}")
        caller("BREW", "/v1/queue/list")
        for wrong in (secret[:-1], secret.upper(), f"{secret} {secret}", f"{secret},"):
            assert Caller(url, wrong).get("/v1/queue/list").status == 401
        with caller.connect() as raw:  # a request that breaks off, and one that is none
            raw.sendall(f"POST /v1/queue/publish HTTP/1.1\r\nAuthorization: Bearer {secret}\r\n".encode())
        with caller.connect() as raw:
            raw.sendall(f"Authorization: Bearer {secret}\r\n\r\n".encode())
            raw.recv(1_000)
    admin.post(f"/v1/account/keys/revoke/{made['id']}")
    assert Caller(url, made["secret"]).get("/v1/queue/list").status == 401
    told = [admin.get(path).body for path in ("/metrics", "/v1/audit/list", "/v1/account/keys/list")]
    return secrets, b"".join(told)


def ready(server: Running) -> str:
    """Where it is, once it serves."""
    url: str = json.loads(server.until("stdout", '"ready"'))["url"]
    return url


def test_no_secret_in_logs_metrics_lists_files_or_the_list_of_processes(program: Program) -> None:
    """Debug logs of a server that met every kind of failure, what it serves, keeps and is started with."""
    with program.start(*SERVE) as server:
        secrets, told = exercise(ready(server))
        command = " ".join(psutil.Process(server.process.pid).cmdline())
        done = server.stop()
    secrets.append(ROOT_KEY)
    kept = b"".join(path.read_bytes() for path in program.folder.iterdir() if path.is_file())
    assert "stopped" in done.err  # the control: the log is there, and so are the keys' rows
    assert b"redrive_requests" in told
    assert "serve" in command
    for secret in secrets:
        assert secret not in done.out + done.err, "a log"
        assert secret not in command, "the list of processes"
        assert secret.encode() not in told, "a metrics page or a list"
        assert secret.encode() not in kept, "a file"
    assert WORDS not in done.out + done.err
    assert WORDS.encode() in kept  # where it belongs


def test_a_broken_store_does_not_log_keys_or_payloads(program: Program) -> None:
    """The file is damaged under the running server: its errors name the file, not what was asked."""
    with program.start(*SERVE) as server:
        url = ready(server)
        caller = Caller(url, ROOT_KEY)
        for number in range(50):
            body = {"queue": "q", "payload": WORDS, "job_key": f"j{number}"}
            assert caller.post("/v1/queue/publish", body).status == 200
        for name in ("queue.db", "queue.db-wal"):
            path = program.folder / name
            with path.open("r+b") as file:
                file.seek(4_096)
                file.write(b"\xa5" * max(0, path.stat().st_size - 4_096))
        replies = [caller.post("/v1/queue/publish", {"queue": f"q{n}", "payload": WORDS}) for n in range(20)]
        replies.append(caller.get("/v1/queue/messages/q"))
        replies.append(caller.get("/v1/queue/list"))
        done = server.stop()
    assert {reply.status for reply in replies} != {200}, "the damage was not met"
    for text in (done.out + done.err, *(reply.body.decode() for reply in replies if reply.status != 200)):
        assert ROOT_KEY not in text
        assert WORDS not in text


def test_settings_are_shown_without_secrets(program: Program) -> None:
    """``config show`` as text and JSON, with a secret in every place that can hold one."""
    url = f"postgresql://u:{PASSWORD}@127.0.0.1:1/x?password={PASSWORD}"
    given = {"storage": url, "ledger": url}
    shown: list[Any] = [program("config", "show", *words, **given) for words in ((), ("--json",))]
    shown.append(program("serve", **given))
    shown.append(program("publish", "q", "1", url="http://127.0.0.1:1"))
    for done in shown:
        assert ROOT_KEY not in done.out + done.err
        assert PASSWORD not in done.out + done.err
    assert shown[0].code == shown[1].code == 0
    assert "***" in shown[0].out
