"""The PostgreSQL engine: one writing connection, a few reading ones, and what to do when they break."""

from __future__ import annotations

import contextlib
import queue
import re
import threading
from collections.abc import Callable
from typing import TypeVar

import psycopg

from redrive import seams
from redrive.domain.errors import InvalidRequest
from redrive.storage.port import Lost, Reader, Transaction, UnknownOutcome, Unwritable
from redrive.storage.postgres import schema as layout
from redrive.storage.postgres.binary import text
from redrive.storage.postgres.failures import Again, Dropped, Refusing
from redrive.storage.postgres.floors import Floors
from redrive.storage.postgres.reader import PostgresReader
from redrive.storage.postgres.session import Session, settings
from redrive.storage.postgres.transaction import PostgresTransaction
from redrive.storage.postgres.wakeups import Wakeups

T = TypeVar("T")
_READERS_MAX = 4
_READER_WAIT_SECONDS = 30
_CROSSED_SECONDS = 0.005  # doubled each round, by chance: nodes that cross each other step apart
_ROUNDS_MAX = 10  # of one batch that other nodes' transactions cross: some seconds
_DROPS_MAX = 2  # of connections during one batch, before the caller is told
_RESOLVE_SECONDS = 20.0
_RESOLVE_PAUSE_SECONDS = 0.1
_RETRY_SECONDS = (0.05, 5.0)
_REPLAN_SECONDS = 5.0
_HISTORY_ROUNDS = 100
_CHECKS = ("check_busy", "check_dead", "check_live", "check_queues", "check_stranded")
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,50}")


