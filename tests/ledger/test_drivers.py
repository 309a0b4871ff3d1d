"""Every driver runs the same programs: SQLAlchemy blocking and not, psycopg's async side, handlers'
connections."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, scoped_session, sessionmaker
from sqlalchemy.pool import NullPool

from redrive.ledger import Job, Ledger, LedgerError, LedgerNotInstalled, TransactionEnded
from tests.ledger.stores import Delivery, Store

KEY = "job:1"
INSERT = text("INSERT INTO effects (job_key) VALUES (:key)")


class Base(DeclarativeBase):
    """The application's models."""


class Effect(Base):
    """The table of effects, as a model."""

    __tablename__ = "effects"
    job_key: Mapped[str] = mapped_column(primary_key=True)


def change(db: Any) -> str:
    """One effect through SQLAlchemy."""
    db.execute(INSERT, {"key": KEY})
    return "ran"


def broken(db: Any) -> None:
    """One effect, and then an error."""
    change(db)
    raise ValueError("half-way")


@pytest.fixture
def engine(store: Store) -> Iterator[Engine]:
    """An engine of the application on the store."""
    engine = create_engine(store.alchemy_url)
    yield engine
    engine.dispose()


@pytest.mark.parametrize("kind", [lambda e: e.connect(), Session], ids=["connection", "session"])
def test_sqlalchemy_is_joined(store: Store, engine: Engine, kind: Callable[[Engine], Any]) -> None:
    """Rolled back with its owner, committed with its owner, then a duplicate."""
    with kind(engine) as db:
        assert Ledger().apply_once(db, KEY, change)
        db.rollback()
        assert store.effects(KEY) == 0
        assert Ledger().apply_once(db, KEY, change).result == "ran"
        db.commit()
        again = Ledger().apply_once(db, KEY, change)
        db.commit()
    assert not again
    assert again.result == "ran"
    assert store.effects(KEY) == 1


@pytest.mark.parametrize("kind", [lambda e: e.connect(), Session], ids=["connection", "session"])
def test_sqlalchemy_caller_that_catches_and_commits(
    store: Store, engine: Engine, kind: Callable[[Engine], Any]
) -> None:
    """Nothing of the change is kept, what came before and after is."""
    with kind(engine) as db:
        db.execute(INSERT, {"key": "before"})
        with pytest.raises(ValueError, match="half-way"):
            Ledger().apply_once(db, KEY, broken)
        db.execute(INSERT, {"key": "after"})
        db.commit()
        assert (store.effects("before"), store.effects(KEY), store.effects("after")) == (1, 0, 1)
        assert Ledger().apply_once(db, KEY, change)
        db.commit()
    assert store.effects(KEY) == 1


@pytest.mark.parametrize("kind", [lambda e: e.connect(), Session], ids=["connection", "session"])
@pytest.mark.parametrize("way", ["commit", "rollback"])
def test_sqlalchemy_change_that_ends_the_transaction(
    store: Store, engine: Engine, kind: Callable[[Engine], Any], way: str
) -> None:
    """Named, with what came after its end undone, and never a second effect."""

    def end(db: Any) -> None:
        change(db)
        getattr(db, way)()
        db.execute(INSERT, {"key": "later"})

    with kind(engine) as db:
        with pytest.raises(TransactionEnded):
            Ledger().apply_once(db, KEY, end)
        db.commit()
        assert store.effects("later") == 0
        assert bool(Ledger().apply_once(db, KEY, change)) == (way == "rollback")
        db.commit()
    assert store.effects(KEY) == 1


def test_a_connection_that_died_while_idle_is_replaced(store: Store) -> None:
    """After a restart of the database no delivery is failed for it."""
    if store.name == "sqlite":
        pytest.skip("a file has no server to restart")
    ledger = store.ledger()
    names: list[int] = []
    sql = {"postgres": "SELECT pg_backend_pid()", "mysql": "SELECT connection_id()"}[store.name]

    def me(db: Any) -> None:
        cursor = db.cursor()
        cursor.execute(sql)
        names.append(cursor.fetchone()[0])
        cursor.close()

    assert ledger.execute(Delivery("first"), me)
    kill = {"postgres": f"SELECT pg_terminate_backend({names[0]}, 10000)", "mysql": f"KILL {names[0]}"}
    store.run(kill[store.name])
    assert ledger.execute(Delivery("second"), me)
    assert names[0] != names[1]
    ledger.close()


