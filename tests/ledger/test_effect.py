"""apply_once and execute: one effect a key, whatever the caller does."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import pytest

from redrive.domain.errors import InvalidRequest, LimitExceeded
from redrive.ledger import (
    GENERATION_HEADER,
    Job,
    LeaseLost,
    Ledger,
    LedgerError,
    LedgerNotInstalled,
    TransactionEnded,
)
from tests.ledger.stores import Delivery, Store

KEY = "settlement:2026-10-23:eu-west"


def test_a_duplicate_is_refused_with_the_recorded_result(store: Store) -> None:
    """The second call runs nothing and answers what the first one recorded."""
    db = store.connect()
    first = Ledger().apply_once(db, KEY, store.effect(KEY, {"corrected": 3, "note": "é\x00"}))
    db.commit()
    second = Ledger().apply_once(db, KEY, store.effect(KEY))
    db.commit()
    db.close()
    assert first
    assert first.result["corrected"] == 3
    assert not second
    assert second.result == {"corrected": 3, "note": "é\x00"}
    assert second.state == "completed"
    assert store.effects(KEY) == 1


def test_the_receipt_counts_only_with_the_callers_commit(store: Store) -> None:
    """A manual-commit connection is joined: rolled back by its owner, nothing is left."""
    db = store.connect()
    assert Ledger().apply_once(db, KEY, store.effect(KEY))
    db.rollback()
    assert store.effects(KEY) == 0
    assert Ledger().apply_once(db, KEY, store.effect(KEY))
    db.commit()
    db.close()
    assert store.effects(KEY) == 1


def test_an_autocommit_connection_gets_a_transaction_of_its_own(store: Store) -> None:
    """Outside a transaction, an autocommit connection has receipt and effect when the call returns."""
    db = store.connect(autocommit=True)
    assert Ledger().apply_once(db, KEY, store.effect(KEY))
    assert store.effects(KEY) == 1
    assert not Ledger().apply_once(db, KEY, store.effect(KEY))
    db.close()


def test_an_autocommit_connection_inside_a_transaction_is_joined(store: Store) -> None:
    """BEGIN by hand makes it the caller's transaction."""
    db = store.connect(autocommit=True)
    cursor = db.cursor()
    cursor.execute("BEGIN")
    assert Ledger().apply_once(db, KEY, store.effect(KEY))
    cursor.execute("ROLLBACK")
    cursor.close()
    db.close()
    assert store.effects(KEY) == 0


@pytest.mark.parametrize("before", [False, True])
def test_a_caller_that_catches_and_commits_keeps_nothing_of_the_change(store: Store, before: bool) -> None:
    """The error passes as it was; the change's rows and the receipt are gone, the caller's own rows stay."""
    db = store.connect()
    if before:
        store.effect("mine")(db)

    def change(db: Any) -> None:
        store.effect(KEY)(db)
        raise ValueError("half-way")

    with pytest.raises(ValueError, match="half-way"):
        Ledger().apply_once(db, KEY, change)
    store.effect("after")(db)
    db.commit()
    assert (store.effects(KEY), store.effects("mine"), store.effects("after")) == (0, int(before), 1)
    assert Ledger().apply_once(db, KEY, store.effect(KEY))
    db.commit()
    db.close()


def test_control_without_the_savepoint_the_same_caller_has_an_effect_without_receipt(store: Store) -> None:
    """Control: the caller's commit alone keeps the half-done change."""
    db = store.connect()
    with contextlib.suppress(ValueError):
        store.effect(KEY)(db)
        raise ValueError("half-way")
    db.commit()
    db.close()
    assert store.effects(KEY) == 1


def test_a_change_that_ends_the_transaction_is_named(store: Store) -> None:
    """A commit inside the change is an error; the receipt that it committed refuses a second effect."""
    db = store.connect()

    def change(db: Any) -> None:
        store.effect(KEY)(db)
        db.commit()
        store.effect("later")(db)

    with pytest.raises(TransactionEnded):
        Ledger().apply_once(db, KEY, change)
    db.commit()
    assert not Ledger().apply_once(db, KEY, store.effect(KEY))
    db.commit()
    db.close()
    assert (store.effects(KEY), store.effects("later")) == (1, 0)


def test_a_change_that_rolls_back_leaves_nothing(store: Store) -> None:
    """What a change does after its own rollback is undone, since the receipt is gone."""
    db = store.connect()

    def change(db: Any) -> None:
        db.rollback()
        store.effect(KEY)(db)

    with pytest.raises(TransactionEnded):
        Ledger().apply_once(db, KEY, change)
    db.commit()
    assert store.effects(KEY) == 0
    assert Ledger().apply_once(db, KEY, store.effect(KEY))
    db.commit()
    db.close()


def test_a_result_that_is_not_json_undoes_the_effect(store: Store) -> None:
    """The error names the job, and nothing is kept."""
    db = store.connect()
    with pytest.raises(TypeError, match="settlement"):
        Ledger().apply_once(db, KEY, store.effect(KEY, {"sum": math.nan}))
    db.commit()
    db.close()
    assert store.effects(KEY) == 0


