"""Drivers for plain connections: sqlite3, psycopg (blocking and not), PyMySQL."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from redrive.ledger import catalog
from redrive.ledger.drivers.port import Mode
from redrive.ledger.steps import Call, Control, Migration, Performed, Rows, Statement

_Sql: TypeAlias = Statement | Migration | tuple[Control, ...]
_IDLE = 0  # psycopg's TransactionStatus.IDLE
_IN_TRANSACTION = 1  # MySQL's SERVER_STATUS_IN_TRANS
_ENDS = {Control.COMMIT, Control.ROLLBACK}
WAIT_SECONDS = 5.0
"""Seconds that a SQLite transaction waits for those of its process before it asks SQLite itself."""


def is_open(dialect: str, raw: Any) -> bool:
    """Whether the driver's own connection ``raw`` is inside a transaction now."""
    if dialect == "sqlite":
        return bool(raw.in_transaction)
    if dialect == "postgres":
        return bool(raw.info.transaction_status != _IDLE)
    return bool(getattr(raw, "server_status", 0) & _IN_TRANSACTION)


def mode_of(dialect: str, raw: Any) -> Mode:
    """Whose transaction it is, from the state of the driver's own connection ``raw``."""
    if is_open(dialect, raw):
        return Mode.JOINED
    if dialect == "sqlite":
        automatic = getattr(raw, "autocommit", -1)  # Python 3.12; -1: the older isolation_level rules
        if automatic is True or (automatic is not False and raw.isolation_level is None):
            return Mode.OWN
        return Mode.BEGUN
    automatic = raw.autocommit if dialect == "postgres" else raw.get_autocommit()
    return Mode.OWN if automatic else Mode.JOINED


class _Plain:
    """What the plain drivers share: the SQL of a step, in their placeholder style."""

    dialect = ""
    style = "pyformat"

    def __init__(self, connection: Any) -> None:
        self.handle = connection

    def mode(self) -> Mode:
        """Whose transaction a program on this connection runs in."""
        return mode_of(self.dialect, self.handle)

    def is_open(self) -> bool:
        """Whether a transaction is open on this connection."""
        return is_open(self.dialect, self.handle)

    def _texts(self, step: _Sql) -> Iterator[tuple[str, Mapping[str, Any] | None]]:
        if isinstance(step, Migration):
            yield from ((text, None) for text in step.statements)
            return
        if isinstance(step, Statement):
            for part in catalog.parts(self.dialect, step.name, self.style):
                yield part.text, step.values if part.names else None  # more than is named does no harm
            return
        for control in step:
            for part in catalog.parts(self.dialect, control.value, self.style):
                yield part.text, None


class Blocking(_Plain):
    """A DB-API connection whose cursors give tuples whatever row factory the application chose."""

    def perform(self, step: Performed) -> Any:
        """Do one step on a cursor of its own."""
        if isinstance(step, Call):
            return step.function(self.handle)
        answer = Rows([], 0)
        cursor = self._cursor()
        try:
            for text, values in self._texts(step):
                self._execute(cursor, text, values)
                rows = [tuple(row) for row in cursor.fetchall()] if cursor.description else []
                answer = Rows(rows, cursor.rowcount)
        finally:
            cursor.close()
        return answer

    def _cursor(self) -> Any:
        raise NotImplementedError

    def _execute(self, cursor: Any, text: str, values: Mapping[str, Any] | None) -> None:
        cursor.execute(text, values)


class Turn:
    """Whose turn it is to write to a SQLite file, among the threads of this process that share a Ledger.

    SQLite lets a second writer sleep and try again; here it is woken the moment the first one is done.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Wait for it; False when the wait was as long as SQLite's own may be."""
        return self._lock.acquire(timeout=WAIT_SECONDS)

    def give(self) -> None:
        """The next one's."""
        self._lock.release()


class Sqlite(Blocking):
    """The standard library's sqlite3. With a ``turn`` its own transactions wait for that first."""

    dialect, style = "sqlite", "named"

    def __init__(self, connection: Any, turn: Turn | None = None) -> None:
        super().__init__(connection)
        self._turn, self._ours = turn, False

    def perform(self, step: Performed) -> Any:
        """Do one step on a cursor of its own."""
        if not isinstance(step, tuple) or self._turn is None:
            return super().perform(step)
        if Control.BEGIN in step and not self._ours:
            self._ours = self._turn.take()  # else SQLite says itself that the file is busy
        try:
            return super().perform(step)
        finally:
            if _ENDS & set(step):
                self.end_turn()

    def end_turn(self) -> None:
        """Let the next one write, whatever became of the transaction."""
        if self._ours:
            assert self._turn is not None
            self._ours = False
            self._turn.give()

    def _cursor(self) -> Any:
        cursor = self.handle.cursor()
        cursor.row_factory = None
        return cursor

    def _execute(self, cursor: Any, text: str, values: Mapping[str, Any] | None) -> None:
        cursor.execute(text, values or {})


class PyMysql(Blocking):
    """PyMySQL."""

    dialect = "mysql"

    def _cursor(self) -> Any:
        from pymysql.cursors import Cursor

        return self.handle.cursor(Cursor)


class _Psycopg(_Plain):
    """Control steps travel as one script: BEGIN, SAVEPOINT and the bound of waits are one round trip."""

    dialect = "postgres"

    def _scripts(self, step: _Sql) -> list[tuple[str, Mapping[str, Any] | None]]:
        texts = list(self._texts(step))
        if not isinstance(step, tuple):
            return texts
        if not self.handle.autocommit and step[:1] == (Control.BEGIN,):
            texts = texts[1:]  # psycopg begins by itself
        return [(";\n".join(text for text, _ in texts), None)] if texts else []

    def _cursor(self) -> Any:
        raise NotImplementedError


class Psycopg(_Psycopg):
    """psycopg 3, blocking."""

    def _cursor(self) -> Any:
        from psycopg import Cursor
        from psycopg.rows import tuple_row

        return Cursor(self.handle, row_factory=tuple_row)

    def perform(self, step: Performed) -> Any:
        """Do one step on a cursor of its own."""
        if isinstance(step, Call):
            return step.function(self.handle)
        answer = Rows([], 0)
        with self._cursor() as cursor:
            for text, values in self._scripts(step):
                cursor.execute(text.encode(), values)
                answer = Rows(cursor.fetchall() if cursor.description else [], cursor.rowcount)
        return answer


class PsycopgAsync(_Psycopg):
    """psycopg 3 on an event loop."""

    def _cursor(self) -> Any:
        from psycopg import AsyncCursor
        from psycopg.rows import tuple_row

        return AsyncCursor(self.handle, row_factory=tuple_row)

    async def perform(self, step: Performed) -> Any:
        """Do one step on a cursor of its own."""
        if isinstance(step, Call):
            value = step.function(self.handle)
            return await value if inspect.isawaitable(value) else value
        answer = Rows([], 0)
        async with self._cursor() as cursor:
            for text, values in self._scripts(step):
                await cursor.execute(text.encode(), values)
                answer = Rows(await cursor.fetchall() if cursor.description else [], cursor.rowcount)
        return answer