def test_psycopg_with_another_cursor_and_row_factory(postgres_store: Store) -> None:
    """What the application chose for its own cursors does not reach the ledger's."""
    from psycopg.rows import dict_row

    with psycopg.connect(postgres_store.url, row_factory=dict_row, cursor_factory=psycopg.RawCursor) as db:
        assert Ledger().apply_once(db, KEY, lambda db: 1)
        assert Ledger().apply_once(db, KEY, lambda db: 1).result == 1


def test_what_a_session_holds_back_belongs_to_the_change(store: Store, engine: Engine) -> None:
    """Objects added in a change that raises are not flushed by a later commit; those of one that ran are."""

    def add_and_break(db: Session) -> None:
        db.add(Effect(job_key=KEY))
        raise ValueError("half-way")

    with Session(engine) as session:
        session.add(Effect(job_key="before"))
        with pytest.raises(ValueError, match="half-way"):
            Ledger().apply_once(session, KEY, add_and_break)
        session.commit()
        assert (store.effects("before"), store.effects(KEY)) == (1, 0)
        assert Ledger().apply_once(session, KEY, lambda db: db.add(Effect(job_key=KEY)))
        session.commit()
    assert store.effects(KEY) == 1


def test_a_scoped_session_is_joined(store: Store, engine: Engine) -> None:
    """The session of the thread."""
    registry = scoped_session(sessionmaker(engine))
    assert Ledger().apply_once(registry, KEY, change)
    registry.commit()
    registry.remove()
    assert store.effects(KEY) == 1


