"""``redrive plan``: looked at, made, followed, stopped; and what the ledger spares."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from redrive.ledger import Ledger
from tests.cli.program import Program
from tests.database import wait_for
from tests.ledger.stores import Delivery

GAME = ["--ledger", "sqlite:///game.db"]
FAST = ["--rate", "1000"]
SECONDS = 20.0


def die(client: Any, queue: str, count: int, message: str = "no such payment") -> list[str]:
    """Dead letters with the job keys ``queue/0%``, ``queue/1%``, …; their ids."""
    for n in range(count):
        request = {"queue": queue, "payload": {"n": n, "amount": 1}, "job_key": f"{queue}/{n}%"}
        client.call("queue.publish", request)
    request = {"queue": queue, "max_messages": count, "view": "messages"}
    held = client.call("queue.consume", request)["messages"]
    assert len(held) == count
    for each in held:
        error = {"type": "Mismatch", "message": message}
        client.nack(queue, each["message_id"], each["receipt_handle"], permanent=True, error=error)
    return [each["message_id"] for each in held]


@contextmanager
def consumer(client: Any, queue: str, *, rejects: str | None = None) -> Iterator[list[str]]:
    """Settles what comes, in a thread, until the block ends; gives the ids in order."""
    stop, seen = threading.Event(), []

    def loop() -> None:
        while not stop.is_set():
            lease = client.consume(
                queue, max_messages=10, visibility_timeout=30, wait_seconds=0.2, consumer_id="night"
            )
            for each in lease.messages:
                seen.append(each.message_id)
                if rejects is None:
                    client.ack(queue, [(each.message_id, each.receipt_handle)])
                else:
                    error = {"type": "Mismatch", "message": rejects}
                    client.nack(queue, each.message_id, each.receipt_handle, permanent=True, error=error)

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join(SECONDS)
        assert not thread.is_alive()


def make(redrive: Program, queue: str, *words: str) -> dict[str, Any]:
    """Create a plan; what it answers."""
    done = redrive.inside("plan", "create", queue, "--reason", "payment 7 is there now", "--json", *words)
    assert done.code == 0, done.err
    found: dict[str, Any] = done.json
    return found


def outcomes(redrive: Program, plan_id: str) -> dict[str, int]:
    """The plan's members by outcome."""
    found: dict[str, int] = redrive.inside("plan", "show", plan_id, "--json").json["counts"]
    return found


def test_from_a_dry_run_to_the_end(redrive: Program, client: Any) -> None:
    """Twice the same report, which changes nothing; a draft; started, watched to its end with exit code 0."""
    ids = die(client, "night", 3)
    before = redrive.inside("dlq", "list", "night", "--json").json
    words = ("plan", "create", "night", "--error-type", "Mismatch", "--dry-run", "--json")
    dry, again = redrive.inside(*words).json, redrive.inside(*words).json
    assert dry == again
    assert (dry["state"], dry["plan_id"], dry["members"], dry["groups"][0]["count"]) == (
        "dry_run",
        None,
        3,
        3,
    )
    assert "fingerprint" in redrive.inside(*words[:-1]).out
    assert redrive.inside("dlq", "list", "night", "--json").json == before
    assert redrive.inside("plan", "list", "--queue", "night", "--json").json["items"] == []

    plan = make(redrive, "night", "--error-type", "Mismatch", "--actor", "anna", *FAST, "--ramp", "0")
    plan_id = plan["plan_id"]
    assert (plan["state"], plan["actor"]) == ("draft", "REDRIVE_API_KEY (anna)")
    assert (plan["members_sha256"], plan["envelope"]["rate_per_second"]) == (dry["members_sha256"], 1000)
    idle = redrive.inside("plan", "watch", plan_id)
    assert (idle.code, f"redrive plan start {plan_id}" in idle.err) == (1, True)
    with consumer(client, "night") as seen:
        assert redrive.inside("plan", "start", plan_id, "--actor", "bob").out == f"{plan_id} is running\n"
        done = redrive("plan", "watch", plan_id)
        assert (done.code, done.out) == (0, f"{plan_id} is completed: 3 completed\n")
    assert sorted(seen) == sorted(ids)
    told = redrive.inside("plan", "watch", plan_id, "--json")
    assert (told.code, told.json["counts"], told.err) == (0, {"completed": 3}, "")
    items = redrive.inside("plan", "items", plan_id, "--outcome", "completed", "--json").json["items"]
    assert [item["message_id"] for item in items] == ids
    assert ids[0] in redrive.inside("plan", "items", plan_id).out
    assert "3 completed" in redrive.inside("plan", "list", "--state", "completed").out
    assert "1000 a second, 100 in flight" in redrive.inside("plan", "show", plan_id).out
    rows = redrive.inside("audit", "list", "--queue", "night", "--json").json["items"]
    assert [(row["action"], row["actor"]) for row in rows[:2]] == [
        ("plan.start", "REDRIVE_API_KEY (bob)"),
        ("plan.create", "REDRIVE_API_KEY (anna)"),
    ]


