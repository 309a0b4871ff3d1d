"""The servers that the other tests stand on: real, private, durable, fresh for each test."""

from __future__ import annotations

import threading

import psycopg
import pymysql
import pytest

from tests import database


def test_each_postgres_database_is_fresh_and_durable(postgres_server: database.PostgresServer) -> None:
    """Two databases of one server share nothing, and the server syncs its log to disk."""
    with postgres_server.fresh_database() as one, postgres_server.fresh_database() as other:
        with psycopg.connect(one, autocommit=True) as connection:
            connection.execute("create table only_here (n int)")
            row = connection.execute(
                "select current_setting('fsync'), current_setting('synchronous_commit')"
            ).fetchone()
        with psycopg.connect(other, autocommit=True) as connection:
            found = connection.execute("select to_regclass('only_here')").fetchone()
    assert row == ("on", "on")
    assert found == (None,)


def test_a_killed_postgres_keeps_what_was_committed() -> None:
    """After SIGKILL of the whole server a restart answers with the committed rows."""
    if reason := database.postgres_missing():
        pytest.skip(reason)
    with database.PostgresServer() as server:
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute("create table kept (n int)")
            connection.execute("insert into kept values (7)")
            server.kill()
        server.start()
        with psycopg.connect(server.url(), autocommit=True) as connection:
            assert connection.execute("select n from kept").fetchall() == [(7,)]


def test_each_mariadb_database_is_fresh_and_private(mysql_server: database.MysqlServer) -> None:
    """A new database of the private server is empty and keeps its data in this session's folder."""
    with mysql_server.fresh_database() as url:
        connection = pymysql.connect(
            host="127.0.0.1", port=mysql_server.port, user="root", database=url.rsplit("/", 1)[1]
        )
        try:
            with connection.cursor() as cursor:
                cursor.execute("show tables")
                assert cursor.fetchall() == ()
                cursor.execute("select @@datadir, @@innodb_flush_log_at_trx_commit")
                folder, flush = cursor.fetchone() or ("", 0)
        finally:
            connection.close()
    assert folder.rstrip("/") == str(mysql_server.data)
    assert flush == 1


def test_a_wait_names_what_did_not_come() -> None:
    """A wait returns the answer it waited for, and says what it was when its time is over."""
    event = threading.Event()
    with pytest.raises(AssertionError, match="in vain for the bell"):
        database.wait_for(event, 0.01, "the bell")
    with pytest.raises(AssertionError, match="in vain for the row"):
        database.wait_for(lambda: None, 0.02, "the row")
    event.set()
    assert database.wait_for(event, 1, "the bell")
    answers = iter([0, 0, 3])
    assert database.wait_for(lambda: next(answers), 1, "the row") == 3
