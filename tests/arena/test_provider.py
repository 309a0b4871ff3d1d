"""The provider: Stripe's list shape on the wire, faults by seed and plan, counts, and as a process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import Any

import pytest
import urllib3

from redrive.arena.calendar import day_bounds
from redrive.arena.game import Night
from redrive.arena.provider import FaultPlan, Faults, ProviderServer
from redrive.arena.provider.__main__ import main
from redrive.arena.reconcile import Provider
from redrive.arena.records import account_of
from tests.arena.conftest import DAY

ACCOUNT = account_of("eu-west")


def _get(server: ProviderServer, query: str, account: str = ACCOUNT) -> tuple[int, dict[str, Any]]:
    return _call(server, "GET", f"/v1/balance_transactions{query}", account)


def _call(
    server: ProviderServer,
    method: str,
    path: str,
    account: str = ACCOUNT,
    body: str | None = None,
    key: str = "",
) -> tuple[int, dict[str, Any]]:
    headers = {"Stripe-Account": account} | ({"Idempotency-Key": key} if key else {})
    with urllib3.PoolManager(retries=False, timeout=5) as pool:
        answer = pool.request(method, server.address + path, headers=headers, body=body)
        return answer.status, json.loads(answer.data)


def test_a_list_has_the_shape_of_stripes(server: ProviderServer) -> None:
    """Object, data, has_more, url; entries newest first with amount, fee and net in the smallest unit."""
    status, answer = _get(server, "?limit=3")
    assert status == 200
    assert (answer["object"], answer["url"], answer["has_more"]) == ("list", "/v1/balance_transactions", True)
    first = answer["data"][0]
    fields = "id object amount fee net currency created type reporting_category source description metadata"
    assert set(fields.split()) <= set(first)
    assert first["id"].startswith("txn_")
    assert first["net"] == first["amount"] - first["fee"]
    created = [item["created"] for item in answer["data"]]
    assert created == sorted(created, reverse=True)
    assert len(_get(server, "")[1]["data"]) == 10


def test_paging_reads_every_entry_of_the_range_once(
    server: ProviderServer, provider: Provider, night: Night
) -> None:
    """All pages together are the entries with created in [gte, lt), no more and no less."""
    since, until = day_bounds(DAY)
    cut = (since + until) // 2
    book = night.entries[ACCOUNT]
    for low, high in ((since, until), (since, cut), (cut, until), (since - 86_400, since)):
        read = [entry.txn_id for entry in provider.transactions(ACCOUNT, low, high)]
        assert len(read) == len(set(read))
        assert set(read) == {entry.txn_id for entry in book if low <= entry.created_s < high}
    calls = provider.calls
    list(provider.transactions(ACCOUNT, since, until))
    wanted = -(-len([entry for entry in book if since <= entry.created_s < until]) // 100)
    assert provider.calls - calls == wanted


def test_the_bounds_are_exact_seconds(server: ProviderServer, night: Night) -> None:
    """gte is included, lt is not."""
    second = night.entries[ACCOUNT][0].created_s
    for low, high, there in (
        (second, second + 1, True),
        (second + 1, second + 2, False),
        (second - 1, second, False),
    ):
        _, answer = _get(server, f"?created[gte]={low}&created[lt]={high}&limit=100")
        assert (second in [item["created"] for item in answer["data"]]) is there


@pytest.mark.parametrize(
    ("query", "account", "status", "words"),
    [
        ("?limit=0", ACCOUNT, 400, "limit must be between 1 and 100, got 0"),
        ("?limit=101", ACCOUNT, 400, "got 101"),
        ("?limit=ten", ACCOUNT, 400, "Invalid integer"),
        ("?starting_after=txn_none", ACCOUNT, 400, "No such balance transaction"),
        ("", "acct_none", 403, "no such account"),
        ("", "", 403, "no such account"),
    ],
)
def test_bad_requests_are_refused_with_words(
    server: ProviderServer, query: str, account: str, status: int, words: str
) -> None:
    """4xx in the shape of Stripe's errors."""
    got, answer = _get(server, query, account)
    assert got == status
    assert words in answer["error"]["message"]