def test_a_rule_stops_it_and_the_watch_says_which(redrive: Program, client: Any) -> None:
    """The same error comes back: paused by the rule, exit code 1; resuming needs a reason (exit code 2)."""
    die(client, "rule", 3)
    plan_id = make(redrive, "rule", "--all", "--start", "--in-flight", "1", *FAST)["plan_id"]
    with consumer(client, "rule", rejects="no such payment"):
        done = redrive("plan", "watch", plan_id)
    assert (done.code, "paused by the rule same_fingerprint" in done.out) == (1, True), done.out
    assert "is paused: " in done.out
    refused = redrive.inside("plan", "resume", plan_id)
    assert (refused.code, "same_fingerprint" in refused.err) == (2, True)
    with consumer(client, "rule"):
        assert redrive.inside("plan", "resume", plan_id, "--reason", "the record is corrected").code in (0, 1)
    aborted = redrive.inside("plan", "abort", plan_id, "--json")
    assert (aborted.code, aborted.json["state"]) in ((0, "aborted"), (1, "completed"))


def test_an_operator_pauses_and_aborts(redrive: Program, client: Any) -> None:
    """The watch tells who did; an ended plan takes no orders (exit code 1)."""
    die(client, "stop", 3)
    plan_id = make(redrive, "stop", "--all", "--start", "--in-flight", "1")["plan_id"]
    assert redrive.inside("plan", "pause", plan_id, "--reason", "too slow").out == f"{plan_id} is paused\n"
    done = redrive.inside("plan", "watch", plan_id)
    assert (done.code, "paused by REDRIVE_API_KEY: too slow" in done.out) == (1, True)
    assert redrive.inside("plan", "resume", plan_id).out == f"{plan_id} is running\n"
    assert redrive.inside("plan", "abort", plan_id).out == f"{plan_id} is aborted\n"
    done = redrive.inside("plan", "watch", plan_id)
    assert (done.code, f"{plan_id} is aborted" in done.out) == (1, True)
    assert redrive.inside("plan", "start", plan_id).code == 1
    assert len(redrive.inside("dlq", "list", "stop", "--json").json["items"]) == 2


def test_ctrl_c_leaves_the_plan_running(redrive: Program, client: Any) -> None:
    """Exit code 130, it is said, and the plan goes on to its end without anybody watching."""
    die(client, "left", 3)
    plan_id = make(redrive, "left", "--all", "--start", "--in-flight", "1", *FAST)["plan_id"]
    with redrive.start("plan", "watch", plan_id) as watching:
        watching.until("stderr", f"watching {plan_id}")
        done = watching.stop(signal.SIGINT)
    assert (done.code, done.out) == (130, "")
    assert done.err == f"redrive: no longer watching; the plan goes on: redrive plan watch {plan_id}\n"
    with consumer(client, "left"):
        wait_for(lambda: outcomes(redrive, plan_id) == {"completed": 3}, SECONDS, "the plan to go on")


def complete(program: Program, *keys: str) -> None:
    """The ledger has the receipts of these jobs."""
    with closing(Ledger(f"sqlite:///{program.folder}/game.db")) as ledger:
        ledger.install()
        for key in keys:
            ledger.execute(Delivery(key), lambda _: {"corrected": 3})


def test_what_is_done_is_not_sent_again(redrive: Program, client: Any) -> None:
    """With the ledger: told in the dry run, resolved by create, shown as such; the others are sent."""
    ids = die(client, "done", 4)
    complete(redrive, "done/1%", "done/3%", "elsewhere")
    words = ["plan", "create", "done", "--all", "--dry-run", *GAME]
    dry = redrive.inside(*words, "--json").json
    assert dry["receipts"] == {"looked_at": 4, "completed": 2, "resolved": 0, "left": {}}
    assert "2 of 4 are completed in the ledger: they would not be sent" in redrive.inside(*words).out
    named = redrive.inside(*words[:3], "--id", ids[1], "--id", ids[0], "--id", "nobody", *words[4:], "--json")
    assert named.json["receipts"]["completed"] == 1
    plan = make(redrive, "done", "--all", *GAME, *FAST)
    assert plan["receipts"] == {"looked_at": 4, "completed": 2, "resolved": 2, "left": {}}
    assert plan["counts"] == {"pending": 2, "already_completed": 2}
    shown = redrive.inside("plan", "items", plan["plan_id"], "--outcome", "already_completed", "--json")
    assert [item["message_id"] for item in shown.json["items"]] == [ids[1], ids[3]]
    evidence = json.loads(shown.json["items"][0]["detail"])
    assert (evidence["job_key"], len(evidence["result_hash"])) == ("done/1%", 64)
    with consumer(client, "done") as seen:
        assert redrive.inside("plan", "start", plan["plan_id"]).code == 0
        assert redrive("plan", "watch", plan["plan_id"]).code == 0
    assert seen == [ids[0], ids[2]]


