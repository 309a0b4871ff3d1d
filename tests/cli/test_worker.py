"""``redrive worker run``: the tutorial's worker, and what is said of modules that are none."""

from __future__ import annotations

import socket
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from redrive.storage.sqlite import SqliteEngine
from tests.cli.program import Program
from tests.database import wait_for

SETTLEMENT = """
import os
from redrive import Reject, Worker

worker = Worker(os.environ["REDRIVE_URL"], queue="settlement", ledger="sqlite:///game.db", wait_seconds=1)


@worker.job
def settle(job, db):
    row = db.execute("SELECT state FROM payments WHERE id = ?", [job.payload["payment"]]).fetchone()
    if row is None:
        raise Reject("no such payment")
    db.execute("UPDATE payments SET state = 'settled' WHERE id = ?", [job.payload["payment"]])
    return {"settled": 1}
"""


def _game(program: Program, statement: str) -> list[Any]:
    with closing(sqlite3.connect(program.folder / "game.db")) as game:
        found = game.execute(statement).fetchall()
        game.commit()
        return found


def test_the_tutorial(redrive: Program, client: Any) -> None:
    """Reject, look, correct, redrive, settle once; the same job under another message changes nothing."""
    (redrive.folder / "settlement.py").write_text(SETTLEMENT)
    _game(redrive, "CREATE TABLE payments (id INTEGER PRIMARY KEY, state TEXT)")
    refused = redrive("worker", "run", "settlement:worker")
    assert (refused.code, "redrive ledger install" in refused.err) == (1, True)
    redrive("ledger", "install", "--ledger", "sqlite:///game.db")
    redrive("publish", "settlement", '{"payment": 7}', "--job-key", "settlement:7")
    with redrive.start("worker", "run", "settlement:worker", "--health-port", "0") as worker:
        dead = wait_for(
            lambda: client.call("queue.dlq.list", {"queue": "settlement"})["items"], 20, "the job's rejection"
        )
        _game(redrive, "INSERT INTO payments VALUES (7, 'open')")
        words = ["--id", dead[0]["message_id"], "--reason", "payment 7 was missing"]
        assert redrive("dlq", "redrive", "settlement", *words).code == 0
        wait_for(lambda: _game(redrive, "SELECT state FROM payments") == [("settled",)], 20, "the settlement")
        _game(redrive, "UPDATE payments SET state = 'looked at'")
        redrive("publish", "settlement", '{"payment": 7}', "--job-key", "settlement:7")
        worker.until("stderr", "was done before")
        assert worker.stop().code == 0
    assert _game(redrive, "SELECT state FROM payments") == [("looked at",)]
    job = redrive("ledger", "job", "settlement:7", "--ledger", "sqlite:///game.db", "--json").json
    assert (job["state"], job["result"]) == ("completed", {"settled": 1})
    assert [attempt["outcome"] for attempt in job["attempts"]].count("done") == 1


@pytest.mark.parametrize(
    ("module", "reference", "said"),
    [
        ("", "nowhere:worker", "no module 'nowhere'"),
        ("x = 1", "given:worker", "given:worker is not a redrive Worker; it has no worker at all"),
        ("raise RuntimeError('boom')", "given:worker", "the module raised RuntimeError: boom"),
        ("import no_such_package", "given:worker", "No module named 'no_such_package'"),
        ("def f(:", "given:worker", "SyntaxError"),
        ("from redrive import Worker\nworker = Worker('http://x', queue='q')", "given", "has no handler"),
        (
            "from redrive import Worker\nworker = Worker('ftp://x', queue='q')\n@worker.job\ndef f(j): pass",
            "given",
            "no transport for the scheme 'ftp'",
        ),
    ],
)
def test_what_is_no_worker_is_exit_code_2(alone: Program, module: str, reference: str, said: str) -> None:
    """One sentence; the traceback of the application's own error comes with --debug."""
    (alone.folder / "given.py").write_text(module)
    done = alone("worker", "run", reference)
    assert done.code == 2, done.err
    assert said in done.err
    assert "Traceback" not in done.err
    if "boom" in module:
        assert "given.py" in alone("worker", "run", reference, "--debug").err


OWN_STORE = """
from redrive import Worker

worker = Worker("sqlite:///own.db", queue="q", wait_seconds=0)


@worker.job
def work(job):
    pass
"""


def test_a_health_port_in_use_is_named(alone: Program) -> None:
    """Exit code 3 with the address; it is no bug."""
    (alone.folder / "own.py").write_text(OWN_STORE)
    with socket.create_server(("0.0.0.0", 0)) as taken:
        port = taken.getsockname()[1]
        done = alone("worker", "run", "own:worker", "--health-port", str(port))
    assert (done.code, f"ADDRESS: cannot listen on 0.0.0.0:{port}" in done.err) == (3, True), done.err


def test_a_store_in_use_is_out_of_reach(alone: Program) -> None:
    """As for serve and db: exit code 3, and who has it."""
    (alone.folder / "own.py").write_text(OWN_STORE)
    owner = SqliteEngine(alone.folder / "own.db")
    try:
        done = alone("worker", "run", "own:worker")
    finally:
        owner.close()
    assert (done.code, "is in use by process" in done.err) == (3, True), done.err


def test_the_hint_about_a_missing_ledger_can_be_copied(alone: Program) -> None:
    """It names the worker's own ledger."""
    own = OWN_STORE.replace("wait_seconds=0", 'wait_seconds=0, ledger="sqlite:///game.db"')
    own = own.replace("(job)", "(job, db)")
    (alone.folder / "own.py").write_text(own)
    done = alone("worker", "run", "own:worker")
    assert (done.code, "redrive ledger install --ledger sqlite:///game.db" in done.err) == (1, True), done.err
