"""One connection: prepared statements, binary both ways, as few round trips as possible.

A write whose answer nobody needs is put down (:meth:`Session.later`) and goes out in one pipeline with the
next statement that is read.
"""

from __future__ import annotations

import contextlib
import select
from collections.abc import Callable, Sequence
from typing import Any, cast

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer
from psycopg.conninfo import make_conninfo
from psycopg.pq.abc import PGresult

from redrive.storage.postgres.binary import Parameter
from redrive.storage.postgres.failures import Dropped, from_result
from redrive.storage.statements import Statement, load

SQL: dict[str, Statement] = load("redrive.storage.postgres")
CONNECT_SECONDS = 5
_WAIT_MS = 600_000  # the server's own statement_timeout ends a statement long before
_NETWORK = {
    "connect_timeout": CONNECT_SECONDS,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
# Every statement of the writer is written for an index and small sets; a plan made while the tables were
# empty must not become a scan of a million rows later.
_WRITER = (
    "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c enable_hashjoin=off "
    "-c enable_mergejoin=off -c enable_bitmapscan=off -c statement_timeout=60s "
    "-c idle_in_transaction_session_timeout=60s"
)
_READER = (
    "-c plan_cache_mode=force_custom_plan -c statement_timeout=20s -c idle_in_transaction_session_timeout=60s"
)
_BINARY = [pq.Format.BINARY] * 20
Request = tuple[str, tuple[Parameter, ...]]  # a statement's name and its values
_Values = Sequence[bytes]  # the driver takes None for null and does not say so
_ROWS = pq.ExecStatus.TUPLES_OK
_DONE = pq.ExecStatus.COMMAND_OK


def settings(url: str, schema: str, role: str) -> str:
    """Where and how to connect, for libpq; ``role`` is the part of the house that connects."""
    extra = {"writer": _WRITER, "reader": _READER}.get(role, "")
    options = f"-c search_path={schema} -c jit=off -c client_min_messages=error {extra}".rstrip()
    return make_conninfo(url, options=options, application_name=f"redrive {role}", **_NETWORK)


class Session:
    """A connection and its prepared statements. Raises what :mod:`failures` names."""

    def __init__(self, conninfo: str) -> None:
        self._pg = pq.PGconn.connect(conninfo.encode())
        if self._pg.status != pq.ConnStatus.OK:
            reason = self._pg.get_error_message()
            self._pg.finish()
            raise Dropped(f"cannot connect to the database: {reason}")
        self._prepared: set[str] = set()
        self._pending: list[Request] = []
        self._loaders = Transformer(None)

    @property
    def usable(self) -> bool:
        """Whether the connection stands, with no transaction left over."""
        return (
            self._pg.status == pq.ConnStatus.OK
            and self._pg.transaction_status == pq.TransactionStatus.IDLE
        )  # fmt: skip

    def execute(self, statement: Statement) -> list[tuple[Any, ...]]:
        """Run a file of several statements without parameters; the rows of the last."""
        return self._rows(self._ask(self._pg.exec_, statement.sql.encode()), pq.Format.TEXT)

    def script(self, name: str) -> list[tuple[Any, ...]]:
        """Run one of our files of several statements without parameters; the rows of the last."""
        return self.execute(SQL[name])

    def fetch(self, name: str, *values: Parameter) -> list[tuple[Any, ...]]:
        """Run a statement, after what was put down for later; its rows."""
        if self._pending:
            self._pending.append((name, values))
            return self._rows(self._exchange()[-1])
        self._prepare(name)
        given = cast("_Values", values)
        return self._rows(self._ask(self._pg.exec_prepared, name.encode(), given, _BINARY[: len(values)], 1))

    def fetch_all(self, requests: Sequence[Request]) -> list[list[tuple[Any, ...]]]:
        """Run these statements, after what was put down for later, in one round trip; the rows of each."""
        self._pending += requests
        return [self._rows(result) for result in self._exchange()[-len(requests) :]]

    def later(self, name: str, *values: Parameter) -> None:
        """Run a statement before the next one that is read, or before the commit."""
        self._pending.append((name, values))

    def commit(self) -> str:
        """Run what was put down for later, and COMMIT, in one round trip; the tag of the latter."""
        self._pending.append(("commit", ()))
        return (self._exchange()[-1].command_status or b"").decode()

    def command(self, name: str) -> str:
        """Run one command without rows; the tag that the server gives it."""
        result = self._ask(self._pg.exec_, SQL[name].sql.encode())
        self._check(result)
        return (result.command_status or b"").decode()

    def abandon(self) -> None:
        """Roll back what is under way, if the connection still stands."""
        self._pending.clear()
        if self._pg.status == pq.ConnStatus.OK and self._pg.pipeline_status != pq.PipelineStatus.OFF:
            self.close()
        elif self._pg.status == pq.ConnStatus.OK:
            with contextlib.suppress(Dropped):
                self._ask(self._pg.exec_, SQL["rollback"].sql.encode())

    def close(self) -> None:
        """Hang up."""
        self._pg.finish()

    @staticmethod
    def _ask(call: Callable[..., PGresult], *values: object) -> PGresult:
        """One round trip; a connection that was found broken has no result, and the driver raises."""
        try:
            return call(*values)
        except psycopg.OperationalError as error:
            raise Dropped(f"the connection to the database failed: {error}") from error

    def _prepare(self, name: str) -> None:
        if name not in self._prepared:
            self._check(self._ask(self._pg.prepare, name.encode(), SQL[name].sql.encode()))
            self._prepared.add(name)

    def _exchange(self) -> list[PGresult]:
        """Everything that was put down, in one round trip; the results, all of them good."""
        pending, self._pending = self._pending, []
        for name, _ in pending:
            self._prepare(name)
        pg = self._pg
        try:
            pg.enter_pipeline_mode()
            for name, values in pending:
                pg.send_query_prepared(name.encode(), values, _BINARY[: len(values)], 1)
            pg.pipeline_sync()
            results = [self._next_result() for _ in pending]
            self._next_result()  # the sync itself
            pg.exit_pipeline_mode()
        except psycopg.OperationalError as error:
            raise Dropped(f"the connection to the database failed: {error}") from error
        for result in results:
            self._check(result)
        return results

    def _next_result(self) -> PGresult:
        """The next statement's result, waited for with the interpreter free for other threads."""
        pg = self._pg
        poll: select.poll | None = None
        found: PGresult | None = None
        while True:
            while pg.is_busy():
                if poll is None:
                    poll = select.poll()
                    poll.register(pg.socket, select.POLLIN)
                if not poll.poll(_WAIT_MS):
                    raise Dropped("the database did not answer")
                pg.consume_input()
            result = pg.get_result()
            if result is None:
                if found is None:
                    raise Dropped("the connection to the database failed: no result")
                return found
            if result.status == pq.ExecStatus.PIPELINE_SYNC:
                return result
            found = result

    def _rows(self, result: PGresult, form: pq.Format = pq.Format.BINARY) -> list[tuple[Any, ...]]:
        self._check(result)
        if result.status != _ROWS or not result.ntuples:
            return []
        self._loaders.set_pgresult(result, format=form)
        return self._loaders.load_rows(0, result.ntuples, tuple)

    def _check(self, result: PGresult) -> None:
        if result.status in (_ROWS, _DONE):
            return
        if self._pg.status != pq.ConnStatus.OK:
            raise Dropped(f"the connection to the database failed: {self._pg.get_error_message()}")
        raise from_result(result)