def test_without_the_ledger_it_is_sent(redrive: Program, client: Any) -> None:
    """The control of the test above: what is done goes again, and the receipt makes it harmless."""
    ids = die(client, "again", 2)
    complete(redrive, "again/1%")
    plan = make(redrive, "again", "--all", "--start", *FAST)
    with consumer(client, "again") as seen:
        assert redrive("plan", "watch", plan["plan_id"]).code == 0
    assert seen == ids


def test_a_draft_is_resolved_later(redrive: Program, client: Any) -> None:
    """Page by page, as a table; a second time there is nothing left to say."""
    ids = die(client, "later", 25)
    plan_id = make(redrive, "later", "--all")["plan_id"]
    complete(redrive, *(f"later/{n}%" for n in range(23)))
    done = redrive.inside("plan", "resolve", plan_id, *GAME, "--actor", "anna")
    said = "23 of 25 members are completed in the ledger: 23 resolved without sending"
    assert (done.code, said in done.out, "the first 20 are shown" in done.err) == (0, True, True)
    assert ids[0] in done.out
    again = redrive.inside("plan", "resolve", plan_id, *GAME, "--json")
    nothing = {"plan_id": plan_id, "looked_at": 2, "completed": 0, "resolved": 0, "left": {}}
    assert (again.code, again.json) == (0, nothing)
    rows = redrive.inside("audit", "list", "--action", "plan.resolve", "--json").json["items"]
    assert rows[0]["actor"] == "REDRIVE_API_KEY (anna)"


def test_what_cannot_be_resolved_is_told(redrive: Program, client: Any) -> None:
    """A completed job whose dead letter somebody holds: exit code 1, and why."""
    die(client, "held", 1)
    plan_id = make(redrive, "held", "--all")["plan_id"]
    complete(redrive, "held/0%")
    client.call("queue.consume", {"queue": "held.dlq", "max_messages": 1})
    done = redrive.inside("plan", "resolve", plan_id, *GAME)
    assert (done.code, "1 could not be resolved: in_use" in done.err) == (1, True)


def test_a_ledger_that_is_not_there_is_told_before_anything_is_made(redrive: Program, client: Any) -> None:
    """No tables, no file, no server: no plan."""
    die(client, "early", 1)
    (redrive.folder / "game.db").touch()
    for words, code, said in (
        (GAME, 1, "redrive ledger install"),
        (["--ledger", "sqlite:///typo.db"], 2, "no such file"),
        (["--ledger", "postgresql://u:hidden-word@127.0.0.1:1/x"], 3, "Connection refused"),
    ):
        done = redrive.inside("plan", "create", "early", "--all", "--reason", "x", *words)
        assert (done.code, said in done.err, "hidden-word" in done.err) == (code, True, False), done.err
    assert redrive.inside("plan", "list", "--queue", "early", "--json").json["items"] == []


def test_the_estimate(redrive: Program, client: Any) -> None:
    """For the envelope that is asked about."""
    die(client, "slow", 4)
    found = redrive.inside("plan", "estimate", "slow", "--all", "--rate", "0.5", "--json").json
    assert (found["count"], found["bound"]) == (4, "rate_per_second")
    assert found["seconds_at_envelope"] == pytest.approx(8, abs=2.1)
    assert "count" in redrive.inside("plan", "estimate", "slow", "--text", "payment").out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["create", "night", "--reason", "x"], 2, "what to redrive is not named"),
        (["create", "night", "--all"], 2, "reason must say why"),
        (["create", "nowhere", "--all", "--reason", "x"], 1, "QUEUE_NOT_FOUND"),
        (["create", "night", "--all", "--reason", "x", "--rate", "0"], 2, "rate_per_second must be at least"),
        (["create", "night", "--all", "--reason", "x", "--abort-failure-ratio", "2"], 2, "failure_ratio"),
        (["create", "night", "--all", "--reason", "x", "--edit", "{}"], 2, "edit needs select.message_ids"),
        (["create", "night", "--id", "m", "--reason", "x", "--edit", "{a"], 2, "--edit is not JSON"),
        (["create", "night", "--id", "m", "--reason", "x", "--edit", "@no.json"], 2, "no.json: No such file"),
        (["estimate", "night"], 2, "what to redrive is not named"),
        (["show", "nobody"], 1, "PLAN_NOT_FOUND"),
        (["watch", "nobody"], 1, "PLAN_NOT_FOUND"),
        (["items", "nobody"], 1, "PLAN_NOT_FOUND"),
        (["start", "nobody"], 1, "PLAN_NOT_FOUND"),
        (["resolve", "nobody"], 2, "--ledger sqlite:///app.db"),
        (["list", "--state", "bored"], 2, "state must be one of"),
    ],
)
def test_wrong_words(redrive: Program, words: list[str], code: int, said: str) -> None:
    """The exit code and the reason."""
    redrive.inside("queue", "create", "night")
    done = redrive.inside("plan", *words)
    assert done.code == code, done.err
    assert said in done.err
