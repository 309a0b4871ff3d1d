"""The headers of the SQL files are proved: purposes, transitions, indexes, and that each file is used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import apsw
import apsw.ext
import pytest

from redrive.domain.states import Event
from redrive.storage.sqlite import SqliteEngine
from redrive.storage.statements import Statement, load, parse

SQLITE = load("redrive.storage.sqlite")
INDEXED = sorted(name for name, statement in SQLITE.items() if "index" in statement.header)
PACKAGES = ("redrive.storage.sqlite", "redrive.storage.postgres")
KEYS = {"purpose", "transition", "fenced by", "index"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[apsw.Connection]:
    """The schema as the migrations make it."""
    path = tmp_path_factory.mktemp("plans") / "store.db"
    SqliteEngine(path).close()
    connection = apsw.Connection(str(path))
    yield connection
    connection.close()


def plan(store: apsw.Connection, sql: str) -> str:
    """How SQLite would run the statement, one step a line."""
    count = apsw.ext.query_info(store, sql).bindings_count
    steps = store.execute(f"EXPLAIN QUERY PLAN {sql}", (None,) * count)
    return "\n".join(str(row[3]) for row in steps)


def finding(store: apsw.Connection, statement: Statement) -> str | None:
    """What the plan does other than the header says; None when they agree."""
    steps = plan(store, statement.sql)
    for index in statement.header["index"].split(", "):
        used = r"USING PRIMARY KEY" if index == "PRIMARY" else rf"USING (COVERING )?INDEX {index}\b"
        if not re.search(used, steps):
            return f"does not use {index}:\n{steps}"
    bare = [
        line for line in steps.splitlines() if re.match(r"SCAN (?!json_each|SUBQUERY|CONSTANT)\w+$", line)
    ]
    return f"reads a whole table:\n{steps}" if bare else None


@pytest.mark.parametrize("name", INDEXED)
def test_the_plan_uses_the_index_of_the_header(store: apsw.Connection, name: str) -> None:
    """EXPLAIN QUERY PLAN names every index that the header promises, and no table is read whole."""
    assert finding(store, SQLITE[name]) is None


def test_a_wrong_promise_is_found(store: apsw.Connection) -> None:
    """The check above can fail: a plan that sorts the whole table does not pass for an index."""
    text = "-- purpose: wrong\n-- index: ready\nSELECT id FROM messages WHERE job_key = ? ORDER BY due_ms"
    assert "does not use ready" in str(finding(store, parse("wrong", text)))


@pytest.mark.parametrize(
    "name", ["claim", "group_head", "due_groups", "due_leases", "aged", "aged_dead", "next_due", "head"]
)
def test_the_hot_selections_never_sort(store: apsw.Connection, name: str) -> None:
    """What runs in every batch comes out of its index in order, whatever the backlog (H1, H3)."""
    assert "index" in SQLITE[name].header
    assert "TEMP B-TREE" not in plan(store, SQLITE[name].sql)


@pytest.mark.parametrize("package", PACKAGES)
def test_headers(package: str) -> None:
    """Every statement has a purpose, no unknown keys, and transitions that the table knows."""
    findings = []
    for name, statement in load(package).items():
        if not statement.header.get("purpose"):
            findings.append(f"{name}: no purpose")
        if unknown := set(statement.header) - KEYS:
            findings.append(f"{name}: unknown {sorted(unknown)}")
        named = re.findall(r"\w+", statement.header.get("transition", ""))
        if unheard := set(named) - {event.value for event in Event}:
            findings.append(f"{name}: no such event {sorted(unheard)}")
    assert findings == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_statement_is_used(package: str) -> None:
    """Each file is named by the engine's code; what nobody runs is not kept."""
    folder = Path(str(resources.files(package)))
    code = "\n".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py")))
    unused = [name for name in load(package) if f'"{name}"' not in code]
    assert unused == []


def test_what_is_fenced_says_so_in_its_sql() -> None:
    """A statement that its header calls fenced compares that column."""
    for name, statement in SQLITE.items():
        for column in filter(None, statement.header.get("fenced by", "").split(", ")):
            assert re.search(rf"WHERE\b.*\b{column} = \?", statement.sql, re.DOTALL), name
