"""The settlement job against a real provider process-alike and real databases."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from redrive.arena.game import Game, Night, open_game
from redrive.arena.outcomes import Reject, RetryLater
from redrive.arena.provider import FaultPlan, ProviderServer
from redrive.arena.reconcile import Provider, ProviderTimeout, ProviderUnavailable, reconcile_shard
from redrive.arena.records import SHARDS, account_of
from tests.arena.conftest import expected, settlement

SHARD = "eu-west"
TABLES = ("payments_all", "corrections_all", "exceptions_all", "audit_all", "postings_sum", "cleanups_all")


def _everything(game: Game) -> list[Any]:
    return [game.rows(table) for table in TABLES]


def test_a_night_corrects_and_reports_exactly_what_is_known(
    game: Game, night: Night, provider: Provider
) -> None:
    """All shards, each database: the answer key, one audit line a shard, the provider's money posted once."""
    for shard in SHARDS:
        answer = reconcile_shard(settlement(shard), game.connection, provider)
        game.connection.commit()
        rows = [row for row in game.rows("corrections_all") if row["job_key"].endswith(f":{shard}")]
        told = [row for row in game.rows("exceptions_all") if row["job_key"].endswith(f":{shard}")]
        got = [("correction", row["payment_id"], row["to_state"]) for row in rows]
        got += [(row["kind"], row["payment_id"] or row["provider_ref"], "") for row in told]
        assert sorted(got) == expected(night.answers[shard]), shard
        assert (answer["corrected"], answer["exceptions"]) == (len(rows), len(told))
    states = {row["payment_id"]: row["state"] for row in game.rows("payments_all")}
    assert all(states[row["payment_id"]] == row["to_state"] for row in game.rows("corrections_all"))
    assert {row["job_key"]: row["effects"] for row in game.rows("effects_by_key")} == {
        settlement(shard).key: 1 for shard in SHARDS
    }
    posted = {row["currency"]: int(row["net"]) for row in game.rows("postings_sum")}
    assert posted == {currency: net for currency, (_, _, net) in night.totals().items()}


def test_running_again_corrects_nothing_more(sqlite_game: Game, provider: Provider) -> None:
    """States, not events: the second run finds no correction. Only receipts keep it from posting twice."""
    first = reconcile_shard(settlement(SHARD), sqlite_game.connection, provider)
    second = reconcile_shard(settlement(SHARD), sqlite_game.connection, provider)
    assert first["corrected"] > 0
    assert (second["corrected"], second["exceptions"]) == (0, first["exceptions"])
    (effects,) = sqlite_game.rows("effects_by_key")
    assert effects["effects"] == 2  # what the demo shows without receipts


def test_a_dry_run_changes_nothing(sqlite_game: Game, provider: Provider, server: ProviderServer) -> None:
    """It tells the same counts, writes no row and sends no payout."""
    before = _everything(sqlite_game)
    dry = reconcile_shard(settlement(SHARD), sqlite_game.connection, provider, dry_run=True)
    assert _everything(sqlite_game) == before
    assert not server.books.payouts()
    wet = reconcile_shard(settlement(SHARD), sqlite_game.connection, provider)
    assert dry["dry_run"]
    assert (dry["corrected"], dry["exceptions"]) == (wet["corrected"], wet["exceptions"])


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (settlement("no-such", key="settlement:2026-10-23:no-such"), "no shard named 'no-such'"),
        (settlement(SHARD, date="2026-10-24"), "job key .* is not that of 2026-10-24"),
        (settlement(SHARD, date="23.10.2026"), "date: '23.10.2026' is not a date"),
        (settlement(SHARD, date="2026-13-01"), "date: "),
        (settlement(SHARD, game_id="chess"), "belongs to game 'emberfall', the job says 'chess'"),
        (settlement(SHARD, game_id=None), "lacks game_id"),
        (SimpleNamespace(key="k", payload=[1], delivery=1), "payload is an object, got list"),
    ],
)
def test_a_job_that_can_never_be_valid_is_rejected(
    sqlite_game: Game, provider: Provider, job: Any, words: str
) -> None:
    """Rejected with the reason, before the provider is asked."""
    with pytest.raises(Reject, match=words):
        reconcile_shard(job, sqlite_game.connection, provider)
    assert provider.calls == 0


def test_an_invalid_source_record_is_rejected_until_it_is_corrected(
    sqlite_game: Game, provider: Provider
) -> None:
    """The reason names the payment; after the correction at the source the same job runs."""
    payment = sqlite_game.payments_of_day(SHARD, "2026-10-23")[0]
    sqlite_game.write("payment_set_currency", payment_id=payment.payment_id, currency="US$")
    with pytest.raises(Reject, match=f"source record invalid: payment {payment.payment_id}: currency"):
        reconcile_shard(settlement(SHARD), sqlite_game.connection, provider)
    sqlite_game.write("payment_set_currency", payment_id=payment.payment_id, currency=payment.currency)
    assert reconcile_shard(settlement(SHARD), sqlite_game.connection, provider)["compared"] > 0


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("rate_limited", RetryLater),
        ("server_error", ProviderUnavailable),
        ("html", ProviderUnavailable),
        ("timeout", ProviderTimeout),
    ],
)
def test_a_fault_on_a_later_page_changes_nothing_and_is_transient(
    sqlite_game: Game, provider: Provider, server: ProviderServer, fault: str, error: type[Exception]
) -> None:
    """The third call fails: no row is written, and the error is one that a worker retries."""
    plan = FaultPlan(places={(account_of(SHARD), "GET", 3): fault}, retry_after_seconds=7, timeout_seconds=20)
    server.faults.replace(plan)
    before = _everything(sqlite_game)
    with pytest.raises(error) as caught:
        reconcile_shard(settlement(SHARD), sqlite_game.connection, provider)
    assert _everything(sqlite_game) == before
    assert isinstance(caught.value, RetryLater | OSError)
    if isinstance(caught.value, RetryLater):
        assert caught.value.after == 7
    assert reconcile_shard(settlement(SHARD), sqlite_game.connection, provider)["compared"] > 0


