"""PostgreSQL fails over to its synchronous standby under load: the primary is killed, the standby promoted.

The node's URL names both and asks for the one that can be written. After each failover the new primary gets a
standby of its own, and the next one follows.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.database import PostgresServer, postgres_missing, wait_for
from tests.proof.nursery import ForkedServer, ForkedWorker, Nursery
from tests.proof.runs import Found, Proof
from tests.proof.server_kills import judge
from tests.system.application import Application, dead, left
from tests.system.load import Load
from tests.system.servers import SECONDS

FAILOVERS = 2  # in a round
WORKERS = 3
PATIENT, HASTY, PACE_SECONDS = 4, 2, 0.03
NOT_COPIED = ("postmaster.pid", "postmaster.opts", "postgresql.auto.conf")
SYNCHRONOUS = "select 1 from pg_stat_replication where sync_state = 'sync'"
ATTACHED = "select 1 from pg_stat_replication where state = 'streaming'"
FOLLOWING = "select 1 from pg_stat_wal_receiver"


class Standby(PostgresServer):
    """A hot standby: a copy of ``primary``, taken while that works, which follows it."""

    def __init__(self, primary: PostgresServer) -> None:
        super().__init__()
        self._primary = primary

    def _prepare(self) -> None:
        import psycopg

        self._bin = self._primary._bin
        with psycopg.connect(self._primary.url(), autocommit=True) as connection:
            connection.execute("select pg_backup_start('standby', true)")
            shutil.copytree(self._primary.data, self.data, copy_function=_copied, dirs_exist_ok=True)
            [(label,)] = connection.execute("select labelfile from pg_backup_stop(false)").fetchall()
        (self.data / "backup_label").write_text(label)
        (self.data / "standby.signal").touch()
        follow = f"host=127.0.0.1 port={self._primary.port} user=postgres application_name=standby"
        (self.data / "postgresql.auto.conf").write_text(f"primary_conninfo = '{follow}'\n")
        self.data.chmod(0o700)
        if self._user is not None:
            for path in (self.data, *self.data.rglob("*")):
                os.chown(path, self._user.pw_uid, self._user.pw_gid)

    def promote(self) -> None:
        """Let it be the primary; returns when it can be written."""
        self._execute(["select pg_promote(false)"])
        wait_for(lambda: rows(self, "select 1 where not pg_is_in_recovery()"), SECONDS, "the promotion")


def _copied(source: str, target: str) -> None:
    if Path(source).name not in NOT_COPIED:
        with suppress(FileNotFoundError):  # gone meanwhile: the log brings what matters
            shutil.copyfile(source, target)


def rows(server: PostgresServer, query: str) -> list[tuple[Any, ...]]:
    """What a server answers, in its own database."""
    import psycopg

    with psycopg.connect(server.url(), autocommit=True) as connection:
        return connection.execute(query.encode()).fetchall()


def followed(primary: PostgresServer, stack: ExitStack, *, synchronous: bool) -> Standby:
    """A standby of ``primary``; if ``synchronous``, no commit is answered before it is there, too."""
    standby: Standby = stack.enter_context(Standby(primary))
    wait_for(lambda: rows(primary, ATTACHED), SECONDS, "the standby to follow")
    if synchronous:
        execute(primary, "alter system set synchronous_standby_names = '*'", "select pg_reload_conf()")
        wait_for(lambda: rows(primary, SYNCHRONOUS), SECONDS, "the standby to be synchronous")
    return standby


def execute(server: PostgresServer, *statements: str) -> None:
    """Run statements, each by itself."""
    import psycopg

    with psycopg.connect(server.url(), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


@dataclass
class Round:
    """What a round has."""

    stack: ExitStack
    nursery: Nursery
    application: Application
    folder: Path
    found: Found

    def workers(self, server: ForkedServer, number: int) -> None:
        """So many, until the round ends."""
        for name in range(number):
            folder = self.folder / f"{name}"
            self.stack.enter_context(ForkedWorker(self.nursery, server, self.application, folder))

    def safe(self) -> None:
        """Under load, the standby is promoted, and then the standby of that."""
        primary: PostgresServer = self.stack.enter_context(PostgresServer())
        execute(primary, "create database queue")
        standby = followed(primary, self.stack, synchronous=True)
        server = self.stack.enter_context(ForkedServer(self.nursery, either(primary, standby)))
        load = self.stack.enter_context(Load(server.url, patient=PATIENT, hasty=HASTY, pace=PACE_SECONDS))
        self.workers(server, WORKERS)
        for failover in range(FAILOVERS):
            if failover:
                primary, standby = standby, followed(standby, self.stack, synchronous=True)
                server.kill()  # one of the two servers in its URL is another now
                server.storage = either(primary, standby)
                server.start()
            load.goes_on(self.application, f"before failover {failover}")
            self.fail_over(primary, standby)
            load.goes_on(self.application, f"after failover {failover}")
        with closing(server.client()) as client:
            load.finish(client, self.application)
            self.found.expect(dead(client) == {}, "a failover spent a job's budget")
        judge(self.found, load, self.application.effects())

    def behind(self) -> None:
        """The primary answers before its standby knows, and dies while that is behind."""
        primary: PostgresServer = self.stack.enter_context(PostgresServer())
        execute(primary, "create database queue")
        standby = followed(primary, self.stack, synchronous=False)
        server = self.stack.enter_context(ForkedServer(self.nursery, either(primary, standby)))
        with Load(server.url) as load:
            fall_behind(standby, load)
            load.stop()
            self.fail_over(primary, standby)
        self.workers(server, 1)
        with closing(server.client()) as client:
            wait_for(lambda: left(client) == 0, SECONDS, "what is left to be done")
        judge(self.found, load, self.application.effects())

    def fail_over(self, primary: PostgresServer, standby: Standby) -> None:
        """The one is gone, the other is in its place."""
        primary.kill()
        standby.promote()
        self.found.count("failovers")


def failovers(seed: int, *, synchronous: bool = True) -> Found:
    """One round."""
    found = Found()
    with tempfile.TemporaryDirectory(prefix="redrive-proof-") as name, ExitStack() as stack:
        folder = Path(name)
        application = Application(f"sqlite:///{folder / 'application.db'}")
        one = Round(stack, stack.enter_context(Nursery()), application, folder, found)
        (one.safe if synchronous else one.behind)()
    return found


def either(one: PostgresServer, other: PostgresServer) -> str:
    """The URL of whichever can be written."""
    hosts = f"127.0.0.1:{one.port},127.0.0.1:{other.port}"
    return f"postgresql://postgres@{hosts}/queue?target_session_attrs=read-write"


def fall_behind(standby: Standby, load: Load) -> None:
    """Publishes go on while the standby hears of nothing."""
    wait_for(lambda: len(load.acknowledged) >= 60, SECONDS, "publishes")
    execute(standby, "alter system set primary_conninfo = ''", "select pg_reload_conf()")
    wait_for(lambda: not rows(standby, FOLLOWING), SECONDS, "the standby to be cut off")
    told = len(load.acknowledged) + 60
    wait_for(lambda: len(load.acknowledged) >= told, SECONDS, "publishes that the standby does not hear of")


PROOFS = (
    Proof(
        "failover",
        "A failover to a synchronous standby loses nothing acknowledged; nodes and workers go on.",
        "failovers",
        200,
        failovers,
        {"synchronous replication": lambda seed: failovers(seed, synchronous=False)},
        missing=postgres_missing,
    ),
)
