"""Programs in the manners of Python, Go, JavaScript and Java, told only a base URL and a key.

Each runs once as a process of its own against a real server on SQLite and one on PostgreSQL; the tests read
what it printed and what the server holds afterwards.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from redrive.domain.errors import QueueNotFound
from redrive.transports.contract_transport import ContractTransport
from tests.database import wait_for
from tests.system.programs.running import Programs, run
from tests.system.servers import ServerProcess

STATS_SECONDS = 15.0  # they may be 5 s old


@pytest.fixture(scope="session", params=["sqlite", "postgres"])
def programs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Programs]:
    """What runs programs against one server, on each engine in turn."""
    with ExitStack() as stack:
        if request.param == "postgres":
            url = stack.enter_context(request.getfixturevalue("postgres_server").fresh_database())
        else:
            url = f"sqlite:///{tmp_path_factory.mktemp('programs') / 'redrive.db'}"
        yield Programs(stack.enter_context(ServerProcess(url)))


@pytest.fixture
def state(programs: Programs) -> Iterator[ContractTransport]:
    """The server's state, read by the contract after a program has run."""
    client = programs.server.client()
    yield client
    client.close()


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server that allows a key one request a second, in bursts of two."""
    settings = {"rate_per_second": 1.0, "rate_burst": 2}
    with ServerProcess(f"sqlite:///{tmp_path / 'redrive.db'}", settings=settings) as server:
        yield server


def settled(state: ContractTransport, queue: str) -> bool:
    """Whether the queue exists and holds nothing."""
    stats = state.call("queue.stats", {"queue": queue})
    return not any(stats[name] for name in ("ready", "delayed", "leased", "waiting", "dead"))


def test_urllib_settles_by_id_alone(programs: Programs, state: ContractTransport) -> None:
    """Texts go through a queue that nobody created and are acknowledged by id; the server counts that."""
    told = programs("python_first_job")
    assert (told["implicit"], told["same_ids"], told["left"]) == (True, True, [])
    assert told["payloads"] == ["refund 17", "zurück: 18 €", ""]
    assert told["acks"] == [True, True, True, False]
    assert settled(state, "first-job")
    wait_for(
        lambda: state.call("queue.stats", {"queue": "first-job"})["unfenced_settles_total"] >= 3,
        STATS_SECONDS,
        "the three id-only acks to be counted",
    )


def test_requests_session_runs_a_batch(programs: Programs, state: ContractTransport) -> None:
    """Bare values and entries, `items` of consume, late acks, bodies on GET and DELETE, one connection."""
    told = programs("python_session")
    assert told["stored"] == [True, True, True, True, True, False, True]
    assert told["refused"] == "INVALID_REQUEST"
    assert told["payloads"] == ["a bare text", 7, {"shard": 3}, {"shard": 4}, [1, 2.5, None], None]
    assert (told["views_agree"], told["job_key"]) == (True, "shard:4")
    assert told["distinct"] == 6, "a key on consume must not replay the leases of the first answer"
    assert told["acked"] == [True, True, True, False, False, False]
    assert told["late"] == [False, False, False, True, True, True, "INVALID_REQUEST"]
    assert (told["looked"], told["listed"], told["deleted"]) == ("session", True, True)
    assert (told["gone"], told["gone_error"]["http_status"]) == (404, 404)
    assert "not found" in told["gone_error"]["message"]
    assert told["connections"] == 1
    with pytest.raises(QueueNotFound):
        state.call("queue.get", {"queue": "session"})


def test_http_client_waits_in_a_long_poll(programs: Programs, state: ContractTransport) -> None:
    """A publish and a due time end a poll; a short one without work answers an empty list, twice."""
    told = programs("python_long_poll")
    assert told["empty"] == [[], []]
    assert (told["woken"], told["at_once"], told["delayed"]) == ([{"n": 1}], [], [{"n": 2}])
    assert told["lease_seconds"] == 30
    assert settled(state, "long-poll")


def test_a_stale_worker_is_told_so_item_by_item(programs: Programs, state: ContractTransport) -> None:
    """The handle of the lost lease is 409, in a batch an error of its item; the new one acknowledges."""
    told = programs("python_late_ack")
    assert (told["same_message"], told["second"]) == (True, [2, 2, "lost"])
    assert told["single"] == [409, "STALE_RECEIPT"]
    assert told["batch"] == ["STALE_RECEIPT", False, True, False]
    assert settled(state, "late-ack")


def test_an_operator_lists_and_redrives(programs: Programs, state: ContractTransport) -> None:
    """A spent budget and a permanent failure are listed with why, sent back as themselves, and finished."""
    told = programs("python_dead_letters")
    assert [name for name, _ in told["nacks"]][1:] == ["dead", "dead"]
    assert told["nacks"][0][1] == 1
    assert told["reasons"] == [[True, "max_attempts", "dead-letters"], [False, "rejected", "dead-letters"]]
    assert (told["error"], told["filtered"], told["by_own_name"]) == ("NoSuchPayment", [True], 2)
    assert (told["redriven"], told["same_ids"], told["acked"]) == ([1, 1], [True, True], [True, True])
    assert told["budgets"] == [[1, 3, 1], [1, 2, 1]]
    assert told["left"] == []
    assert settled(state, "dead-letters")


def test_a_redrive_is_a_plan(programs: Programs) -> None:
    """The answer names a plan, which can be read; the delivery that it leads to names it too."""
    told = programs("python_dead_letters")
    assert all(isinstance(plan_id, str) for plan_id in told["plan_ids"])
    assert told["delivered_by"] == told["plan_ids"]
    assert told["plan"] == 200


def test_go_repeats_under_constant_keys(programs: Programs, state: ContractTransport) -> None:
    """The same request in other words is the first answer; another body is refused and stores nothing."""
    told = programs("go_reconcile")
    status, first_id, hit = told["first"]
    assert (status, hit) == (200, False)
    same = [200, first_id, True]
    assert told["again"] == [same, same, same, same]
    assert (told["traced"], told["header_wins"]) == (same, same)
    assert told["conflict"] == [422, "IDEMPOTENCY_KEY_REUSED", False]
    assert told["stored_once"] == 1
    assert told["payload"] == {"window": "2026-10-23", "amount": 9007199254740993, "note": "a<b & c>d"}
    assert told["connections"] == 1
    assert state.call("queue.message", {"message_id": told["anew_taken"][0]})["state"] == "leased"


def test_a_key_belongs_to_one_queue(programs: Programs) -> None:
    """Another queue, and the queue of that name made anew, know nothing of it; nor does a publish without."""
    told = programs("go_reconcile")
    ids = {told[name][1] for name in ("first", "elsewhere", "unkeyed", "anew")}
    assert len(ids) == 4
    assert [told[name][2] for name in ("elsewhere", "unkeyed", "anew")] == [False, False, False]
    assert told["anew_taken"] == [told["anew"][1]]


def test_go_probes_by_escaped_names(programs: Programs, state: ContractTransport) -> None:
    """A name is decoded once; whatever no queue can be called is a 404 in words; probing creates nothing."""
    told = programs("go_probe")
    found = told["found"]
    assert found.pop("probe.eu_west-1") == {"status": 200, "ok": True, "missing": False}
    assert set(found) == {"a/b", "über", "a b", "%61", "no.such.queue", "q?x=1", "", ".."}
    assert all(seen == {"status": 404, "ok": False, "missing": True} for seen in found.values()), found
    assert (told["escaped_letters"], told["whole"], told["ready"]) == (200, True, 1)
    wanted = {"ready", "delayed", "leased", "dead", "oldest_ready_age_seconds", "dead_per_minute"}
    assert wanted <= set(told["numbers"])
    assert (told["created_by_probing"], told["connections"]) == ([], 1)
    with pytest.raises(QueueNotFound):
        state.call("queue.get", {"queue": "no.such.queue"})


def test_go_creates_its_queues_at_every_start(programs: Programs, state: ContractTransport) -> None:
    """Equal and partial settings confirm the queue, others are 409 and named, and nothing was changed."""
    told = programs("go_queues")
    status, born = told["first"]
    assert (status, told["retention_seconds"]) == (200, 604_800)
    assert told["same"] == [[200, born]] * 4
    assert (told["other"], told["differences"]) == ([409, "QUEUE_EXISTS"], ["max_retries", "type"])
    assert (told["updated"], told["old"], told["new"]) == (4, [409, "QUEUE_EXISTS"], [200, born])
    assert (told["deleted"], told["anew"]) == (True, [200, "fifo", 9])
    assert (told["implicit"], told["applied"]) == ([True, 5], [False, 1])
    record = state.call("queue.get", {"queue": "deployed"})
    assert (record["type"], record["max_retries"], record["implicit"]) == ("fifo", 9, False)


def test_a_create_under_a_key_is_made_anew_when_its_queue_is_gone(
    programs: Programs, state: ContractTransport
) -> None:
    """A repeated create is the first answer; with other settings 422; after a deletion it creates."""
    told = programs("go_queues")
    assert told["keyed"] == [[200, False], [200, True]]
    assert told["reused"] == [422, "IDEMPOTENCY_KEY_REUSED"]
    assert told["made_anew"] == [200, False]
    assert state.call("queue.get", {"queue": "deployed-2"})["max_retries"] == 3


def test_unknown_fields_are_ignored_and_named(programs: Programs, state: ContractTransport) -> None:
    """Dotted paths of what was ignored, nothing when nothing was, and 400 with a hint in strict mode."""
    told = programs("go_tolerance")
    assert (told["plain"], told["newer"]) == (None, ["tenant", "tags"])
    assert sorted(told["created"]) == ["owner", "retry_policy.curve"]
    assert told["base_seconds"] == 3
    assert told["refused"] == [400, "INVALID_REQUEST", "delay_secs"]
    assert "delay_seconds" in told["hint"]
    assert told["nulls"] == [200, None]
    assert (told["batch_ignored"], told["consume_ignored"]) == (["mode"], ["group"])
    assert (told["acked"], told["acked_ignored"]) == (True, "items[0].at")
    assert settled(state, "tolerance")


def test_a_null_in_an_entry_is_an_absent_field(programs: Programs) -> None:
    """An entry of a batch is stored when its only unknown field is null."""
    assert programs("go_tolerance")["batch"] == ["stored", "stored"]


def test_go_keeps_an_account_in_order(programs: Programs) -> None:
    """The first ordered publish makes a FIFO queue; one step a group at a time; a repeated step is one."""
    told = programs("go_fifo")
    assert (told["type"], told["duplicates"]) == ("fifo", [False, False, False, True])
    assert told["first_id_again"] is True
    assert told["rounds"] == [[["a", 1], ["b", 1]], [["a", 2]]]
    assert (told["priority"], told["grouped"]) == (400, 400)


def test_fetch_fails_extends_gives_back_and_succeeds(programs: Programs, state: ContractTransport) -> None:
    """Three deliveries of one message: a delayed nack, an extended lease given back, an ack by alias."""
    told = programs("javascript_worker")
    assert told["payload"] == {"emoji": "🎲", "none": None}
    assert (told["nacked"], told["hidden"]) == (["delayed", 5], [])
    assert told["deliveries"] == [[1, 1, None], [2, 2, "nack"], [2, 3, "released"]]
    assert told["stale"] == told["other_verb"] == [409, "STALE_RECEIPT"]
    assert (told["extended"], told["released"]) == (60, "ready")
    assert told["acked"] == {"acknowledged": True}
    assert told["gone"] == [404, "MESSAGE_NOT_FOUND", True]
    assert told["connections"] == 1
    assert settled(state, "js-worker")


def test_fetch_gives_up_long_polls(programs: Programs, state: ContractTransport) -> None:
    """A job is not lost to polls that were aborted: the next one has it at its first attempt."""
    assert programs("javascript_abort") == {"attempts": [1], "acked": True}
    assert settled(state, "js-abort")


def test_a_queue_may_want_the_handle(programs: Programs, state: ContractTransport) -> None:
    """With `require_receipt_handle` an id alone settles nothing."""
    told = programs("javascript_fenced")
    assert all(400 <= status < 500 for status in told["bare"])
    assert (told["batch_refused"], told["state"], told["fenced"]) == ([True], "leased", True)
    assert settled(state, "js-fenced")


def test_a_fraction_is_no_whole_number(programs: Programs) -> None:
    """1.5 messages are 400; a query's `limit=10.0` is ten, and 3e1 seconds are thirty."""
    told = programs("javascript_numbers")
    assert (told["half"], told["listed"], told["seconds"]) == ([400, "INVALID_REQUEST"], 200, [200, 30])


