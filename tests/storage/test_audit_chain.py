"""The audit log against somebody with a database client: what was done to it is found, and where."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import msgspec
import psycopg
import pytest

from redrive.contract import shapes
from redrive.service import Service
from redrive.storage import audit_chain
from redrive.storage import commands as c
from redrive.storage.postgres import PostgresEngine
from redrive.storage.sqlite import SqliteEngine
from redrive.storage.values import AuditHead, AuditRow

ROWS = 5
Tamper = Callable[..., list[Any]]
COPY = (
    "INSERT INTO audit (id, at_ms, actor, action, target, outcome, detail, hash) "
    "SELECT {}, at_ms, actor, action, target, outcome, detail, hash FROM audit WHERE id = 3"
)


@pytest.fixture(params=["sqlite", "postgres"])
def store(
    request: pytest.FixtureRequest, tmp_path: Path, postgres_url: str
) -> Iterator[tuple[Service, Tamper]]:
    """A service whose log has five rows, and the way to its tables with the guards against changes off."""
    engine: Any
    if request.param == "sqlite":
        engine = SqliteEngine(tmp_path / "store.db")
        connection: Any = apsw.Connection(str(engine.path))
    else:
        engine = PostgresEngine(postgres_url)
        connection = psycopg.connect(postgres_url, autocommit=True, options="-c search_path=redrive")
    service = Service(engine)
    service.start()
    for number in range(ROWS):
        row = AuditRow(0, "ops", "queue.pause", f"jobs-{number}", "why", "ab", "done", on_behalf_of="alice")
        service.committer.call(c.WriteAudit(row))

    def unguarded(statement: str, *values: Any) -> list[Any]:
        if request.param == "sqlite":
            connection.execute("DROP TRIGGER IF EXISTS audit_is_never_changed")
            connection.execute("DROP TRIGGER IF EXISTS audit_is_never_shortened")
        else:
            connection.execute("ALTER TABLE audit DISABLE TRIGGER USER")
            statement = statement.replace("?", "%s")
        found = connection.execute(statement, values)
        return list(found) if statement.startswith("SELECT") else []

    yield service, unguarded
    connection.close()
    service.close()


def verify(service: Service, noted: str | None = None) -> shapes.AuditVerified:
    """What the check says, over as many answers as it takes."""
    rows, cursor = 0, None
    while True:
        found = service.call("audit.verify", shapes.AuditVerify(noted=noted, cursor=cursor))
        rows, cursor = rows + found.rows, found.next_cursor
        if cursor is None:
            found.rows = rows
            return found  # type: ignore[no-any-return]


def broken_at(service: Service, noted: str | None = None) -> int | None:
    """The row that the check names."""
    broken = verify(service, noted).broken
    return None if broken is None else int(broken.id)


def test_an_untouched_log_is_sound(store: tuple[Service, Tamper]) -> None:
    """Every row counts, and the head is the last one; the control of all that follows."""
    service, _ = store
    found = verify(service)
    assert (found.rows, found.last_id, found.broken, found.unchained) == (ROWS, str(ROWS), None, 0)
    newest = service.call("audit.list", shapes.AuditList()).items[0]
    assert (newest.id, newest.hash, newest.on_behalf_of) == (found.last_id, found.last_hash, "alice")


CHANGES = {
    "the time": "at_ms = at_ms + 1", "who": "actor = 'dev'", "for whom": "on_behalf_of = 'bob'",
    "nobody": "on_behalf_of = NULL", "what": "action = 'queue.resume'", "where": "target = 'jobs-9'",
    "why": "reason = 'another'", "no reason": "reason = NULL", "over what": "selection_hash = 'cd'",
    "the outcome": "outcome = 'stopped'", "the hash": "hash = NULL",
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_row_is_named(store: tuple[Service, Tamper], change: str) -> None:
    """Whatever column it is."""
    service, sql = store
    sql(f"UPDATE audit SET {change} WHERE id = 3")
    assert broken_at(service) == 3


def test_a_changed_detail_is_named(store: tuple[Service, Tamper]) -> None:
    """Bytes as well."""
    service, sql = store
    sql("UPDATE audit SET detail = ? WHERE id = 2", b'{"purged":0}')
    assert broken_at(service) == 2


@pytest.mark.parametrize(("number", "named"), [(3, 4), (5, 5)])
def test_a_row_changed_with_its_hash_is_found_by_the_next(
    store: tuple[Service, Tamper], number: int, named: int
) -> None:
    """And the last one by the head."""
    service, sql = store
    rows = service.engine.read(lambda reader: reader.audit_chain(0, 10))
    row, before = msgspec.structs.replace(rows[number - 1], reason="never was"), rows[number - 2].hash
    assert before is not None
    digest = audit_chain.row_hash(before, row)
    sql("UPDATE audit SET reason = ?, hash = ? WHERE id = ?", row.reason, digest, number)
    assert broken_at(service) == named


@pytest.mark.parametrize(("removed", "named"), [("= 1", 1), ("= 3", 3), ("= 5", 5), (">= 4", 4), ("> 0", 1)])
def test_a_removed_row_is_named(store: tuple[Service, Tamper], removed: str, named: int) -> None:
    """The first, one in the middle, the last, several, all."""
    service, sql = store
    sql(f"DELETE FROM audit WHERE id {removed}")
    assert broken_at(service) == named


def test_a_removed_row_whose_number_is_given_away_is_named(store: tuple[Service, Tamper]) -> None:
    """Moving the later ones down does not close the gap."""
    service, sql = store
    sql("DELETE FROM audit WHERE id = 3")
    for number in (4, 5):
        sql("UPDATE audit SET id = ? WHERE id = ?", number - 1, number)
    assert broken_at(service) == 3


def test_rows_in_another_order_are_named(store: tuple[Service, Tamper]) -> None:
    """Two neighbours that changed places."""
    service, sql = store
    for before, after in ((2, 99), (3, 2), (99, 3)):
        sql("UPDATE audit SET id = ? WHERE id = ?", after, before)
    assert broken_at(service) == 2


@pytest.mark.parametrize(("number", "named"), [(6, 6), (9, 6), (0, 0), (-7, -7)])
def test_an_inserted_row_is_named(store: tuple[Service, Tamper], number: int, named: int) -> None:
    """Behind the end, or before the beginning; between two there is no number."""
    service, sql = store
    sql(COPY.format(number))
    assert broken_at(service) == named


def test_an_inserted_row_without_a_hash_is_counted(store: tuple[Service, Tamper]) -> None:
    """It cannot pass for one that is older than the chain."""
    service, sql = store
    sql(COPY.format(0))
    sql("UPDATE audit SET hash = NULL WHERE id = 0")
    assert broken_at(service) == 1


def test_an_inserted_row_that_fits_is_named(store: tuple[Service, Tamper]) -> None:
    """A forged row with the right hash is not what the head says."""
    service, sql = store
    sql(COPY.format(6))
    last, forged = service.engine.read(lambda reader: reader.audit_chain(4, 10))
    assert last.hash is not None
    sql("UPDATE audit SET hash = ? WHERE id = 6", audit_chain.row_hash(last.hash, forged))
    assert broken_at(service) == 6


def test_a_shortened_chain_is_found_by_what_was_noted(store: tuple[Service, Tamper]) -> None:
    """With the head set back nothing inside the store tells; the noted end does."""
    service, sql = store
    noted = f"{ROWS}:{verify(service).last_hash}"
    assert broken_at(service, noted) is None
    sql("DELETE FROM audit WHERE id = 5")
    fourth = sql("SELECT hash FROM audit WHERE id = 4")[0][0]
    sql("UPDATE audit_head SET number = 4, hash = ?", fourth)
    assert broken_at(service) is None  # the control: without the note it looks sound
    assert broken_at(service, noted) == 5


def test_a_chain_made_anew_is_found_by_what_was_noted(store: tuple[Service, Tamper]) -> None:
    """All hashes are right again, and not the noted ones."""
    service, sql = store
    noted = f"{ROWS}:{verify(service).last_hash}"
    rows = service.engine.read(lambda reader: reader.audit_chain(0, 10))
    rows[1].actor = "nobody"
    head, anew = audit_chain.append([AuditHead()], rows)
    for row in anew:
        sql("UPDATE audit SET actor = ?, hash = ? WHERE id = ?", row.actor, row.hash, row.id)
    sql("UPDATE audit_head SET hash = ?", head.hash)
    assert broken_at(service) is None
    assert broken_at(service, noted) == ROWS


def test_without_the_head_nothing_is_sound_and_nothing_is_done(store: tuple[Service, Tamper]) -> None:
    """An action that cannot be audited is refused."""
    service, sql = store
    service.call("queue.create", shapes.QueueCreate(name="jobs"))
    sql("DELETE FROM audit_head")
    assert "ends is missing" in str(verify(service).broken)
    with pytest.raises(Exception, match="nothing was done"):
        service.call("queue.pause", shapes.QueuePause(queue="jobs"))
    assert service.call("queue.get", shapes.QueueGet(queue="jobs")).state == "active"


def test_with_the_hash_off_a_changed_row_passes(
    store: tuple[Service, Tamper], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: it is the hash that finds it."""
    service, sql = store
    sql("UPDATE audit SET reason = 'another' WHERE id = 3")
    rows = service.engine.read(lambda reader: reader.audit_chain(0, 10))
    written = iter([row.hash for row in rows])
    monkeypatch.setattr(audit_chain, "row_hash", lambda *_: next(written))
    assert broken_at(service) is None