@pytest.mark.parametrize("length", [1, 199, 200])
def test_a_key_within_the_limit_is_kept_exactly(store: Store, ledger: Ledger, length: int) -> None:
    """Keys are bytes: no case folding, no padding, no collation."""
    key = "k" * length
    db = store.connect(autocommit=True)
    assert Ledger().apply_once(db, key, lambda _: None)
    assert Ledger().apply_once(db, key.upper(), lambda _: None)
    if length < 200:
        assert Ledger().apply_once(db, key + " ", lambda _: None)
    db.close()
    found = ledger.job(key)
    assert found is not None
    assert found.key == key


@pytest.mark.parametrize(
    ("key", "error"), [("k" * 201, LimitExceeded), ("é" * 101, LimitExceeded), ("", InvalidRequest),
                       ("a\x00b", InvalidRequest), ("a\ud800", InvalidRequest)]
)  # fmt: skip
def test_a_key_outside_the_limit_is_refused_before_any_statement(
    store: Store, key: str, error: type[Exception]
) -> None:
    """The refusal names limit and value, and the caller's transaction goes on."""
    db = store.connect()
    with pytest.raises(error):
        Ledger().apply_once(db, key, store.effect("x"))
    store.effect("mine")(db)
    db.commit()
    db.close()
    assert store.effects("mine") == 1


def test_missing_tables_are_named_and_never_created(bare: Store) -> None:
    """LedgerNotInstalled names the command, and the caller's transaction goes on."""
    bare.run("CREATE TABLE effects (job_key VARCHAR(200) NOT NULL)")
    db = bare.connect()
    bare.effect("mine")(db)
    with pytest.raises(LedgerNotInstalled) as raised:
        Ledger().apply_once(db, KEY, bare.effect(KEY))
    db.commit()
    db.close()
    assert "redrive ledger install" in raised.value.hint
    assert (bare.effects(KEY), bare.effects("mine")) == (0, 1)


def test_execute_keeps_receipt_effect_result_and_attempt(store: Store, ledger: Ledger) -> None:
    """A worker's effect is one transaction, and its duplicate is recorded as one."""
    assert ledger.execute(Delivery(KEY), store.effect(KEY, {"n": 1}), may_commit=lambda: True)
    again = ledger.execute(Delivery(KEY, 2), store.effect(KEY), may_commit=lambda: True)
    assert not again
    assert again.result == {"n": 1}
    assert store.effects(KEY) == 1
    found = ledger.job(KEY)
    assert found is not None
    assert (found.state, found.result, found.delivery, found.message_id) == ("completed", {"n": 1}, 1, "m-1")
    assert [(a.delivery, a.outcome) for a in ledger.attempts(KEY)] == [(1, "done"), (2, "duplicate")]


def test_execute_rolls_back_when_the_lease_cannot_be_proved(store: Store, ledger: Ledger) -> None:
    """may_commit is asked last; False leaves neither effect nor receipt nor attempt."""
    asked: list[int] = []

    def may_commit() -> bool:
        asked.append(store.effects(KEY) if store.name != "sqlite" else 0)
        return False

    with pytest.raises(LeaseLost):
        ledger.execute(Delivery(KEY), store.effect(KEY), may_commit=may_commit)
    assert asked == [0]
    assert (store.effects(KEY), ledger.job(KEY), ledger.attempts(KEY)) == (0, None, [])


def test_a_change_that_commits_inside_execute_is_named_and_not_doubled(store: Store, ledger: Ledger) -> None:
    """The worker hears of it, and the next delivery is a duplicate."""

    def change(db: Any) -> None:
        store.effect(KEY)(db)
        db.commit()

    with pytest.raises(TransactionEnded):
        ledger.execute(Delivery(KEY), change, may_commit=lambda: True)
    assert not ledger.execute(Delivery(KEY, 2), store.effect(KEY), may_commit=lambda: True)
    assert store.effects(KEY) == 1


def test_a_planned_or_isolated_job_is_completed_and_a_cancelled_one_is_refused(
    store: Store, ledger: Ledger
) -> None:
    """Only completed and cancelled are final."""
    db = store.connect(autocommit=True)
    assert ledger.publish(db, "settlement", [Job("a"), Job("b"), Job("c")]) == 3
    db.close()
    ledger.failed(Delivery("b"), "reject", None, isolated=True)
    assert ledger.cancel(["c"]) == 1
    assert ledger.execute(Delivery("a"), store.effect("a"))
    assert ledger.execute(Delivery("b", 2), store.effect("b"))
    refused = ledger.execute(Delivery("c"), store.effect("c"))
    assert not refused
    assert refused.state == "cancelled"
    assert (store.effects("a"), store.effects("b"), store.effects("c")) == (1, 1, 0)
    assert ledger.status().waiting_for_relay == 0


def test_a_ledger_without_a_database_says_so() -> None:
    """Ledger() only joins."""
    with pytest.raises(LedgerError, match="no database"):
        Ledger().status()


def test_a_connection_that_is_not_known_is_named() -> None:
    """The error lists what is."""
    with pytest.raises(TypeError, match="sqlite3, psycopg"):
        Ledger().apply_once(object(), KEY, lambda _: None)


def test_the_generation_header_is_reserved(sqlite_store: Store) -> None:
    """A producer cannot set it."""
    db = sqlite_store.connect()
    with pytest.raises(InvalidRequest, match=GENERATION_HEADER):
        Ledger().publish(db, "q", [Job("a", headers={"Redrive-Generation": "7"})])
    db.close()
