"""Two deliveries of one job at the same time: one test per cell of the design."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from typing import Any

import pytest
from pymysql.err import OperationalError

from redrive.ledger import Applied, Ledger, LedgerRetry, TransactionEnded
from tests.database import wait_for
from tests.ledger.stores import Store

KEY = "refund:42"
SECONDS = 20.0


class Racer(threading.Thread):
    """Calls ``function`` in a thread of its own and keeps what came of it."""

    def __init__(self, function: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self.function, self.answer, self.error = function, None, None
        self.start()

    answer: Any
    error: BaseException | None

    def run(self) -> None:
        """Call it."""
        try:
            self.answer = self.function()
        except Exception as error:
            self.error = error

    def end(self) -> Any:
        """The answer, or the error raised here."""
        self.join(SECONDS)
        assert not self.is_alive(), "the racer still waits"
        if self.error is not None:
            raise self.error
        return self.answer


def waits(store: Store) -> Callable[[], bool]:
    """Whether some transaction of the store's database waits for a lock."""
    sql = {
        "postgres": "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'",
        "mysql": "SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'",
    }[store.name]
    watcher = store.connect(autocommit=True)

    def look() -> bool:
        cursor = watcher.cursor()
        cursor.execute(sql)
        count: int = cursor.fetchone()[0]
        cursor.close()
        return count > 0

    return look


def race(store: Store, begin: str = "", *, commit: bool = True) -> tuple[Any, Racer]:
    """Two connections apply KEY; the second waits for the first, which then commits (or rolls back)."""
    first, second = store.connect(), store.connect()
    cursor = second.cursor()
    if begin:
        cursor.execute(begin)
        cursor.execute("SELECT 1 FROM effects")  # the snapshot is older than the winner's commit
        cursor.fetchall()
    assert Ledger().apply_once(first, KEY, store.effect(KEY, "first"))
    racer = Racer(lambda: Ledger().apply_once(second, KEY, store.effect(KEY, "second")))
    wait_for(waits(store), SECONDS, "the second delivery to wait for the first")
    first.commit() if commit else first.rollback()
    first.close()
    return second, racer


def settle(store: Store, second: Any, racer: Racer) -> Applied[Any]:
    """The loser's answer, committed."""
    applied: Applied[Any] = racer.end()
    second.commit()
    second.close()
    return applied


@pytest.mark.parametrize(
    "cell",
    [
        ("postgres", ""),
        ("mysql", "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"),
        ("mysql", "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"),
    ],
    ids=lambda cell: f"{cell[0]}-{cell[1][-15:]}",
)
def test_the_loser_waits_and_then_reads_the_winners_result(
    request: pytest.FixtureRequest, cell: tuple[str, str]
) -> None:
    """PostgreSQL READ COMMITTED sees `completed`; MySQL reads the loser FOR UPDATE, past its snapshot."""
    store: Store = request.getfixturevalue(f"{cell[0]}_store")
    applied = settle(store, *race(store, cell[1]))
    assert not applied
    assert applied.result == "first"
    assert store.effects(KEY) == 1


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_postgres_in_a_snapshot_raises_a_retry(postgres_store: Store, level: str) -> None:
    """40001 becomes LedgerRetry; run again, the loser is a duplicate."""
    second, racer = race(postgres_store, f"BEGIN ISOLATION LEVEL {level}")
    with pytest.raises(LedgerRetry) as raised:
        racer.end()
    assert getattr(raised.value.__cause__, "sqlstate", "") == "40001"
    second.rollback()
    assert not Ledger().apply_once(second, KEY, postgres_store.effect(KEY))
    second.commit()
    second.close()
    assert postgres_store.effects(KEY) == 1


@pytest.mark.parametrize("name", ["postgres", "mysql"])
def test_when_the_winner_rolls_back_the_other_runs(request: pytest.FixtureRequest, name: str) -> None:
    """A receipt that was never committed refuses nobody."""
    store: Store = request.getfixturevalue(f"{name}_store")
    applied = settle(store, *race(store, commit=False))
    assert applied
    assert applied.result == "second"
    assert store.effects(KEY) == 1


def test_mysql_deadlock_raises_a_retry_and_keeps_nothing(mysql_store: Store) -> None:
    """1213: the victim's whole transaction is gone, also for a caller that catches it and commits."""
    store = mysql_store
    one, two = store.connect(), store.connect()
    for db, key in ((one, "a"), (two, "b")):
        assert Ledger().apply_once(db, key, store.effect(key))
    racer = Racer(lambda: Ledger().apply_once(one, "b", store.effect("b")))
    wait_for(waits(store), SECONDS, "the first to wait for the second")
    other = Racer(lambda: Ledger().apply_once(two, "a", store.effect("a")))
    outcomes: dict[str, Any] = {}
    for name, thread, db in (("two", other, two), ("one", racer, one)):
        thread.join(SECONDS)
        outcomes[name] = thread.error
        db.commit()
        db.close()
    victims = [error for error in outcomes.values() if error is not None]
    assert len(victims) == 1
    assert isinstance(victims[0], LedgerRetry)
    assert victims[0].__cause__ is not None
    assert victims[0].__cause__.args[0] == 1213
    assert store.effects("a") == 1
    assert store.effects("b") == 1