def test_sqlalchemy_in_autocommit_gets_a_transaction_of_its_own(store: Store) -> None:
    """Receipt and effect are there at once, or not at all."""
    engine = create_engine(store.alchemy_url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with engine.connect() as db:
        with pytest.raises(ValueError, match="half-way"):
            Ledger().apply_once(db, KEY, broken)
        assert store.effects(KEY) == 0
        assert Ledger().apply_once(db, KEY, change)
        assert store.effects(KEY) == 1
        assert not Ledger().apply_once(db, KEY, change)
    engine.dispose()


def test_handlers_get_what_the_user_configured(store: Store, engine: Engine) -> None:
    """URL: DB-API connection. Engine: Connection. sessionmaker: Session."""
    by_url = store.ledger()
    by_engine, by_session = Ledger(engine), Ledger(sessionmaker(engine))
    names = [
        ledger.execute(Delivery(f"{KEY}:{n}"), lambda db: f"{type(db).__module__}.{type(db).__name__}").result
        for n, ledger in enumerate((by_url, by_engine, by_session))
    ]
    by_url.close()
    dbapi = {"sqlite": "sqlite3.Connection", "postgres": "psycopg.Connection"}
    assert names[0] == dbapi.get(store.name, "pymysql.connections.Connection")
    assert names[1:] == ["sqlalchemy.engine.base.Connection", "sqlalchemy.orm.session.Session"]


@pytest.mark.parametrize("maker", [lambda e: e, sessionmaker], ids=["engine", "sessionmaker"])
def test_a_ledger_on_sqlalchemy_does_everything(
    store: Store, engine: Engine, maker: Callable[[Engine], Any]
) -> None:
    """Effects, failures, outbox and answers go through the application's pool."""
    ledger = Ledger(maker(engine))
    with engine.connect() as db:
        assert ledger.publish(db, "q", [Job("planned", {"a": 1})]) == 1
        db.commit()
    [row] = ledger.outbox.take(10)
    assert ledger.outbox.accepted([row]) == 1
    with pytest.raises(ValueError, match="half-way"):
        ledger.execute(Delivery(KEY), broken)
    ledger.failed(Delivery(KEY), "retry", None)
    assert ledger.execute(Delivery(KEY, 2, previous="nack"), change, may_commit=lambda: True)
    assert not ledger.execute(Delivery(KEY, 3), change)
    assert [a.outcome for a in ledger.attempts(KEY)] == ["retry", "done", "duplicate"]
    assert (ledger.status().accepted, ledger.status().completed) == (1, 1)
    assert store.effects(KEY) == 1


ASYNC = {"sqlite": "sqlite+aiosqlite", "postgres": "postgresql+psycopg"}


@pytest.fixture(params=["sqlite", "postgres"])
def async_store(request: pytest.FixtureRequest) -> Store:
    """The databases that SQLAlchemy's async drivers of these tests know."""
    found: Store = request.getfixturevalue(f"{request.param}_store")
    return found


async def achange(db: Any) -> str:
    """One effect through SQLAlchemy's async side."""
    await db.execute(INSERT, {"key": KEY})
    return "ran"


async def abroken(db: Any) -> None:
    """One effect, and then an error."""
    await achange(db)
    raise ValueError("half-way")


@pytest.mark.parametrize("kind", [lambda e: e.connect(), AsyncSession], ids=["connection", "session"])
def test_sqlalchemy_async_is_joined(async_store: Store, kind: Callable[[Any], Any]) -> None:
    """As the blocking one: owner's rollback, owner's commit, catch and commit, duplicate."""

    async def main() -> None:
        engine = create_async_engine(ASYNC[async_store.name] + async_store.url[async_store.url.index(":") :])
        async with kind(engine) as db:
            assert await Ledger().apply_once(db, KEY, achange)
            await db.rollback()
            assert async_store.effects(KEY) == 0
            with pytest.raises(ValueError, match="half-way"):
                await Ledger().apply_once(db, KEY, abroken)
            await db.commit()
            assert async_store.effects(KEY) == 0
            assert (await Ledger().apply_once(db, KEY, achange)).result == "ran"
            assert await Ledger().publish(db, "q", [Job("planned")]) == 1
            await db.commit()
            again = await Ledger().apply_once(db, KEY, achange)
            assert not again
            assert again.result == "ran"
            await db.commit()
        await engine.dispose()

    asyncio.run(main())
    assert async_store.effects(KEY) == 1


def test_a_blocking_call_needs_a_url() -> None:
    """A sessionmaker that knows no engine, and a database in memory, have no second connection to offer."""
    memory = create_async_engine("sqlite+aiosqlite://")
    for given in (async_sessionmaker(), memory):
        with pytest.raises(LedgerError, match="async database"):
            Ledger(given).status()


@pytest.mark.parametrize("maker", [lambda e: e, async_sessionmaker], ids=["engine", "sessionmaker"])
def test_async_handlers_get_the_async_side(async_store: Store, maker: Callable[[Any], Any]) -> None:
    """AsyncEngine: AsyncConnection, async_sessionmaker: AsyncSession; blocking calls have their own."""

    async def main() -> tuple[str, bool]:
        engine = create_async_engine(ASYNC[async_store.name] + async_store.url[async_store.url.index(":") :])
        ledger = Ledger(maker(engine))
        assert ledger.status()
        ledger.close()

        async def named(db: Any) -> str:
            await achange(db)
            return type(db).__name__

        first = await ledger.aexecute(Delivery(KEY), named, may_commit=lambda: True)
        again = await ledger.aexecute(Delivery(KEY, 2), named, may_commit=lambda: True)
        await engine.dispose()
        return first.result, bool(again)

    name, again = asyncio.run(main())
    assert name == ("AsyncConnection" if maker is not async_sessionmaker else "AsyncSession")
    assert not again
    assert async_store.effects(KEY) == 1


def test_psycopg_async_is_joined(postgres_store: Store) -> None:
    """A manual-commit AsyncConnection is the caller's, one in autocommit gets a transaction of its own."""

    async def insert(db: Any) -> None:
        await db.execute("INSERT INTO effects (job_key) VALUES (%s)", (KEY,))

    async def insert_and_break(db: Any) -> None:
        await insert(db)
        raise ValueError("half-way")

    async def main() -> None:
        async with await psycopg.AsyncConnection.connect(postgres_store.url) as db:
            assert await Ledger().apply_once(db, KEY, insert)
            await db.rollback()
            with pytest.raises(ValueError, match="half-way"):
                await Ledger().apply_once(db, KEY, insert_and_break)
            await db.commit()
            assert postgres_store.effects(KEY) == 0
            await db.set_autocommit(True)
            assert await Ledger().apply_once(db, KEY, insert)
            assert not await Ledger().apply_once(db, KEY, insert)

    asyncio.run(main())
    assert postgres_store.effects(KEY) == 1


def test_aexecute_by_url(store: Store) -> None:
    """PostgreSQL: psycopg's AsyncConnection; SQLite and MariaDB: the blocking connection, carried to
    threads."""
    ledger = store.ledger()

    async def achange(db: Any) -> str:
        if store.name == "postgres":
            await db.execute("INSERT INTO effects (job_key) VALUES (%s)", (KEY,))
        else:
            await asyncio.to_thread(store.effect(KEY), db)
        return type(db).__name__

    async def main() -> list[bool]:
        both = await asyncio.gather(*(ledger.aexecute(Delivery(KEY, n), achange) for n in (1, 2)))
        await ledger.aclose()
        return [bool(applied) for applied in both]

    assert sorted(asyncio.run(main())) == [False, True]
    assert store.effects(KEY) == 1
    assert sorted(a.outcome for a in ledger.attempts(KEY) if not a.derived) == ["done", "duplicate"]
    ledger.close()


def test_a_cancelled_async_handler_leaves_nothing(store: Store) -> None:
    """A cancellation is undone as any other error, and the connection can be used again."""
    ledger = store.ledger()
    started = asyncio.Event()

    async def hang(db: Any) -> None:
        if store.name == "postgres":
            await db.execute("INSERT INTO effects (job_key) VALUES (%s)", (KEY,))
        else:
            store.effect(KEY)(db)
        started.set()
        await asyncio.Event().wait()

    async def main() -> None:
        task = asyncio.ensure_future(ledger.aexecute(Delivery(KEY), hang))
        await asyncio.wait_for(started.wait(), 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await ledger.aclose()

    asyncio.run(main())
    assert store.effects(KEY) == 0
    assert ledger.execute(Delivery(KEY, 2), store.effect(KEY))
    ledger.close()


@pytest.mark.parametrize("level", ["", "DEFERRED", "IMMEDIATE", "EXCLUSIVE", None])
def test_sqlite_isolation_levels(sqlite_store: Store, level: str | None) -> None:
    """Every legacy mode but None is manual commit, also when the ledger has to begin."""
    path = sqlite_store.url.removeprefix("sqlite:///")
    db = sqlite3.connect(path, isolation_level=level)  # type: ignore[arg-type]
    db.row_factory = sqlite3.Row
    db.text_factory = bytes
    with pytest.raises(ValueError, match="half-way"):
        Ledger().apply_once(db, KEY, lambda db: broken_sqlite(sqlite_store, db))
    db.commit()
    assert sqlite_store.effects(KEY) == 0
    assert Ledger().apply_once(db, KEY, sqlite_store.effect(KEY, "ran"))
    assert sqlite_store.effects(KEY) == int(level is None)
    db.commit()
    assert Ledger().apply_once(db, KEY, sqlite_store.effect(KEY)).result == "ran"
    db.close()
    assert sqlite_store.effects(KEY) == 1


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sqlite3's autocommit attribute came with Python 3.12")
@pytest.mark.parametrize("automatic", [True, False])
def test_sqlite_autocommit_attribute(sqlite_store: Store, automatic: bool) -> None:
    """False is always inside a transaction, which is joined; True gets one of its own."""
    path = sqlite_store.url.removeprefix("sqlite:///")
    db: Any = sqlite3.connect(path, autocommit=automatic)  # type: ignore[call-overload,unused-ignore]
    with pytest.raises(ValueError, match="half-way"):
        Ledger().apply_once(db, KEY, lambda db: broken_sqlite(sqlite_store, db))
    if not automatic:
        db.commit()
    assert sqlite_store.effects(KEY) == 0
    assert Ledger().apply_once(db, KEY, sqlite_store.effect(KEY))
    if not automatic:
        db.rollback()
        assert sqlite_store.effects(KEY) == 0
        assert Ledger().apply_once(db, KEY, sqlite_store.effect(KEY))
        db.commit()
    db.close()
    assert sqlite_store.effects(KEY) == 1


def broken_sqlite(store: Store, db: Any) -> None:
    """One effect, and then an error."""
    store.effect(KEY)(db)
    raise ValueError("half-way")


def test_tables_are_missing_in_a_session(bare: Store) -> None:
    """The error is the ledger's also through SQLAlchemy, and the session goes on."""
    bare.run("CREATE TABLE effects (job_key VARCHAR(200) NOT NULL)")
    engine = create_engine(bare.alchemy_url)
    with Session(engine) as session:
        session.execute(INSERT, {"key": "before"})
        with pytest.raises(LedgerNotInstalled):
            Ledger().apply_once(session, KEY, change)
        session.commit()
    engine.dispose()
    assert (bare.effects("before"), bare.effects(KEY)) == (1, 0)


def test_the_carried_step_ends_before_a_cancellation_goes_on() -> None:
    """Two threads never use one connection at a time."""
    from redrive.ledger.drivers.carried import to_thread

    ended: list[str] = []

    async def main(go: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()

        def slow() -> None:
            loop.call_soon_threadsafe(go.set)
            asyncio.run_coroutine_threadsafe(release.wait(), loop).result(10)
            ended.append("step")

        release = asyncio.Event()
        task: Awaitable[Any] = asyncio.ensure_future(to_thread(slow))
        await go.wait()
        task.cancel()  # type: ignore[attr-defined]
        loop.call_soon(release.set)
        with pytest.raises(asyncio.CancelledError):
            await task
        ended.append("cancelled")

    asyncio.run(main(asyncio.Event()))
    assert ended == ["step", "cancelled"]