REFUSED = (apsw.ConstraintError, psycopg.errors.RaiseException)


def _client_of(engine: Any, url: str) -> Any:
    if isinstance(engine, SqliteEngine):
        return contextlib.closing(apsw.Connection(str(engine.path)))
    return psycopg.connect(url, options="-c search_path=redrive")


@pytest.mark.parametrize("statement", ["UPDATE audit SET reason = 'x' WHERE id = 1", "DELETE FROM audit"])
def test_the_log_is_append_only(tmp_path: Path, postgres_url: str, statement: str) -> None:
    """The tables themselves refuse a change, be it by mistake."""
    row = c.WriteAudit(AuditRow(0, "ops", "queue.pause", "jobs", None, None, "done"))
    for engine in (SqliteEngine(tmp_path / "store.db"), PostgresEngine(postgres_url)):
        service = Service(engine)
        service.start()
        service.committer.call(row)
        with _client_of(engine, postgres_url) as client, pytest.raises(REFUSED, match="append-only"):
            client.execute(statement)
        assert broken_at(service) is None
        service.close()


def test_a_long_log_is_verified_in_pages(tmp_path: Path) -> None:
    """More rows than one answer verifies; at no time more than a page is held."""
    service = Service(SqliteEngine(tmp_path / "store.db"))
    rows = [AuditRow(n, "ops", "queue.pause", "jobs", None, None, "done") for n in range(12_345)]
    service.engine.run(lambda tx: tx.insert_audit(rows))
    first = service.call("audit.verify", shapes.AuditVerify())
    assert (first.rows, first.last_id, first.broken) == (10_000, "10000", None)
    assert first.next_cursor is not None
    assert verify(service).rows == 12_345
    connection = apsw.Connection(str(tmp_path / "store.db"))
    connection.execute("DROP TRIGGER audit_is_never_changed")
    connection.execute("UPDATE audit SET actor = 'x' WHERE id = 12001")
    found = verify(service)
    assert found.broken is not None
    assert (found.rows, found.broken.id) == (12_000, "12001")
    service.engine.close()


