"""``redrive reconcile``: findings, exit codes, and repairs that are asked for."""

from __future__ import annotations

import itertools
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from redrive.ledger import Job, Ledger
from tests.cli.program import Done, Program
from tests.ledger.stores import Delivery

GAME = ["--ledger", "sqlite:///game.db"]
_NAMES = (f"rec-{n}" for n in itertools.count(1))


@pytest.fixture
def queue(redrive: Program) -> str:
    """A queue of its own, with the ledger installed."""
    assert redrive.inside("ledger", "install", *GAME).code == 0
    return next(_NAMES)


def publish(redrive: Program, queue: str, *keys: str) -> None:
    """Jobs that the producer planned and a relay published."""
    with closing(sqlite3.connect(redrive.folder / "game.db")) as connection:
        Ledger().publish(connection, queue, [Job(key, {"key": key}) for key in keys])
        connection.commit()
    assert redrive.inside("ledger", "relay", "--once", *GAME).code == 0


def early_ack(client: Any, queue: str, count: int) -> None:
    """Acknowledge what is next, without an effect."""
    leased = client.consume(
        queue, max_messages=count, visibility_timeout=60, wait_seconds=0, consumer_id="careless"
    )
    assert len(leased.messages) == count
    client.ack(queue, [(one.message_id, one.receipt_handle) for one in leased.messages])


def complete(redrive: Program, key: str) -> None:
    """The effect of the job, without an ack."""
    with closing(Ledger(f"sqlite:///{redrive.folder / 'game.db'}")) as ledger:
        ledger.execute(Delivery(key), lambda db: None)


def reconcile(redrive: Program, queue: str, *words: str) -> Done:
    """Run the command within this process."""
    return redrive.inside("reconcile", "--queue", queue, *GAME, *words)


def held(client: Any, queue: str) -> list[str]:
    """Job keys of the queue's messages."""
    return [item["job_key"] for item in client.call("queue.messages", {"queue": queue})["items"]]


def test_nothing_unexplained_is_exit_code_0(redrive: Program, queue: str) -> None:
    """The counts of both sides, and the verdict."""
    publish(redrive, queue, "a", "b")
    done = redrive("reconcile", "--queue", queue, *GAME)  # once as a program of its own
    assert (done.code, done.err) == (0, "")
    assert f"ledger: 2 accepted of {queue}; queue: 2 ready" in done.out
    assert done.out.endswith("nothing is unexplained\n")
    told = reconcile(redrive, queue, "--json").json
    assert (told["explained"], told["findings"], told["plan"], told["repaired"]) == (True, [], None, None)


def test_findings_are_named_with_cause_and_remedy(redrive: Program, client: Any, queue: str) -> None:
    """Exit code 1; a stranger, a lost job, a job that is done and queued."""
    publish(redrive, queue, "lost")
    early_ack(client, queue, 1)
    publish(redrive, queue, "done")
    complete(redrive, "done")
    client.call("queue.publish", {"queue": queue, "payload": 1, "job_key": "stranger"})
    told = reconcile(redrive, queue, "--json")
    assert told.code == 1
    assert {each["job_key"]: each["cause"] for each in told.json["findings"]} == {
        "lost": "early_ack", "done": "still_queued", "stranger": "unknown_producer",
    }  # fmt: skip
    assert all("--repair" in each["remedy"] for each in told.json["findings"])
    assert (told.json["unexplained"], told.json["explained"]) == (3, False)
    shown = reconcile(redrive, queue)
    assert shown.code == 1
    assert "3 unexplained" in shown.out
    assert "early_ack" in shown.out
    few = reconcile(redrive, queue, "--limit", "1")
    assert "the first 1 findings are shown" in few.err


def test_a_lost_job_really_enqueues_again_within_24_hours(redrive: Program, client: Any, queue: str) -> None:
    """Twice over: the queue still remembers the first publishes, and takes the repairs all the same."""
    publish(redrive, queue, "lost")
    for generation in (1, 2):
        early_ack(client, queue, 1)
        assert held(client, queue) == []
        repaired = reconcile(redrive, queue, "--repair", "requeue", "--yes", "--json")
        assert repaired.code == 0, repaired.err
        assert repaired.json["plan"]["steps"][0]["action"] == f"publish under generation {generation}"
        assert repaired.json["repaired"]["done"] == 1
        assert held(client, queue) == ["lost"]
        assert reconcile(redrive, queue).code == 0
    job = redrive.inside("ledger", "job", "lost", *GAME, "--json").json
    assert (job["state"], job["generation"]) == ("accepted", 2)


def test_a_republish_under_the_same_generation_would_not_enqueue(client: Any, queue: str) -> None:
    """The control: the same idempotency key is answered with the message that is gone."""
    entry = {"queue": queue, "payload": 1, "job_key": "lost", "idempotency_key": "lost#0"}
    first = client.call("queue.publish", entry)
    early_ack(client, queue, 1)
    assert client.call("queue.publish", entry)["message_id"] == first["message_id"]
    assert held(client, queue) == []


