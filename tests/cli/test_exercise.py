"""``redrive exercise`` against real servers and databases: it holds, tells what fails, leaves nothing."""

from __future__ import annotations

import json
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from redrive.ledger import Ledger
from redrive.ledger.databases import UrlDatabase
from redrive.transports.rest import open_rest
from tests.cli.program import KEY, SECONDS, Program, Running
from tests.database import wait_for

SHORT = [
    "--surge", "40", "--objective", "1", "--job-seconds", "0.005", "--lease-seconds", "1", "--wait", "20",
]  # fmt: skip
CLAIMS = 11


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An application's SQLite database with a ledger; temporary files get a folder of their own."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    url = f"sqlite:///{tmp_path / 'app.db'}"
    _install(url)
    return url


def _install(url: str) -> None:
    with closing(Ledger(url)) as ledger:
        ledger.install()


def _rows(url: str, statement: str) -> list[Any]:
    database = UrlDatabase(url)
    with database.lend() as driver, closing(driver.handle.cursor()) as cursor:
        cursor.execute(statement)
        rows = list(cursor.fetchall())
    database.close()
    return rows


def _left(url: str, server: str, folder: Path) -> list[Any]:
    """What is there of an exercise: queues, tables, ledger rows, temporary files."""
    with closing(open_rest(server, KEY)) as client:
        queues = [item["name"] for item in client.call("queue.list", {})["items"]]
    tables = "select name from sqlite_master" if url.startswith("sqlite") else (
        "select table_name from information_schema.tables where table_name like 'redrive%exercise%'"
    )  # fmt: skip
    left = [name for (name,) in _rows(url, tables) if "exercise" in str(name)]
    for table in ("redrive_jobs", "redrive_attempts", "redrive_payloads"):
        left += _rows(url, f"select job_key from {table}")
    return left + [name for name in queues if "exercise" in name] + list((folder / "temporary").iterdir())


def test_it_holds_on_sqlite(redrive: Program, url: str, app: str) -> None:
    """Exit code 0, every claim with its evidence, nothing left; the ids of queue and ledger are the same."""
    done = redrive("exercise", *SHORT, "--json", ledger=app)
    assert done.code == 0, done.out + done.err
    found = done.json
    assert (found["holds"], found["waited_in_vain"], len(found["claims"])) == (True, [], CLAIMS)
    assert all(claim["holds"] for claim in found["claims"])
    _, _, invalid = found["jobs"]
    assert {row["message_id"] for row in invalid["attempts"]} == set(found["published"]["invalid"])
    assert found["plan"]["members"] == 1
    assert found["surge"]["peak_oldest_ready_age_seconds"] > 1
    assert _left(app, url, redrive.folder) == []


@contextmanager
def _serving(folder: Path, storage: str) -> Iterator[tuple[Running, str]]:
    serve = ["serve", "--storage", storage, "--port", "0", "--json"]
    with Program(folder).start(*serve, api_key=KEY) as server:
        yield server, json.loads(server.until("stdout", '"ready"'))["url"]


def test_it_holds_on_postgres(postgres_url: str, app: str, tmp_path: Path) -> None:
    """The server's store and the application's ledger in PostgreSQL; shown as a table."""
    del app
    _install(postgres_url)
    with _serving(tmp_path, postgres_url) as (_, server):
        settings = {"url": server, "api_key": KEY, "ledger": postgres_url}
        done = Program(tmp_path, settings)("exercise", *SHORT)
        assert done.code == 0, done.out + done.err
        assert f"{CLAIMS} of {CLAIMS} claims hold" in done.out
        assert "the job sent twice" in done.out
        assert _left(postgres_url, server, tmp_path) == []


def test_it_holds_on_mysql(redrive: Program, url: str, app: str, mysql_url: str) -> None:
    """The application's ledger in MySQL or MariaDB."""
    del app
    _install(mysql_url)
    done = redrive("exercise", *SHORT, "--json", ledger=mysql_url)
    assert done.code == 0, done.out + done.err
    assert _left(mysql_url, url, redrive.folder) == []


def test_without_a_ledger_it_says_what_happened_twice(redrive: Program, url: str, app: str) -> None:
    """The control: consumers without a ledger apply a job twice; exit code 1, and nothing is left."""
    done = redrive("exercise", *SHORT, "--unsafe", "no-ledger", "--json", ledger=app)
    failed = {claim["claim"]: claim["shown"] for claim in done.json["claims"] if not claim["holds"]}
    assert (done.code, done.json["holds"]) == (1, False)
    assert "2 effects" in failed["the job sent twice"]
    assert "2 effects" in failed["the valid job"]
    assert "left behind" not in failed
    assert _left(app, url, redrive.folder) == []