def test_a_whole_number_may_be_written_as_a_double(programs: Programs) -> None:
    """`10.0`, `3.0` and `8.64e4` are the whole numbers that they equal, as for JSON Schema's `integer`."""
    told = programs("javascript_numbers")
    assert set(told["statuses"].values()) == {200}, told["statuses"]
    assert told["batch"] == [None]


def test_axios_creates_through_429s(limited: ServerProcess) -> None:
    """A create under one key, four times: one queue, one record, every 429 whole and with its wait."""
    done = run("javascript_deploy", limited.url)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["made"] == [[200, False], [200, True], [200, True], [200, True]]
    assert (told["records"], told["connections"]) == (1, 1)
    assert told["refused"] >= 1
    for envelope, headers in zip(told["envelopes"], told["headers"], strict=True):
        error = envelope["error"]
        assert (envelope["ok"], envelope["data"], error["code"]) == (False, None, "RATE_LIMITED")
        assert (error["http_status"], error["retryable"]) == (429, True)
        assert re.fullmatch(r"[1-9]\d*", headers["retry-after"])
        assert headers["ratelimit"]
        assert headers["ratelimit-policy"]


def test_axios_without_patience_is_refused(limited: ServerProcess) -> None:
    """The control: the same program, not waiting, does not get its four answers."""
    done = run("javascript_deploy", limited.url, IMPATIENT="1")
    told = json.loads(done.stdout)
    assert len(told["made"]) < 4
    assert told["refused"] >= 1


