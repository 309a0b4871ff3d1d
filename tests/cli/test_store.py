"""``redrive db``, and commands on a store without a server."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

import redrive
from redrive.domain.errors import Conflict
from tests.cli.program import Program

STORE = ["--storage", "sqlite:///own.db"]
EMBEDDED = ["--url", "sqlite:///own.db"]


def test_a_store_is_made_checked_and_copied(alone: Program) -> None:
    """migrate makes it and may be repeated; a copy holds what the store holds and is never overwritten."""
    assert alone("db", "migrate", *STORE, "--json").json == {
        "storage": "sqlite:///own.db",
        "up_to_date": True,
    }
    assert alone("db", "migrate", *STORE).code == 0
    assert alone("publish", "q", '{"a":1}', *EMBEDDED).code == 0
    assert alone("db", "check", *STORE, "--json").json["sound"] is True
    copied = alone("db", "backup", "copy.db", *STORE, "--json")
    assert copied.json["bytes"] == (alone.folder / "copy.db").stat().st_size
    again = alone("db", "backup", "copy.db", *STORE)
    assert (again.code, "never overwrites" in again.err) == (1, True)
    items = alone("message", "list", "q", "--url", "sqlite:///copy.db", "--json").json["items"]
    assert [item["payload"] for item in items] == [{"a": 1}]
    assert alone("db", "backup", "no/such/folder.db", *STORE).code == 2


def test_a_damaged_store_is_found(alone: Program) -> None:
    """Pages full of noise: exit code 1 with findings, or 3 when it cannot even be opened; never 0."""
    alone("db", "migrate", *STORE)
    path = alone.folder / "own.db"
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (path.stat().st_size - 4096))
    done = alone("db", "check", *STORE)
    assert done.code in (1, 3), done.out
    assert "Traceback" not in done.err


def test_looking_makes_no_file(alone: Program) -> None:
    """A misspelt name is told, exit code 2, and is not there afterwards."""
    for words in (["db", "check"], ["db", "backup", "copy.db"]):
        done = alone(*words, "--storage", "sqlite:///typo.db")
        assert (done.code, "no such file" in done.err) == (2, True)
    assert list(alone.folder.iterdir()) == []


def test_the_server_makes_the_copy(redrive: Program) -> None:
    """Into its backup directory, by a plain name only."""
    assert redrive("db", "backup", "night.db", "--json").json["name"] == "night.db"
    assert redrive("db", "backup", "night.db").code == 1
    assert redrive("db", "backup", "../night.db").code == 2


def test_the_queue_works_without_a_server(alone: Program) -> None:
    """The same commands on a store of this process, one after the other."""
    message_id = alone("publish", "q", "1", *EMBEDDED).out.strip()
    assert alone("consume", "q", "--ack", "--json", *EMBEDDED).json["messages"][0]["message_id"] == message_id
    assert alone("message", "show", message_id, *EMBEDDED).code == 1


def test_postgresql_has_tools_of_its_own(alone: Program, postgres_url: str) -> None:
    """migrate and check work there, a copy is refused with the names of the tools."""
    storage = ["--storage", postgres_url]
    assert alone("db", "migrate", *storage).code == 0
    assert alone("db", "check", *storage, "--json").json["sound"] is True
    refused = alone("db", "backup", "copy.db", *storage)
    assert (refused.code, "pg_dump" in refused.err) == (1, True)


def test_a_file_that_is_no_store_is_named_with_a_hint_for_files(alone: Program) -> None:
    """Nobody asks whether a file is up."""
    (alone.folder / "big.json").write_text("not a database, but long enough to be looked at" * 100)
    done = alone.inside("serve", "--storage", "sqlite:///big.json")
    assert (done.code, "big.json" in done.err, "is it up" in done.err) == (3, True, False), done.err


def test_another_programs_database_is_refused_and_left_as_it_is(
    alone: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By serve, db migrate and connect, whatever version its program counts; the ledger lives in it."""
    file = alone.folder / "app.db"
    with closing(sqlite3.connect(file)) as application:
        application.executescript("PRAGMA user_version = 7; CREATE TABLE payments (id INTEGER PRIMARY KEY)")
    before = file.read_bytes()
    for words in (["serve", "--port", "0"], ["db", "migrate"], ["db", "check"]):
        done = alone.inside(*words, "--storage", "sqlite:///app.db")
        assert (done.code, done.out) == (3, ""), done.err
        assert "app.db is another application's database, with the tables payments" in done.err
        assert "a file of its own" in done.err
    monkeypatch.chdir(alone.folder)
    with pytest.raises(Conflict, match="another application's"):
        redrive.connect("sqlite:///app.db")
    assert file.read_bytes() == before
    assert alone.inside("ledger", "install", "--ledger", "sqlite:///app.db").code == 0
    assert alone.inside("ledger", "status", "--ledger", "sqlite:///app.db").code == 0
    with closing(sqlite3.connect(file)) as application:
        assert application.execute("PRAGMA user_version").fetchone() == (7,)
