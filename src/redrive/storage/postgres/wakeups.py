"""News between nodes: which queues hold something. A hint only; polling is the truth.

NOTIFY takes a database-wide lock at commit, so it never runs in a message transaction: a connection of its
own sends what has collected, at most 20 times a second.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterable, Sequence

import msgspec
import psycopg
from psycopg import sql

from redrive import seams
from redrive.storage.postgres.binary import text
from redrive.storage.postgres.failures import Dropped, from_error
from redrive.storage.postgres.session import Session

Callback = Callable[[Sequence[str]], None]
_PACE_SECONDS = 0.05
_NAMES_MAX = 80  # names in one notification: its payload must stay under 8,000 bytes
_PENDING_MAX = 10_000  # names; above it news is dropped, since polling finds the messages anyway
_LISTEN_SECONDS = 0.5
_RETRY_SECONDS = 1.0
_JOIN_SECONDS = 10.0
_LOG = logging.getLogger("redrive.storage")


class Wakeups:
    """One node's ear and voice. ``announce`` never blocks; ``stop`` ends both threads."""

    def __init__(self, conninfo: str, schema: str) -> None:
        self._conninfo = conninfo
        self._channel = f"{schema}_wakeups"
        self._node = seams.token(9)  # a node does not need its own news
        self._lock = threading.Lock()
        self._pending: dict[str, None] = {}
        self._news = threading.Event()
        self._stopping = threading.Event()
        self._listening = threading.Event()
        self._threads: list[threading.Thread] = []

    def announce(self, names: Iterable[str]) -> None:
        """Tell the other nodes, soon, that these queues hold something."""
        with self._lock:
            if len(self._pending) < _PENDING_MAX:
                self._pending.update(dict.fromkeys(names))
        self._news.set()

    def start(self, callback: Callback) -> None:
        """Begin to send, and to call ``callback`` (in a thread of its own) with names from other nodes."""
        for name, work in (("send", self._send), ("listen", lambda: self._listen(callback))):
            thread = threading.Thread(target=work, name=f"redrive-wakeups-{name}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def wait_listening(self, seconds: float) -> bool:
        """Whether the ear is open, waited for at most so long."""
        return self._listening.wait(seconds)

    def stop(self) -> None:
        """End both threads."""
        self._stopping.set()
        self._news.set()
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)
        self._threads.clear()

    def _take(self) -> list[str]:
        with self._lock:
            names = list(self._pending)
            self._pending.clear()
            self._news.clear()
        return names

    def _send(self) -> None:
        session: Session | None = None
        while not self._stopping.is_set():
            self._news.wait(_LISTEN_SECONDS)
            names = self._take()
            try:
                for start in range(0, len(names), _NAMES_MAX):
                    if session is None:
                        session = Session(self._conninfo)
                    news = msgspec.json.encode([self._node, *names[start : start + _NAMES_MAX]])
                    session.fetch("notify", text(self._channel), text(news.decode()))
            except Exception as error:  # noqa: BLE001 - news is a hint; whatever breaks, the next try is fresh
                if not isinstance(error, Dropped):
                    _LOG.warning("wake-ups were not sent: %s", error)
                if session is not None:
                    session.close()
                session = None
                seams.wait(self._stopping, _RETRY_SECONDS)
            seams.wait(self._stopping, _PACE_SECONDS)
        if session is not None:
            session.close()

    def _listen(self, callback: Callback) -> None:
        while not self._stopping.is_set():
            try:
                with psycopg.connect(self._conninfo, autocommit=True) as connection:
                    connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
                    self._listening.set()
                    self._hear(connection, callback)
            except psycopg.Error as error:
                failure = from_error(error)
                _LOG.info("wake-ups are not heard until the next try: %s", failure)
                self._listening.clear()
                seams.wait(self._stopping, _RETRY_SECONDS)

    def _hear(self, connection: psycopg.Connection, callback: Callback) -> None:
        while not self._stopping.is_set():
            for notice in connection.notifies(timeout=_LISTEN_SECONDS):
                with contextlib.suppress(msgspec.DecodeError):
                    node, *names = msgspec.json.decode(notice.payload, type=list[str])
                    if node != self._node:
                        callback(names)
                if self._stopping.is_set():
                    return