def test_fetch_finds_every_route_by_discovery(programs: Programs, state: ContractTransport) -> None:
    """Methods and path templates of module `scheduling` are enough for a message's life and an operator's."""
    told = programs("javascript_catalogue")
    assert (told["version"], told["enveloped"]) == ("v1", False)
    entry = told["entry"]
    assert (entry["module"], entry["namespace"], entry["available"]) == ("scheduling", "queue", True)
    assert (entry["method"], entry["path"], entry["idempotent"]) == ("POST", "/v1/queue/publish", True)
    assert (entry["scope"], entry["billing"]) == ("publish", {"is_billable": False, "free": True})
    assert set(told["steps"].values()) == {200}, told["steps"]
    assert set(told["steps"]) <= set(told["ids"])
    assert told["purge"] == [428, "CONFIRMATION_REQUIRED"]
    assert {"queue", "confirm", "reason"} <= set(told["purge_params"])
    assert (told["retryable"]["RATE_LIMITED"], told["retryable"]["INVALID_REQUEST"]) == (True, False)
    assert {"curl", "python", "javascript", "go"} <= set(told["languages"])
    assert told["unknown"] == [404, True]
    with pytest.raises(QueueNotFound):
        state.call("queue.get", {"queue": "js.catalogue"})


def test_java_serialises_nulls_and_waits_for_100(programs: Programs, state: ContractTransport) -> None:
    """A null is an absent field (a null payload is one), each body is asked for, refusals come without it."""
    told = programs("java_expect")
    assert told["interim"] == [[100]] * 5
    assert (told["payloads"], told["ignored"]) == (["Zahlung über 12 €", None], None)
    assert (told["nacked"], told["acked"], told["connections"]) == (5, True, 1)
    assert told["refused"] == [401, "UNAUTHENTICATED", [], 'Bearer realm="redrive"']
    stats = state.call("queue.stats", {"queue": "java-expect"})
    assert stats["ready"] + stats["delayed"] + stats["leased"] == 1


