"""``redrive audit``: who did what, and whether the log is as it was written."""

from __future__ import annotations

import json
from pathlib import Path

import apsw

from tests.cli.program import Program


def store(folder: Path) -> Program:
    """The program over a store of its own, without a server, with some actions done."""
    redrive = Program(folder, {"url": "sqlite:///store.db"})
    for name in ("a", "b", "c"):
        assert redrive("queue", "create", name, "--actor", "Åsa").code == 0
    return redrive


def change(folder: Path, statement: str) -> None:
    """What somebody with a database client does."""
    connection = apsw.Connection(str(folder / "store.db"))
    guards = list(connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"))
    for name, _ in guards:
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute(statement)
    for _, guard in guards:
        connection.execute(guard)
    connection.close()


def test_who_is_the_key_and_the_actor(redrive: Program) -> None:
    """From the flag, or from the environment; a deletion's reason too."""
    assert redrive("queue", "create", "acted", "--actor", "Åsa").code == 0
    assert redrive("queue", "delete", "acted", "--yes", "--reason", "moved", actor="bob").code == 0
    rows = redrive("audit", "list", "--queue", "acted", "--json").json["items"]
    assert [(row["actor"], row["on_behalf_of"], row["reason"]) for row in rows] == [
        ("REDRIVE_API_KEY", "bob", "moved"),
        ("REDRIVE_API_KEY", "Åsa", None),
    ]
    assert "REDRIVE_API_KEY (Åsa)" in redrive("audit", "list", "--queue", "acted").out
    refused = redrive("queue", "create", "acted", "--actor", "x" * 81)
    assert (refused.code, "actor must be a name of at most 80 characters" in refused.err) == (2, True)


def test_a_running_server_verifies(redrive: Program) -> None:
    """Exit code 0, and the end of the chain to be noted."""
    redrive("queue", "create", "noted")
    done = redrive("audit", "verify")
    assert (done.code, "as they were written" in done.out, "the last one is " in done.out) == (0, True, True)
    found = redrive("audit", "verify", "--json").json
    assert (found["sound"], found["broken"]) == (True, None)
    noted = f"{found['last_id']}:{found['last_hash']}"
    assert redrive("audit", "verify", "--noted", noted).code == 0
    other = redrive("audit", "verify", "--noted", f"{found['last_id']}:{'0' * 64}")
    assert (other.code, f"row {found['last_id']}: " in other.out) == (1, True)
    assert redrive("audit", "verify", "--noted", "17").code == 2


def test_a_changed_row_is_named(tmp_path: Path) -> None:
    """Exit code 1, by number, in both forms."""
    redrive = store(tmp_path)
    assert redrive("audit", "verify").code == 0
    change(tmp_path, "UPDATE audit SET on_behalf_of = 'bob' WHERE id = 2")
    done = redrive("audit", "verify")
    assert (done.code, done.out.startswith("row 2: ")) == (1, True)
    found = redrive("audit", "verify", "--json")
    assert (found.code, found.json["sound"], found.json["broken"]["id"]) == (1, False, "2")


def test_a_removed_row_is_named(tmp_path: Path) -> None:
    """The last one, and all."""
    redrive = store(tmp_path)
    change(tmp_path, "DELETE FROM audit WHERE id = 3")
    done = redrive("audit", "verify")
    assert (done.code, done.out.startswith("row 3: it is missing")) == (1, True)
    change(tmp_path, "DELETE FROM audit")
    assert json.loads(redrive("audit", "verify", "--json").out)["broken"]["id"] == "1"
