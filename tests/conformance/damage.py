"""Ways to spoil a stored body behind an engine's back."""

from __future__ import annotations

from collections.abc import Callable

import apsw
import psycopg
from psycopg import sql

from redrive.storage.sqlite import SqliteEngine

SPOIL = (
    "UPDATE {}.messages SET body = set_byte(body, length(body) - 1, get_byte(body, length(body) - 1) # 1) "
    "WHERE message_id = %s"
)


def damage_sqlite(engine: SqliteEngine) -> Callable[[str], None]:
    """Flip the last bit of a body in the file, on a connection of its own."""

    def damage(message_id: str) -> None:
        connection = apsw.Connection(str(engine.path))
        try:
            [(number, body)] = connection.execute(
                "SELECT b.id, b.body FROM bodies b JOIN messages m ON m.id = b.id WHERE m.message_id = ?",
                (message_id,),
            )
            spoilt = body[:-1] + bytes([body[-1] ^ 1])
            connection.execute("UPDATE bodies SET body = ? WHERE id = ?", (spoilt, number))
        finally:
            connection.close()

    return damage


def damage_postgres(url: str, schema: str = "redrive") -> Callable[[str], None]:
    """Flip the last bit of a stored body, on a connection of its own."""

    def damage(message_id: str) -> None:
        with psycopg.connect(url) as connection:
            connection.execute(sql.SQL(SPOIL).format(sql.Identifier(schema)), (message_id,))

    return damage