def test_mysql_deadlock_that_a_change_swallows_is_found(mysql_store: Store) -> None:
    """The receipt went with the transaction, so that what the change does afterwards must go too."""
    store = mysql_store
    store.run(
        "CREATE OR REPLACE TABLE locks (id INT PRIMARY KEY, n INT)", "INSERT INTO locks VALUES (1, 0), (2, 0)"
    )
    one, two = store.connect(), store.connect()
    holder = two.cursor()
    holder.execute("UPDATE locks SET n = n + 1 WHERE id = 2")
    holder.execute("INSERT INTO effects (job_key) SELECT 'weight' FROM information_schema.columns LIMIT 500")
    holding = threading.Event()
    swallowed: list[int] = []

    def change(db: Any) -> None:
        cursor = db.cursor()
        cursor.execute("UPDATE locks SET n = n + 1 WHERE id = 1")
        holding.set()
        try:
            cursor.execute("UPDATE locks SET n = n + 1 WHERE id = 2")
        except OperationalError as error:
            swallowed.append(error.args[0])
            store.effect(KEY)(db)

    racer = Racer(lambda: Ledger().apply_once(one, KEY, change))
    wait_for(holding, SECONDS, "the change to hold its first lock")
    wait_for(waits(store), SECONDS, "the change to wait")
    holder.execute("UPDATE locks SET n = n + 1 WHERE id = 1")  # the heavier transaction survives
    with pytest.raises(TransactionEnded):
        racer.end()
    assert swallowed == [1213]
    one.commit()
    two.commit()
    one.close()
    two.close()
    assert store.effects(KEY) == 0
    applied = Ledger().apply_once(store.connect(autocommit=True), KEY, store.effect(KEY))
    assert applied


def test_mysql_lock_timeout_in_a_change_keeps_nothing(mysql_store: Store) -> None:
    """1205 rolls back one statement only; receipt and effects go with a whole rollback, whoever commits
    then."""
    store = mysql_store
    store.run("CREATE OR REPLACE TABLE locks (id INT PRIMARY KEY, n INT)", "INSERT INTO locks VALUES (1, 0)")
    holder, db = store.connect(), store.connect()
    holder.cursor().execute("UPDATE locks SET n = 1")
    db.cursor().execute("SET SESSION innodb_lock_wait_timeout = 1")

    def change(db: Any) -> None:
        store.effect(KEY)(db)
        db.cursor().execute("UPDATE locks SET n = 2")

    with pytest.raises(LedgerRetry, match="1205"):
        Ledger().apply_once(db, KEY, change)
    db.commit()
    holder.rollback()
    assert store.effects(KEY) == 0
    assert Ledger().apply_once(db, KEY, store.effect(KEY))
    db.commit()
    db.close()
    holder.close()


def test_sqlite_begin_immediate_that_is_busy_raises_a_retry(sqlite_store: Store) -> None:
    """The second writer is told to run again; nothing of it is left."""
    first = sqlite_store.connect()
    second = sqlite3.connect(sqlite_store.url.removeprefix("sqlite:///"), timeout=0)
    assert Ledger().apply_once(first, KEY, sqlite_store.effect(KEY))
    with pytest.raises(LedgerRetry):
        Ledger().apply_once(second, KEY, sqlite_store.effect(KEY))
    first.commit()
    assert not Ledger().apply_once(second, KEY, sqlite_store.effect(KEY))
    second.commit()
    first.close()
    second.close()
    assert sqlite_store.effects(KEY) == 1


def test_sqlite_joined_deferred_transaction_with_an_old_snapshot_raises_a_retry(sqlite_store: Store) -> None:
    """A reader that would become a writer after another's commit must start again."""
    sqlite_store.run("PRAGMA journal_mode = WAL")
    first, second = sqlite_store.connect(), sqlite_store.connect()
    second.execute("BEGIN")
    second.execute("SELECT count(*) FROM effects").fetchall()
    assert Ledger().apply_once(first, KEY, sqlite_store.effect(KEY))
    first.commit()
    with pytest.raises(LedgerRetry):
        Ledger().apply_once(second, KEY, sqlite_store.effect(KEY))
    second.rollback()
    assert not Ledger().apply_once(second, KEY, sqlite_store.effect(KEY))
    second.commit()
    first.close()
    second.close()


@pytest.mark.parametrize("name", ["postgres", "mysql"])
def test_the_callers_own_lock_timeout_is_put_back(request: pytest.FixtureRequest, name: str) -> None:
    """The bound of 5 s holds for the ledger's waits only, after success, duplicate and failure."""
    store: Store = request.getfixturevalue(f"{name}_store")
    set_it, read_it = {
        "postgres": ("SET lock_timeout = '7s'", "SHOW lock_timeout"),
        "mysql": ("SET SESSION innodb_lock_wait_timeout = 7", "SELECT @@innodb_lock_wait_timeout"),
    }[name]
    db = store.connect()
    cursor = db.cursor()
    cursor.execute(set_it)
    db.commit()
    seen: list[str] = []

    def look(db: Any) -> None:
        cursor.execute(read_it)
        seen.append(str(cursor.fetchone()[0]).rstrip("s"))

    def fail(db: Any) -> None:
        raise ValueError

    Ledger().apply_once(db, KEY, look)
    look(db)
    Ledger().apply_once(db, KEY, look)
    look(db)
    with pytest.raises(ValueError):
        Ledger().apply_once(db, "other", fail)
    look(db)
    Ledger().publish(db, "q", [])
    look(db)
    db.commit()
    look(db)
    db.close()
    assert seen == ["7"] * 6


@pytest.mark.slow
def test_waits_are_bounded(store: Store) -> None:
    """A delivery that waits for another's receipt gives up after 5 s and is told to run again."""
    first, second = store.connect(), store.connect()
    assert Ledger().apply_once(first, KEY, store.effect(KEY))
    racer = Racer(lambda: Ledger().apply_once(second, KEY, store.effect(KEY)))
    with pytest.raises(LedgerRetry):
        racer.end()
    second.commit()
    first.commit()
    second.close()
    first.close()
    assert store.effects(KEY) == 1
