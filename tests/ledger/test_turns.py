"""The writers of one SQLite file within a process: one after the other, woken and not polling."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from typing import Any

import pytest

from redrive.ledger.drivers import dbapi
from tests.database import wait_for
from tests.ledger.stores import Delivery, Store
from tests.ledger.test_races import Racer

SECONDS = 20.0


class SeenTurn(dbapi.Turn):
    """Tells when somebody waits, and when it is somebody else's turn."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Semaphore(0)

    def take(self) -> bool:
        """As the Turn."""
        self.asked.release()
        return super().take()


def test_the_second_is_woken_by_the_first(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins when the first is done: SQLite never says that the file is busy."""
    monkeypatch.setattr("redrive.ledger.databases.Turn", SeenTurn)
    ledger = sqlite_store.ledger()
    database: Any = ledger._database
    turn = database._turn
    inside, go = threading.Event(), threading.Event()
    order: list[str] = []

    def first(db: Any) -> None:
        sqlite_store.effect("one")(db)
        inside.set()
        assert go.wait(SECONDS)
        order.append("one")

    def second(db: Any) -> None:
        order.append("two")
        sqlite_store.effect("two")(db)

    one = Racer(lambda: ledger.execute(Delivery("one"), first))
    wait_for(inside, SECONDS, "the first to be in its change")
    assert turn.asked.acquire(timeout=SECONDS)
    two = Racer(lambda: ledger.execute(Delivery("two"), second))
    assert turn.asked.acquire(timeout=SECONDS)
    assert order == []
    go.set()
    one.end()
    two.end()
    assert order == ["one", "two"]
    assert sqlite_store.effects("one") == sqlite_store.effects("two") == 1


@pytest.mark.parametrize("fault", [ValueError("half-way"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_a_turn_ends_with_a_change_that_fails(sqlite_store: Store, fault: BaseException) -> None:
    """The next one does not wait for it."""
    ledger = sqlite_store.ledger()

    def broken(_db: Any) -> None:
        raise fault

    with pytest.raises(type(fault)):
        ledger.execute(Delivery("one"), broken)
    assert Racer(lambda: ledger.execute(Delivery("two"), sqlite_store.effect("two"))).end()


def test_a_fork_in_a_change_takes_no_turn_along(sqlite_store: Store) -> None:
    """The child of a process whose other thread writes has turns of its own."""
    ledger = sqlite_store.ledger()
    inside, go = threading.Event(), threading.Event()

    def first(_db: Any) -> None:
        inside.set()
        assert go.wait(SECONDS)

    one = Racer(lambda: ledger.execute(Delivery("one"), first))
    wait_for(inside, SECONDS, "the first to be in its change")
    child = os.fork()
    if child == 0:  # pragma: no cover - in the child
        try:
            database: Any = ledger._database
            with database.lend() as driver:
                os._exit(0 if driver._turn.take() else 1)
        finally:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    go.set()
    one.end()
    assert os.waitstatus_to_exitcode(status) == 0


def test_more_coroutines_than_threads(sqlite_store: Store) -> None:
    """Those that wait leave a thread to the one whose turn it is."""
    ledger = sqlite_store.ledger()
    keys = [f"job:{number}" for number in range(8)]

    async def change(_db: Any) -> None:
        for _ in range(10):  # the others come as far as they can meanwhile
            await asyncio.sleep(0)

    async def main() -> None:
        asyncio.get_running_loop().set_default_executor(concurrent.futures.ThreadPoolExecutor(2))
        jobs = (ledger.aexecute(Delivery(key), change) for key in keys)
        await asyncio.wait_for(asyncio.gather(*jobs), SECONDS)

    asyncio.run(main())
    assert all(ledger.attempts(key)[-1].outcome == "done" for key in keys)