class PostgresEngine:
    """A store in one schema of a PostgreSQL database, shared by any number of nodes.

    ``url`` is a libpq URL; several hosts with ``target_session_attrs=read-write`` follow a failover. Time is
    the database's; ``clock`` (milliseconds since the epoch) replaces it in tests. Raises :class:`Lost` when
    the database cannot be reached.
    """

    name = "postgres"

    def __init__(self, url: str, clock: Callable[[], int] | None = None, *, schema: str = "redrive") -> None:
        if not _SCHEMA.fullmatch(schema):
            raise InvalidRequest(f"schema must match {_SCHEMA.pattern}, got {schema!r}")
        self.clock = clock
        self._url, self._schema = url, schema
        self._lock = threading.RLock()
        self._closing = threading.Event()
        self._writer: Session | None = None
        self._history = ""
        self._floors = Floors()
        self._failures = 0
        self._read_only = False  # what the last try to connect found
        self._next_try = 0.0
        self._replan_at = 0.0
        self._readers: queue.LifoQueue[Session | None] = queue.LifoQueue()
        for _ in range(_READERS_MAX):
            self._readers.put(None)  # opened when first needed
        self.migrate()

    # -- writing
    def run(self, work: Callable[[Transaction], T]) -> T:
        """Run ``work`` as one transaction; when this returns, its effects are durable.

        ``work`` runs again from its start when another node's transaction crossed it, or when the
        connection broke before the commit.
        """
        with self._lock:
            drops = 0
            for rounds in range(_ROUNDS_MAX):
                session = self._open_writer()
                try:
                    with self._floors.undone_with_us():
                        return self._attempt(session, work, ahead=rounds == 0)
                except Again as crossed:
                    last: Exception = crossed
                    seams.wait(self._closing, seams.draw() * _CROSSED_SECONDS * 2**rounds)
                except UnknownOutcome:
                    raise
                except Dropped as dropped:
                    session.close()
                    last, drops = dropped, drops + 1
                    if drops == _DROPS_MAX:
                        raise
            raise Lost(f"gave up after {_ROUNDS_MAX} tries: {last}") from last

    def _attempt(self, session: Session, work: Callable[[Transaction], T], *, ahead: bool) -> T:
        try:
            self._inject_clock(session)
            tx = PostgresTransaction(session, self._floors, ahead=ahead)
            result = work(tx)
            tx.not_too_early()
            if tx.wrote and tx.xid is None:
                [(tx.xid,)] = session.fetch("xid")
        except BaseException:
            session.abandon()
            raise
        if not tx.wrote:
            session.abandon()  # nothing to make durable: no wait for the disk
        else:
            self._commit(session, tx.xid)
        return result

    def _inject_clock(self, session: Session) -> None:
        if self.clock is not None:
            session.fetch("set_clock", text(str(self.clock())))

    def _commit(self, session: Session, xid: str | None) -> None:
        history = self._history
        try:
            tag = session.commit()
        except Dropped as broken:
            session.close()
            if xid is not None and not self._committed(xid, history, broken):
                raise Again(f"the connection broke in COMMIT, and nothing was stored: {broken}") from broken
            return
        except BaseException:  # a write before it was refused
            session.abandon()
            raise
        if tag != "COMMIT":
            raise Lost(f"the database answered COMMIT with {tag}")

    def _committed(self, xid: str, history: str, broken: Dropped) -> bool:
        """Whether the transaction was stored, asked on a fresh connection; ``UnknownOutcome`` if the
        database cannot say so in time.

        A crash or a failover may forget the last transactions, and give their numbers away again. So
        "aborted" and "in the future" always mean that ours is not stored; "committed" may mean another one
        when ``history``, in which ours began, is not the history of today.
        """
        ends = seams.monotonic() + _RESOLVE_SECONDS
        status = "not known"
        while seams.monotonic() < ends and not self._closing.is_set():
            try:
                status = self._connect_writer().fetch("xid_status", text(xid))[0][0]
            except Dropped as still:
                status = str(still)
            except psycopg.errors.InvalidParameterValue:  # "is in the future"
                return False
            if status == "aborted":
                return False
            if status == "committed":
                if self._history == history:
                    return True
                status = "committed, by us or by another since the server crashed or was replaced"
                break
            seams.wait(self._closing, _RESOLVE_PAUSE_SECONDS)
        raise UnknownOutcome(f"the connection broke in COMMIT of {xid}, which is {status}: {broken}")

    def _open_writer(self) -> Session:
        if self._writer is not None and self._writer.usable:
            self._replan(self._writer)
            return self._writer
        wait = self._next_try - seams.monotonic()
        if wait > 0 and self._read_only:
            raise Unwritable(f"the database is read-only; next try in {wait:.1f} s")
        if wait > 0:
            raise Lost(f"the database is not reachable; next try in {wait:.1f} s")
        return self._connect_writer()

    def _replan(self, session: Session) -> None:
        if seams.monotonic() >= self._replan_at:
            self._replan_at = seams.monotonic() + _REPLAN_SECONDS
            with contextlib.suppress(Dropped):  # the batch itself will find out, and reconnect
                session.command("discard_plans")

    def _connect_writer(self) -> Session:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        try:
            session = Session(settings(self._url, self._schema, "writer"))
            self._history = _history(session)
        except Dropped as failure:
            first, most = _RETRY_SECONDS
            pause = min(most, first * 2 ** min(self._failures, 10))
            self._next_try = seams.monotonic() + pause * (0.5 + seams.draw() / 2)
            self._failures += 1
            self._read_only = isinstance(failure, Refusing)
            raise
        self._failures, self._next_try = 0, 0.0
        self._writer = session
        return session

    # -- reading
    def read(self, work: Callable[[Reader], T]) -> T:
        """Run ``work`` over one snapshot; from any thread."""
        session = self._readers.get(timeout=_READER_WAIT_SECONDS)
        try:
            session, now_ms = self._begin_read(session)
            try:
                return work(PostgresReader(session, now_ms))
            finally:
                session.abandon()
        except BaseException:
            if session is not None:
                session.close()
            session = None
            raise
        finally:
            self._readers.put(session)

    def _begin_read(self, session: Session | None) -> tuple[Session, int]:
        if session is not None and session.usable:
            try:
                return session, self._snapshot(session)
            except Dropped:  # it idled while the database went away and came back
                session.close()
        session = Session(settings(self._url, self._schema, "reader"))
        return session, self._snapshot(session)

    def _snapshot(self, session: Session) -> int:
        self._inject_clock(session)
        [(now_ms,)] = session.script("begin_read")
        return int(now_ms)

    # -- the schema and the nodes
    def migrate(self) -> list[str]:
        """Apply the migrations that the schema has not seen; safe on several nodes at once."""
        session = Session(settings(self._url, self._schema, "migration"))
        try:
            return layout.migrate(session, self._schema)
        finally:
            session.close()

    def check(self) -> list[str]:
        """Where the stored rows contradict each other; at most 20 findings of each kind."""
        session = Session(settings(self._url, self._schema, "check"))
        try:
            return [row[0] for name in _CHECKS for row in session.fetch(name)]
        finally:
            session.close()

    def wakeups(self) -> Wakeups:
        """What tells other nodes, and hears from them, that a queue holds something."""
        return Wakeups(settings(self._url, self._schema, "wakeups"), self._schema)

    def close(self) -> None:
        """Hang up everywhere."""
        self._closing.set()
        with self._lock:
            if self._writer is not None:
                self._writer.close()
                self._writer = None
        while not self._readers.empty():
            session = self._readers.get_nowait()
            if session is not None:
                session.close()


def _history(session: Session) -> str:
    for _ in range(_HISTORY_ROUNDS):
        [(history,)] = session.fetch("history")
        if history is not None:
            return str(history)
    raise Dropped("the database's history was being named by another node")
