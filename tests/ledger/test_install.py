"""The tables: installed by a call of their own, once, whoever comes first."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from redrive.ledger import Job, Ledger, LedgerError
from tests.ledger.stores import Store


def test_install_is_idempotent(bare: Store) -> None:
    """The first call applies every version, the next one none, and jobs stay."""
    ledger = bare.ledger()
    assert ledger.install() == [1, 2]
    db = bare.connect(autocommit=True)
    Ledger().publish(db, "q", [Job("a")])
    assert ledger.install() == []
    assert ledger.status().planned == 1
    ledger.close()


@pytest.mark.parametrize("autocommit", [True, False])
def test_install_on_an_idle_connection(bare: Store, autocommit: bool) -> None:
    """From code, on the application's own connection; committed when it returns."""
    db = bare.connect(autocommit=autocommit)
    assert Ledger().install(db) == [1, 2]
    other = bare.connect(autocommit=True)
    assert Ledger().status(connection=other).planned == 0


def test_install_is_refused_inside_a_transaction(bare: Store) -> None:
    """The caller's transaction goes on as it was."""
    bare.run("CREATE TABLE effects (job_key VARCHAR(200) NOT NULL)")
    db = bare.connect()
    bare.effect("mine")(db)
    with pytest.raises(LedgerError, match="never created inside"):
        Ledger().install(db)
    db.commit()
    assert bare.effects("mine") == 1


def test_two_installations_at_once(bare: Store) -> None:
    """One applies, the other finds it done."""
    answers: list[list[int]] = []
    start = threading.Barrier(2)

    def install() -> None:
        ledger = bare.ledger()
        start.wait(10)
        answers.append(ledger.install())
        ledger.close()

    threads = [threading.Thread(target=install) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(answers) == [[], [1, 2]]


def test_the_light_sdk_is_enough() -> None:
    """Importing the ledger imports no driver, no SQLAlchemy and nothing of the server."""
    code = (
        "import sys, redrive.ledger; "
        "heavy = {'psycopg', 'pymysql', 'sqlalchemy', 'apsw', 'starlette'}; "
        "heavy |= {'redrive.storage', 'redrive.service', 'redrive.api'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.strip() == "[]"


def test_an_unknown_database_is_refused_kindly() -> None:
    """The schemes and types that are known are named; the URL's password is not."""
    with pytest.raises(LedgerError, match="sqlite, postgresql") as raised:
        Ledger("oracle://user:secret@host/db")
    assert "secret" not in str(raised.value)
    with pytest.raises(TypeError, match="sessionmaker"):
        Ledger(object())