def test_rows_from_before_the_chain_are_told_apart(tmp_path: Path) -> None:
    """A store of an older version: its rows have no hash, are counted, and cannot become more or fewer."""
    path = tmp_path / "store.db"
    SqliteEngine(path).close()
    connection = apsw.Connection(str(path))
    connection.execute("DROP TRIGGER audit_is_never_changed")
    connection.execute("DROP TRIGGER audit_is_never_shortened")
    for number in (3, 7):
        connection.execute(
            "INSERT INTO audit (id, at_ms, actor, action, target, outcome, detail) "
            "VALUES (?, 1, '', '', '', '', x'7b7d')",
            (number,),
        )
    connection.execute("UPDATE audit_head SET number = 7, first = 8, unchained = 2")
    connection.execute(
        "CREATE TRIGGER audit_is_never_changed BEFORE UPDATE ON audit\n"
        "BEGIN SELECT raise(ABORT, 'the audit log is append-only'); END"
    )
    connection.execute(
        "CREATE TRIGGER audit_is_never_shortened BEFORE DELETE ON audit\n"
        "BEGIN SELECT raise(ABORT, 'the audit log is append-only'); END"
    )
    service = Service(SqliteEngine(path))
    row = AuditRow(1, "ops", "queue.pause", "jobs", None, None, "done")
    service.engine.run(lambda tx: tx.insert_audit([row, row]))
    found = verify(service)
    assert (found.rows, found.unchained, found.last_id, found.broken) == (2, 2, "9", None)
    connection.execute("DROP TRIGGER audit_is_never_shortened")
    connection.execute("DELETE FROM audit WHERE id = 3")
    assert broken_at(service) == 8
    service.engine.close()