def test_okhttp_posts_nothing(programs: Programs, state: ContractTransport) -> None:
    """`Content-Length: 0` does what the path says, and names the field that an empty object lacks."""
    told = programs("java_empty_posts")
    assert (told["consumed"], told["states"], told["redriven"]) == ([], ["paused", "active"], 0)
    assert told["purge"] == [428, "CONFIRMATION_REQUIRED"]
    assert all(seen[:2] == [400, "INVALID_REQUEST"] for seen in told["missing"].values()), told["missing"]
    named = {seen[2] for verb, seen in told["missing"].items() if verb != "publish_batch"}
    assert named <= {"name", "queue", "payload", "message_id", "items"}
    assert told["connections"] == 1
    assert state.call("queue.get", {"queue": "java-empty"})["implicit"] is True


def test_an_empty_body_is_an_empty_object_everywhere(programs: Programs) -> None:
    """publish_batch, and publish by path, name what is missing in `{}`."""
    told = programs("java_empty_posts")
    assert told["missing"]["publish_batch"][2] in ("queue", "messages")
    assert told["in_path"] == [400, "INVALID_REQUEST", "payload"]


def test_java_offers_h2c_without_a_body(programs: Programs) -> None:
    """The offer is passed over, on a connection that stays; told HTTP/1.1, the client does all it wants."""
    told = programs("java_upgrade")
    assert (told["bodyless"], told["bodyless_connections"]) == ([200, 200, 200], 1)
    assert told["stayed"] == [200, 200, {"acknowledged": False}]
    assert told["stayed_connections"] == 1


