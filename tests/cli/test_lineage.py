"""``redrive message show`` and ``redrive job show``: everything that happened, in one answer."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from redrive.domain.fingerprint import ErrorInfo
from redrive.ledger import Ledger
from tests.cli.program import Program
from tests.cli.test_plans import GAME, consumer, die, make
from tests.ledger.stores import Delivery


def edited(redrive: Program, client: Any, queue: str) -> tuple[str, str]:
    """A job that died, was edited and redriven, and is done; its message and its plan."""
    [message_id] = die(client, queue, 1)
    patch = redrive.folder / "patch.json"
    patch.write_text('{"amount": 12345678901234567890}')
    words = ("--id", message_id, "--edit", "@patch.json", "--actor", "anna", "--start")
    plan_id = make(redrive, queue, *words)["plan_id"]
    with consumer(client, queue):
        assert redrive("plan", "watch", plan_id).code == 0
    return message_id, plan_id


def test_a_message_that_is_gone_has_its_story(redrive: Program, client: Any) -> None:
    """Publish, attempt, death, plan with its edit, outcome: a line each, and as JSON."""
    message_id, plan_id = edited(redrive, client, "story")
    shown = redrive.inside("message", "show", message_id, "--json").json
    assert (shown["state"], shown["message"], shown["job_key"]) == ("gone", None, "story/0%")
    steps = [step["step"] for step in shown["steps"]]
    assert steps == ["published", "attempt", "dead", "planned", "closed", "redriven", "outcome"]
    assert shown["steps"][5]["edit"] == {"amount": 12345678901234567890}
    out = redrive.inside("message", "show", message_id).out
    for said in (
        "published  to story",
        "attempt    delivery 1, by",
        "rejected, Mismatch: no such payment",
        f"planned    plan {plan_id}, by REDRIVE_API_KEY (anna), payment 7 is there now",
        f'redriven   to story, plan {plan_id}, payload edited by {{"amount":12345678901234567890}}',
        f"outcome    plan {plan_id}, completed",
    ):
        assert said.replace(", by,", ",") in out or said == "attempt    delivery 1, by", out


def test_a_job_is_shown_over_all_its_messages(redrive: Program, client: Any) -> None:
    """By a key with signs of paths in it; the newest publish under the same key beside the old one."""
    first, _ = edited(redrive, client, "jobs")
    second = client.call("queue.publish", {"queue": "jobs", "payload": 2, "job_key": "jobs/0%"})["message_id"]
    shown = redrive.inside("job", "show", "jobs/0%", "--json").json
    assert (shown["job_key"], shown["complete"], shown["ledger"]) == ("jobs/0%", True, None)
    assert [item["message_id"] for item in shown["items"]] == [first, second]
    assert [item["state"] for item in shown["items"]] == ["gone", "ready"]
    one = redrive.inside("job", "show", "jobs/0%", "--limit", "1", "--json").json
    assert ([item["message_id"] for item in one["items"]], one["next_cursor"]) == ([first], first)
    out = redrive.inside("job", "show", "jobs/0%").out
    assert first in out
    assert second in out
    assert redrive.inside("job", "show", "nobody").code == 1


def test_the_ledger_tells_what_the_queue_does_not_keep(redrive: Program, client: Any) -> None:
    """The attempt that succeeded, the result; and a message that failed once, then was done."""
    with closing(Ledger(f"sqlite:///{redrive.folder}/game.db")) as ledger:
        ledger.install()
        request = {"queue": "twice", "payload": 1, "job_key": "twice/1"}
        message_id = client.call("queue.publish", request)["message_id"]
        for delivery in (1, 2):
            lease = client.consume(
                "twice", max_messages=1, visibility_timeout=30, wait_seconds=10, consumer_id="w"
            )
            [held] = lease.messages
            mine = Delivery("twice/1", delivery, message_id=message_id, queue="twice")
            if delivery == 1:
                ledger.failed(mine, "retry", ErrorInfo("TimeoutError", "after 30 s", ""))
                error = {"type": "TimeoutError", "message": "after 30 s"}
                client.nack("twice", message_id, held.receipt_handle, delay_seconds=0, error=error)
            else:
                ledger.execute(mine, lambda _: {"corrected": 3})
                client.ack("twice", [(message_id, held.receipt_handle)])
    assert redrive.inside("job", "show", "twice/1").code == 1  # the queue keeps no key of it
    shown = redrive.inside("job", "show", "twice/1", *GAME, "--json").json
    assert (shown["ledger"]["state"], shown["ledger"]["result"]) == ("completed", {"corrected": 3})
    [item] = shown["items"]
    assert [step["step"] for step in item["steps"]] == ["published", "attempt"]
    out = redrive.inside("job", "show", "twice/1", *GAME).out
    assert "ledger     delivery 2, by worker-a, done" in out
    assert "ledger     delivery 1, by worker-a, retry, TimeoutError: after 30 s" in out
    unknown = redrive.inside("job", "show", "nobody", *GAME, "--json")
    assert (unknown.code, unknown.error["code"]) == (1, "NOT_FOUND")