def test_an_idempotency_key_makes_one_payout_and_counts_the_calls(server: ProviderServer) -> None:
    """Same key, same answer; same key with another amount is refused; without a key it is made again."""
    path, form = "/v1/payouts", "amount=500&currency=usd"
    first = _call(server, "POST", path, body=form, key="k1")
    assert _call(server, "POST", path, body=form, key="k1") == first
    status, answer = _call(server, "POST", path, body="amount=501&currency=usd", key="k1")
    assert (status, answer["error"]["type"]) == (400, "idempotency_error")
    assert _call(server, "POST", path, body=form) != _call(server, "POST", path, body=form)
    assert len(server.books.payouts()) == 3
    counts = {
        row["idempotency_key"]: row["calls"] for row in _call(server, "GET", "/_control/counts")[1]["calls"]
    }
    assert counts == {"k1": 3, "": 2}


def test_an_outage_is_switched_on_and_off_by_the_control_route(server: ProviderServer) -> None:
    """503 while it lasts, for every account; counted."""
    assert _call(server, "POST", "/_control/outage", body='{"on": true}')[0] == 200
    assert _get(server, "")[0] == 503
    assert _call(server, "POST", "/_control/outage", body='{"on": false}')[0] == 200
    assert _get(server, "")[0] == 200
    assert _call(server, "GET", "/_control/counts")[1]["faults"] == {"outage": 1}
    assert _call(server, "POST", "/_control/outage", body="{")[0] == 400


def test_a_fault_plan_over_the_wire_names_what_it_does_not_know(server: ProviderServer) -> None:
    """Placed faults hit the call that was named; unknown ones are refused."""
    plan = {"places": [{"account": ACCOUNT, "call": 2, "fault": "rate_limited"}], "retry_after_seconds": 3}
    assert _call(server, "POST", "/_control/faults", body=json.dumps(plan))[0] == 200
    assert [_get(server, "")[0] for _ in range(3)] == [200, 429, 200]
    status, answer = _call(server, "POST", "/_control/faults", body='{"rates": {"flood": 0.5}}')
    assert (status, "unknown faults: flood" in answer["error"]["message"]) == (400, True)


def test_faults_depend_on_the_seed_the_account_and_the_calls_number_only() -> None:
    """The order in which workers call does not change what they meet; the rates are about kept."""
    plan = FaultPlan(rates={"slow": 0.2, "server_error": 0.1})
    calls = [(account, "GET", number) for account in ("a", "b") for number in range(1, 1_001)]
    one, other = Faults(1, plan), Faults(1, plan)
    forward = {call: one.judge(*call) for call in calls}
    assert {call: other.judge(*call) for call in reversed(calls)} == forward
    assert {call: Faults(2, plan).judge(*call) for call in calls} != forward
    assert 300 < one.met()["slow"] < 500
    assert 120 < one.met()["server_error"] < 280


def test_it_runs_as_a_process_of_its_own() -> None:
    """It prints its address, serves the books of its seed, and stops on SIGTERM."""
    command = [
        sys.executable,
        "-m",
        "redrive.arena.provider",
        "--seed",
        "7",
        "--payments",
        "600",
        "--date",
        DAY,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            word, address = process.stdout.readline().split()
            assert word == "ready"
            read = list(Provider(address).transactions(ACCOUNT, *day_bounds(DAY)))
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    night = Night.drawn(7, payments=600, matches_count=0, day=DAY, now_ms=0)
    since, until = day_bounds(DAY)
    assert {entry.txn_id for entry in read} == {
        entry.txn_id for entry in night.entries[ACCOUNT] if since <= entry.created_s < until
    }


def test_a_wrong_plan_or_file_is_usage_error(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    """Exit code 2 and one line that says what is wrong."""
    assert main(["--faults", '{"rates": {"flood": 1}}']) == 2
    assert "unknown faults: flood" in capsys.readouterr().err
    (tmp_path / "data.jsonl").write_text('{"account": "a", "txn": 1}\n')
    assert main(["--data", str(tmp_path / "data.jsonl")]) == 2
    assert "data.jsonl line 1" in capsys.readouterr().err