def test_java_offers_h2c_with_a_body(programs: Programs) -> None:
    """A publish and a GET that come with the offer are read whole, on one connection."""
    told = programs("java_upgrade")
    assert told["offered"] == [[200, None], [200, None]]
    assert (told["got"], told["offered_connections"]) == (200, 1)


def test_java_redrives_only_what_it_names(programs: Programs) -> None:
    """A redrive by id that comes with an offer of h2c does not become one of everything."""
    assert programs("java_upgrade_redrive") == {"redriven": 1, "left": [1]}


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="the cron routes are not built: 404")
def test_requests_keeps_a_nightly_schedule(programs: Programs) -> None:
    """A schedule that publishes and one that calls a URL, by new and older names, from create to delete."""
    told = programs("python_cron")
    assert (told["first_field"], told["one_id"], told["triggered"]) == ("job_id", 1, True)
    hook = "https://hooks.example.invalid/nightly"
    assert told["hook"] == [hook, hook, "@daily", True]
    assert (told["payload"], told["run"], told["listed"]) == (True, "succeeded", True)
    assert (told["enabled"], told["deleted"]) == ([False, True], [200, 200])
    assert told["missing"] == [404, "CRON_NOT_FOUND"]


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="the push routes are not built: 404")
def test_go_subscribes_its_webhook(programs: Programs) -> None:
    """An unknown queue is 404 first; then subscribed, listed, ended; another scheme than https is 400."""
    told = programs("go_push")
    assert told["unknown"] == [404, "QUEUE_NOT_FOUND"]
    assert (told["made"], told["scheme"]) == (["go-push", True], [400, "INVALID_REQUEST"])
    assert (told["listed"], told["ended"], told["left"]) == (True, 200, [])


@pytest.mark.parametrize("name", ["go_probe", "java_expect"])
def test_a_program_with_another_key_gets_nowhere(programs: Programs, name: str) -> None:
    """The control: the same program under a key that nobody made ends with the 401 that it was answered."""
    done = run(name, programs.server.url, "a key that nobody made")
    assert done.returncode != 0
    assert "UNAUTHENTICATED" in done.stderr