def test_a_repair_is_a_plan_until_it_is_confirmed(redrive: Program, client: Any, queue: str) -> None:
    """Without a terminal and --yes: exit code 2, the plan was shown, nothing was done."""
    publish(redrive, queue, "lost")
    early_ack(client, queue, 1)
    asked = reconcile(redrive, queue, "--repair", "requeue")
    assert (asked.code, "publish under generation 1" in asked.out) == (2, True)
    assert "Add --yes" in asked.err
    planned = reconcile(redrive, queue, "--repair", "requeue", "--json")
    assert (planned.code, planned.json["repaired"], planned.json["plan"]["findings"]) == (1, None, 1)
    words = ["reconcile", "--queue", queue, *GAME, "--repair", "requeue"]
    assert "nothing was done" in redrive.at_terminal(words, "n\n").out
    assert held(client, queue) == []
    agreed = redrive.at_terminal(words, "y\n")
    assert (agreed.code, held(client, queue)) == (0, ["lost"]), agreed.out


def test_ack_takes_messages_of_finished_jobs_out(redrive: Program, client: Any, queue: str) -> None:
    """A live one is cancelled; a dead letter is resolved by a plan, with the completion as evidence."""
    publish(redrive, queue, "dead")
    leased = client.consume(
        queue, max_messages=1, visibility_timeout=60, wait_seconds=0, consumer_id="w"
    ).messages[0]
    client.nack(queue, leased.message_id, leased.receipt_handle, permanent=True)
    publish(redrive, queue, "live")
    for key in ("dead", "live"):
        complete(redrive, key)
    done = reconcile(redrive, queue, "--repair", "ack", "--yes", "--reason", "lost acks", "--json")
    assert (done.code, done.json["repaired"]["done"]) == (0, 2), done.err
    assert reconcile(redrive, queue).code == 0
    steps = client.call("redrive.message", {"message_id": leased.message_id})["steps"]
    assert ("removed", "already_completed") in [(step["step"], step["reason"]) for step in steps]
    (plan,) = client.call("redrive.plan.list", {"queue": queue})["items"]
    assert (plan["reason"], plan["counts"]["already_completed"]) == ("lost acks", 1)


def test_strangers_are_adopted_or_expected(redrive: Program, client: Any, queue: str) -> None:
    """--unplanned where applications publish directly; else --repair adopt enters them."""
    client.call("queue.publish", {"queue": queue, "payload": 1, "job_key": "direct"})
    assert reconcile(redrive, queue, "--unplanned").code == 0
    assert reconcile(redrive, queue, "--repair", "adopt", "--yes").code == 0
    assert redrive.inside("ledger", "job", "direct", *GAME, "--json").json["state"] == "accepted"
    assert reconcile(redrive, queue).code == 0


def test_c7_what_the_ledger_holds_back_can_be_rebuilt(redrive: Program, client: Any, queue: str) -> None:
    """A key whose message is gone refuses a new publish for ever: it is found, and the repair frees it."""
    publish(redrive, queue, "orphan")
    client.call("queue.delete", {"queue": queue})
    client.call("queue.create", {"name": queue})
    publish(redrive, queue, "orphan")  # known, so that nothing is published
    assert held(client, queue) == []
    told = reconcile(redrive, queue, "--json").json
    assert [(each["job_key"], each["cause"]) for each in told["findings"]] == [("orphan", "purged")]
    assert reconcile(redrive, queue, "--repair", "requeue", "--yes").code == 0
    assert held(client, queue) == ["orphan"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--repair", "hope"], "requeue, ack, adopt, sync"),
        (["--settle", "-1"], "settle"),
    ],
)
def test_wrong_usage(redrive: Program, queue: str, words: list[str], said: str) -> None:
    """Exit code 2 with what could have been said."""
    done = reconcile(redrive, queue, *words)
    assert (done.code, said in done.err) == (2, True), done.err


def test_a_ledger_without_tables_is_told(redrive: Program) -> None:
    """The command that makes them is named."""
    (redrive.folder / "game.db").touch()
    done = reconcile(redrive, "any")
    assert (done.code, "redrive ledger install" in done.err) == (1, True), done.err


def test_a_key_that_may_not_see_the_queue_calls_nothing_lost(redrive: Program, queue: str) -> None:
    """Its jobs cannot be known, which is not the same."""
    publish(redrive, queue, "a")
    made = redrive.inside("key", "create", "narrow", "--scope", "operate", "--queue", "other-*", "--json")
    assert made.code == 0, made.err
    done = redrive.inside("reconcile", "--queue", queue, *GAME, "--json", api_key=made.json["secret"])
    assert done.code == 1
    assert (done.json["unexplained"], done.json["cannot_be_known"]) == (0, 1)
    assert [each["cause"] for each in done.json["findings"]] == ["not_known"]