def _consumers(program: Running) -> list[psutil.Process]:
    family = psutil.Process(program.process.pid).children(recursive=True)
    return [child for child in family if "redrive.exercise.consumer" in " ".join(child.cmdline())]


def _gone(processes: list[psutil.Process]) -> bool:
    return not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in processes)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", ["published", "consumers restart"])
def test_interrupted_it_leaves_nothing(
    redrive: Program, url: str, app: str, moment: str, number: signal.Signals
) -> None:
    """Ctrl-C and SIGTERM, with a consumer at work or not: exit code 130, no process, table, row or queue."""
    with redrive.start("exercise", *SHORT, ledger=app) as exercise:
        exercise.until("stderr", moment)
        consumers = wait_for(lambda: _consumers(exercise), SECONDS, "a consumer")
        done = exercise.stop(number)
    assert done.code == 130, done.err
    wait_for(lambda: _gone(consumers), SECONDS, "the consumers' end")
    assert _left(app, url, redrive.folder) == []


def test_killed_it_takes_its_consumers_with_it(app: str, tmp_path: Path) -> None:
    """kill -9 of the command leaves its queue and tables, but nothing that goes on working."""
    with (
        _serving(tmp_path, "sqlite:///store.db") as (_, url),
        Program(tmp_path, {"url": url, "api_key": KEY, "ledger": app}).start("exercise", *SHORT) as exercise,
    ):
        exercise.until("stderr", "consumers restart")
        consumers = wait_for(lambda: _consumers(exercise), SECONDS, "a consumer")
        exercise.process.kill()
        wait_for(lambda: _gone(consumers), SECONDS, "the consumers' end")


def test_a_server_that_dies_in_the_middle(app: str, tmp_path: Path) -> None:
    """Exit code 3; the database is clean, and what could not be removed is named."""
    with _serving(tmp_path, "sqlite:///store.db") as (server, url):
        program = Program(tmp_path, {"url": url, "api_key": KEY, "ledger": app, "timeout_seconds": "1"})
        with program.start("exercise", *SHORT) as exercise:
            exercise.until("stderr", "is killed after its first commit")
            server.process.kill()
            said = exercise.until("stderr", "left behind")
            exercise.process.wait(SECONDS)
            assert exercise.process.returncode == 3
    assert "queue redrive-exercise-" in said
    with closing(sqlite3.connect(tmp_path / "app.db")) as game:
        dump = "\n".join(game.iterdump())
    assert "exercise" not in dump


@pytest.mark.parametrize(
    ("words", "settings", "code", "said"),
    [
        (["--surge", "0"], {}, 2, "surge must be 1 to 10000, got 0"),
        ([], {"ledger": ""}, 2, "the application's database is not named"),
        ([], {"ledger": "sqlite:///absent.db"}, 2, "no such file"),
        ([], {"ledger": "sqlite:///bare.db"}, 2, "redrive ledger install --ledger sqlite:///bare.db"),
        ([], {"url": "memory:"}, 2, "the exercise needs a server"),
        ([], {"url": "http://127.0.0.1:1"}, 3, "cannot reach"),
        ([], {"api_key": "wrong-key-0123456789-0123456789"}, 3, "REDRIVE_API_KEY"),
        ([], {"ledger": "postgresql://u:hidden-word@127.0.0.1:1/x"}, 3, "cannot be reached"),
    ],
)
def test_what_it_refuses(
    redrive: Program, url: str, app: str, words: list[str], settings: dict[str, str], code: int, said: str
) -> None:
    """One sentence, no traceback, nothing made."""
    sqlite3.connect(redrive.folder / "bare.db").close()
    done = redrive.inside("exercise", *words, **({"ledger": app} | settings))
    assert (done.code, said in done.err, "Traceback" in done.err) == (code, True, False), done.err
    assert "hidden-word" not in done.err
    assert _left(app, url, redrive.folder) == []


def test_a_key_that_may_not_is_refused_before_anything_is_made(
    redrive: Program, url: str, app: str, client: Any
) -> None:
    """A consumer's key cannot make the queue: exit code 3, nothing left, nothing named as left."""
    made = client.call("account.keys.create", {"name": "c", "scopes": ["consume", "publish"]})
    done = redrive.inside("exercise", *SHORT, ledger=app, api_key=made["secret"])
    assert (done.code, "left behind" in done.err) == (3, False), done.err
    assert _left(app, url, redrive.folder) == []
