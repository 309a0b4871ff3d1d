"""``redrive ledger``: the tables, the evidence, the relay."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from redrive.ledger import Job, Ledger
from tests.cli.program import Program
from tests.database import wait_for
from tests.ledger.stores import Delivery
from tests.system.servers import ROOT

GAME = ["--ledger", "sqlite:///game.db"]


def _plan(program: Program, queue: str, *keys: str) -> None:
    with closing(sqlite3.connect(program.folder / "game.db")) as connection:
        Ledger().publish(connection, queue, [Job(key, {"key": key}) for key in keys])
        connection.commit()


def test_install_status_job_and_relay(redrive: Program, client: Any) -> None:
    """Tables once; a planned job waits, --once publishes it, and the ledger says so."""
    assert redrive("ledger", "install", *GAME, "--json").json["applied"] != []
    assert redrive("ledger", "install", *GAME, "--json").json["applied"] == []
    _plan(redrive, "planned", "p:1", "p:2")
    waiting = redrive("ledger", "status", *GAME, "--json").json
    assert (waiting["planned"], waiting["waiting_for_relay"]) == (2, 2)
    assert redrive("ledger", "relay", "--once", *GAME).out == "2 published, 0 waiting\n"
    assert redrive("ledger", "status", *GAME, "--json").json["accepted"] == 2
    job = redrive("ledger", "job", "p:1", *GAME, "--json").json
    (stored,) = [
        m for m in client.call("queue.messages", {"queue": "planned"})["items"] if m["job_key"] == "p:1"
    ]
    assert (job["state"], job["message_id"], job["attempts"]) == ("accepted", stored["message_id"], [])
    assert "state" in redrive("ledger", "job", "p:1", *GAME).out


def test_the_relay_runs_until_it_is_told_to_end(redrive: Program, client: Any) -> None:
    """What is planned while it runs is published; SIGTERM is exit code 0."""
    redrive("ledger", "install", *GAME)
    with redrive.start("ledger", "relay", *GAME) as relay:
        relay.until("stderr", "relaying from sqlite:///game.db")
        _plan(redrive, "running", "r:1")
        client.call("queue.create", {"name": "running"})
        wait_for(
            lambda: client.call("queue.messages", {"queue": "running"})["items"], 20, "the relay publishing"
        )
        assert relay.stop().code == 0


def test_what_the_queue_refuses_is_left_and_told(redrive: Program) -> None:
    """--once ends with exit code 1 and the number that waits."""
    redrive("ledger", "install", *GAME)
    _plan(redrive, "bad/name", "b:1")
    done = redrive("ledger", "relay", "--once", *GAME, "--json")
    assert (done.code, done.json) == (1, {"published": 0, "waiting_for_relay": 1})


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["status"], 2, "--ledger sqlite:///app.db (REDRIVE_LEDGER)"),
        (["status", "--ledger", "sqlite:///typo.db"], 2, "no such file"),
        (["status", "--ledger", "sqlite:///empty.db"], 1, "redrive ledger install"),
        (["job", "x", "--ledger", "sqlite:///empty.db"], 1, "redrive ledger install"),
        (["install", "--ledger", "sqlite:///not.db"], 3, "not a database"),
        (["install", "--ledger", "redis://x"], 2, "starts with none of"),
        (["status", "--ledger", "postgresql://u:hidden-word@127.0.0.1:1/x"], 3, "Connection refused"),
        (["status", "--ledger", "mysql://u:hidden-word@127.0.0.1:1/x"], 3, "Connection refused"),
    ],
)
def test_what_is_wrong_is_said_with_what_to_do(
    alone: Program, words: list[str], code: int, said: str
) -> None:
    """The exit code, no traceback, no password."""
    (alone.folder / "not.db").write_text("this is no database " * 100)
    (alone.folder / "empty.db").touch()
    done = alone.inside("ledger", *words)
    assert done.code == code, done.err
    assert said in done.err
    assert "Traceback" not in done.err
    assert "hidden-word" not in done.err


def test_an_unknown_job_is_exit_code_1(alone: Program) -> None:
    """The answer is no."""
    alone("ledger", "install", *GAME)
    done = alone("ledger", "job", "nobody", *GAME, "--json")
    assert (done.code, done.error["code"]) == (1, "JOB_NOT_FOUND")


def test_a_ledgers_file_that_cannot_be_used_is_named(alone: Program) -> None:
    """Exit code 3, the path, and a hint about files."""
    (alone.folder / "big.json").write_text("not a database, but long enough to be looked at" * 100)
    for words in (("status", "big.json"), ("install", "nodir/x.db")):
        done = alone.inside("ledger", words[0], "--ledger", f"sqlite:///{words[1]}")
        assert (done.code, f"{words[1]}: " in done.err, "folder" in done.err) == (3, True, True), done.err


def test_a_night_of_windows_and_batches(redrive: Program) -> None:
    """The page's own example: two nights paused are one window; what holds the batch open is shown."""
    page = (ROOT / "docs" / "how-to" / "windows-and-batches.md").read_text()
    code = page.split("```python\n")[1].split("```")[0]
    assert redrive("ledger", "install", *GAME).code == 0
    scope: dict[str, Any] = {}
    exec(code.replace("sqlite:///game.db", f"sqlite:///{redrive.folder / 'game.db'}"), scope)
    ledger, first = scope["ledger"], datetime(2026, 10, 20, tzinfo=UTC)
    with closing(sqlite3.connect(redrive.folder / "game.db")) as connection:
        key = scope["night"](connection, first + timedelta(days=3), first)
        assert key == "settlement:2026-10-20:2026-10-23"
        assert "batch" in scope["night"](connection, first + timedelta(days=4))
    ledger.execute(Delivery(f"{key}:eu", queue="shards"), lambda _: None)
    ledger.failed(Delivery(f"{key}:us", queue="shards"), "reject", error=None, isolated=True)
    shown = redrive("ledger", "batch", key, *GAME, "--json").json
    assert (shown["state"], shown["open_members"]) == ("open", 1)
    assert [held["key"] for held in shown["holding"]] == [f"{key}:us"]
    assert f"{key}:us" in redrive("ledger", "batch", key, *GAME).out
    [window] = redrive("ledger", "windows", *GAME, "--json").json["windows"]
    assert (window["held_by"], window["open_until"]) == ("batch", "2026-10-23T00:00:00Z")
    ledger.execute(Delivery(f"{key}:us", 2, queue="shards"), lambda _: None)
    ledger.close()
    [done] = redrive("ledger", "windows", "settlement", *GAME, "--json").json["windows"]
    assert (done["start"], done["end"]) == ("2026-10-20T00:00:00Z", "2026-10-23T00:00:00Z")
    [batch] = redrive("ledger", "batches", "--state", "complete", *GAME, "--json").json["batches"]
    assert batch["key"] == key
    assert redrive("ledger", "status", *GAME, "--json").json["planned"] == 1  # the follow-up
    refused = redrive("ledger", "batch", key, "--cancel", *GAME)
    assert (refused.code, "complete" in refused.err) == (1, True)
    assert redrive("ledger", "batch", "nowhere", *GAME).code == 1
