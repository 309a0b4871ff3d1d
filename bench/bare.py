"""What Redrive is measured against: the same rows by hand, and a server that only answers."""

from __future__ import annotations

import itertools
from pathlib import Path

import apsw

from redrive import seams
from redrive.storage.sqlite.connection import open_writer
from redrive.storage.statements import migrations

PUBLISH = """INSERT INTO messages
    (message_id, queue_id, slot, priority, due_ms, expires_ms, enqueued_ms, body_hash)
VALUES (?, 1, 0, 0, ?, ?, ?, x'0011223344556677') RETURNING id"""
LEASE = """SELECT m.id, m.message_id, m.job_key, m.attempt, m.headers, b.body
FROM messages m JOIN bodies b ON b.id = m.id
WHERE m.queue_id = 1 AND m.slot = 0 AND m.priority = 0 AND m.due_ms <= ? ORDER BY m.due_ms, m.id LIMIT ?"""
MARK = """UPDATE messages
SET slot = 1, attempt = attempt + 1, delivery = delivery + 1, handle = ?, leased_ms = ?, lease_until_ms = ?
WHERE id = ?"""
ACK = "DELETE FROM messages WHERE message_id = ? AND handle = ? AND slot = 1"


class BareSqlite:
    """Publish, lease and ack by prepared statements on the same tables: no rules, no checksums."""

    def __init__(self, path: Path) -> None:
        self._connection: apsw.Connection = open_writer(path)
        self._connection.execute(migrations("redrive.storage.sqlite")[0].sql)
        self._numbers = itertools.count()

    def cycle(self, body: bytes, count: int) -> None:
        """``count`` messages: three transactions."""
        run, many = self._connection.execute, self._connection.executemany
        now = seams.wall_ms()
        ids = [f"{next(self._numbers):036d}" for _ in range(count)]
        run("BEGIN IMMEDIATE")
        numbers = [row[0] for row in many(PUBLISH, [(name, now, now + 10**9, now) for name in ids])]
        many("INSERT INTO bodies VALUES (?, ?)", [(number, body) for number in numbers])
        run("COMMIT")
        run("BEGIN IMMEDIATE")
        rows = run(LEASE, (now + 1_000, count)).fetchall()
        many(MARK, [(f"{row[0]:024d}", now, now + 30_000, row[0]) for row in rows])
        run("COMMIT")
        run("BEGIN IMMEDIATE")
        many(ACK, [(row[1], f"{row[0]:024d}") for row in rows])
        many("DELETE FROM bodies WHERE id = ?", [(row[0],) for row in rows])
        run("COMMIT")

    def commit_one(self, body: bytes) -> None:
        """One message, one commit."""
        now = seams.wall_ms()
        self._connection.execute("BEGIN IMMEDIATE")
        for row in self._connection.execute(PUBLISH, (f"{next(self._numbers):036d}", now, now + 10**9, now)):
            self._connection.execute("INSERT INTO bodies VALUES (?, ?)", (row[0], body))
        self._connection.execute("COMMIT")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()