def test_a_slow_answer_is_no_fault(sqlite_game: Game, provider: Provider, server: ProviderServer) -> None:
    """Slower than usual but within the time-out: the job goes on."""
    server.faults.replace(FaultPlan(places={(account_of(SHARD), "GET", 2): "slow"}, slow_seconds=0.1))
    assert reconcile_shard(settlement(SHARD), sqlite_game.connection, provider)["compared"] > 0
    assert server.faults.met() == {"slow": 1}


def test_an_unknown_account_is_refused_for_good(sqlite_game: Game, provider: Provider) -> None:
    """What the provider refuses by 4xx cannot be helped by trying again."""
    sqlite_game.connection.execute(
        "update game_shards set provider_account = 'acct_gone' where shard = ?", (SHARD,)
    )
    with pytest.raises(Reject, match="the provider answered 403: no such account"):
        reconcile_shard(settlement(SHARD), sqlite_game.connection, provider)


def test_nobody_at_the_port_is_transient(sqlite_game: Game, free_port: int) -> None:
    """A refused connection is a ConnectionError."""
    with pytest.raises(ConnectionError):
        reconcile_shard(settlement(SHARD), sqlite_game.connection, Provider(f"http://127.0.0.1:{free_port}"))


def test_a_payout_is_sent_once_however_often_the_job_is_rolled_back(
    sqlite_game: Game, provider: Provider, server: ProviderServer
) -> None:
    """The transaction cannot cover the call; the key can. The provider counts the repeats."""
    shard = next(
        shard for shard in SHARDS
        if any(row.state == "payout_paid" and _failed(server, row.provider_ref, shard)
               for row in sqlite_game.payments_of_day(shard, "2026-10-23"))
    )  # fmt: skip
    for _ in range(3):
        reconcile_shard(settlement(shard), sqlite_game.connection, provider)
        sqlite_game.connection.rollback()
    reconcile_shard(settlement(shard), sqlite_game.connection, provider)
    sent = {row["resubmitted"] for row in sqlite_game.rows("corrections_all")} - {""}
    assert {payout["id"] for payout in server.books.payouts()} == sent
    calls = Counter(
        {row["idempotency_key"]: row["calls"] for row in server.books.counts() if row["idempotency_key"]}
    )
    assert sent
    assert set(calls.values()) == {4}
    assert all(key.startswith(settlement(shard).key + "/payout/") for key in calls)


def _failed(server: ProviderServer, ref: str, shard: str) -> bool:
    page = server.books.page(account_of(shard), {"charge": ref})
    return any(item["reporting_category"] == "payout_reversal" for item in page["data"])


def test_a_payment_that_moved_meanwhile_is_not_overwritten(
    sqlite_game: Game, provider: Provider, night: Night, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version other than the compared one: nothing is written over it, the job runs again later."""
    corrected = next(a["subject"] for a in night.answers[SHARD] if a["find"] == "correction")
    read = provider.transactions

    def read_while_it_moves(account: str, since_s: int, until_s: int) -> Any:
        yield from read(account, since_s, until_s)
        sqlite_game.write("payment_set_currency", payment_id=corrected, currency="eur")

    monkeypatch.setattr(provider, "transactions", read_while_it_moves)
    with pytest.raises(RetryLater, match=f"payment {corrected} changed"):
        reconcile_shard(settlement(SHARD), sqlite_game.connection, provider)


def test_a_reference_held_in_another_shard_is_reported_in_both(sqlite_game: Game, provider: Provider) -> None:
    """Double booking is seen over the border of a shard."""
    mine = next(row for row in sqlite_game.payments_of_day(SHARD, "2026-10-23") if row.state == "charged")
    other = next(
        row for row in sqlite_game.payments_of_day("us-east", "2026-10-23") if row.state == "charged"
    )
    sqlite_game.connection.execute(
        "update game_payments set provider_ref = ? where payment_id = ?",
        (mine.provider_ref, other.payment_id),
    )
    for shard in (SHARD, "us-east"):
        reconcile_shard(settlement(shard), sqlite_game.connection, provider)
    kinds = [
        row["job_key"].rsplit(":", 1)[1] for row in sqlite_game.rows("exceptions_all")
        if (row["kind"], row["provider_ref"]) == ("double_booked_reference", mine.provider_ref)
    ]  # fmt: skip
    assert sorted(kinds) == [SHARD, "us-east"]


def test_the_game_names_a_scheme_it_does_not_know(tmp_path: Path) -> None:
    """A wrong URL or connection is refused by name."""
    with pytest.raises(ValueError, match="got scheme 'redis'"):
        open_game("redis://x")
    with pytest.raises(TypeError, match="sqlite3, psycopg or PyMySQL"):
        Game(object())
    with closing(open_game(f"sqlite:///{tmp_path / 'x.db'}")) as connection:
        assert Game(connection).dialect == "sqlite"
