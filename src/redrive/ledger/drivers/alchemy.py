"""The driver for SQLAlchemy: a Connection or a Session, whose own savepoints keep its state true."""

from __future__ import annotations

from functools import cache
from typing import Any

from redrive.ledger import catalog
from redrive.ledger.drivers.dbapi import is_open, mode_of
from redrive.ledger.drivers.port import Mode
from redrive.ledger.errors import TransactionEnded
from redrive.ledger.steps import Call, Control, Migration, Performed, Rows, Statement

DIALECTS = {"sqlite": "sqlite", "postgresql": "postgres", "mysql": "mysql", "mariadb": "mysql"}


@cache
def _text(sql: str) -> Any:
    from sqlalchemy import text

    return text(sql)


class Alchemy:
    """A Connection or Session. A Session is flushed after the change, so that its rows are inside the
    savepoint."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self._flush = getattr(handle, "flush", lambda: None)
        self._nested: Any = None
        connection = self._connection()
        if connection.dialect.name not in DIALECTS:
            raise TypeError(f"the ledger knows {', '.join(DIALECTS)}, not {connection.dialect.name}")
        self.dialect = DIALECTS[connection.dialect.name]

    def mode(self) -> Mode:
        """Whose transaction a program on this connection runs in."""
        return mode_of(self.dialect, self._raw())

    def is_open(self) -> bool:
        """Whether a transaction is open at the database; one that SQLAlchemy only thinks of is not."""
        return is_open(self.dialect, self._raw())

    def perform(self, step: Performed) -> Any:
        """Do one step through SQLAlchemy, so that it knows of the transaction."""
        if isinstance(step, Call):
            value = step.function(self.handle)
            self._flush()
            return value
        if isinstance(step, Statement):
            return self._execute(step.name, step.values)
        if isinstance(step, Migration):
            for sql in step.statements:
                self.handle.execute(_text(sql))
            return Rows([], 0)
        for control in step:
            self._control(control)
        return Rows([], 0)

    def flush(self) -> None:
        """Send what a Session holds back."""
        self._flush()

    def _connection(self) -> Any:
        return self.handle.connection() if callable(self.handle.connection) else self.handle

    def _raw(self) -> Any:
        return self._connection().connection.driver_connection

    def _automatic(self) -> bool:
        """Whether SQLAlchemy's own commit does nothing: the connection is in AUTOCOMMIT."""
        raw = self._raw()
        if self.dialect == "sqlite":
            return raw.isolation_level is None or getattr(raw, "autocommit", -1) is True
        return bool(raw.autocommit if self.dialect == "postgres" else raw.get_autocommit())

    def _execute(self, name: str, values: Any) -> Rows:
        answer = Rows([], 0)
        for part in catalog.parts(self.dialect, name, "named"):
            result = self.handle.execute(_text(part.text), {key: values[key] for key in part.names})
            rows = [tuple(row) for row in result.fetchall()] if result.returns_rows else []
            answer = Rows(rows, result.rowcount)
        return answer

    def _control(self, control: Control) -> None:
        if control is Control.BEGIN:
            self._flush()  # what the caller's session holds back belongs before the savepoint, and may begin
            if (self.dialect == "sqlite" and not self._raw().in_transaction) or self._automatic():
                self._execute("begin", {})
        elif control is Control.SAVEPOINT:
            self._nested = self.handle.begin_nested()
        elif control is Control.RELEASE:
            if not self._nested.is_active:
                raise TransactionEnded("the change ended the transaction that holds its receipt")
            self._nested.commit()
        elif control is Control.UNDO:
            self._nested.rollback()
        elif control in (Control.COMMIT, Control.ROLLBACK):
            if self._automatic():
                self._execute(control.value, {})
            (self.handle.commit if control is Control.COMMIT else self.handle.rollback)()
        else:
            self._execute(control.value, {})
