"""``redrive serve``: the first key, the address, the signals, and what it refuses."""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path

import pytest

from tests.cli.program import KEY, Program

FRESH = ["serve", "--storage", "sqlite:///fresh.db", "--port", "0"]


def test_a_fresh_store_prints_an_admin_key_once(alone: Program) -> None:
    """The key works, the second start prints none, and no log has it."""
    with alone.start(*FRESH) as server:
        secret = server.until("stdout", "export REDRIVE_API_KEY=").strip().partition("=")[2]
        url = server.until("stderr", "serving at").split()[3]
        assert alone("queue", "create", "made", url=url, api_key=secret).code == 0
        assert alone("queue", "create", "made", url=url, api_key="x" * 20).code == 3
        done = server.stop()
    assert done.code == 0
    assert secret not in done.err
    with alone.start(*FRESH, "--json") as again:
        assert json.loads(again.until("stdout", "event"))["event"] == "ready"
        assert again.stop(signal.SIGINT).code == 0


def test_json_lines_tell_key_and_address(alone: Program) -> None:
    """For a program that starts a server: the key first, then that it is ready."""
    with alone.start("serve", "--storage", "memory:", "--port", "0", "--json") as server:
        key = json.loads(server.until("stdout", "event"))
        ready = json.loads(server.until("stdout", "event"))
    assert (key["event"], key["scopes"], key["secret"][:4]) == ("first_key", ["admin"], "rdk_")
    assert ready["event"] == "ready"
    assert ready["url"].startswith("http://127.0.0.1:")


def test_an_address_that_is_taken_costs_no_first_key(alone: Program) -> None:
    """Exit code 3 and the address; the store has still no key, so that the next start prints one."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = alone("serve", "--storage", "sqlite:///fresh.db", "--port", port)
    assert (done.code, done.out) == (3, "")
    assert f"cannot listen on 127.0.0.1:{port}" in done.err
    with alone.start(*FRESH) as server:
        assert server.until("stdout", "rdk_")


@pytest.mark.parametrize(
    ("words", "settings", "code", "said"),
    [
        (["--storage", "mysql://x"], {}, 2, "starts with none of sqlite, postgresql"),
        (["--storage", "sqlite:///no/such/folder/x.db"], {}, 2, "No such file or directory"),
        (["--storage", "sqlite:///"], {}, 2, "names no file"),
        (["--storage", "sqlite:///not.db"], {}, 3, "not a database"),
        (["--storage", "postgresql://u:hidden-word@127.0.0.1:1/x"], {}, 3, "Connection refused"),
        (["--storage", "memory:", "--port", "70000"], {}, 2, "flag --port: port must be a whole number"),
        (["--storage", "memory:"], {"port": "many"}, 2, "environment REDRIVE_PORT: port must be"),
        (["--storage", "memory:"], {"api_key": "short"}, 2, "at least 16 characters, has 5"),
        (["--storage", "memory:", "--allow-targets", "hooks.local,http://x"], {}, 2, "'http://x' is none of"),
        (["--storage", "memory:", "--ca-file", "no.pem"], {}, 2, "'no.pem' is no file"),
        (["--storage", "memory:"], {"ca_file": "not.db"}, 2, "'not.db' cannot be used"),
        (["--storage", "memory:", "--host", "no.such.host.invalid"], {}, 3, "cannot listen on no.such.host"),
    ],
)
def test_what_cannot_be_served_is_said_in_one_sentence(
    alone: Program, words: list[str], settings: dict[str, str], code: int, said: str
) -> None:
    """The exit code, the reason, no traceback and no password."""
    (alone.folder / "not.db").write_text("this is no database " * 100)
    done = alone("serve", *words, **settings)
    assert done.code == code, done.err
    assert said in done.err
    assert "Traceback" not in done.err
    assert "hidden-word" not in done.err


def test_a_store_has_one_owner(alone: Program, tmp_path: Path) -> None:
    """A second server, or a look into the file, is refused with exit code 3 and the owner's process id."""
    with alone.start(*FRESH, api_key=KEY) as server:
        server.until("stderr", "serving at")
        for words in (FRESH, ["db", "check", "--storage", "sqlite:///fresh.db"]):
            done = alone(*words, api_key=KEY)
            assert (done.code, str(server.process.pid) in done.err) == (3, True), done.err


def test_a_postgresql_url_may_name_its_schema(alone: Program, postgres_url: str) -> None:
    """Two stores in one database, by libpq's search_path, do not see each other."""
    for schema in ("one", "two"):
        url = f"{postgres_url}?options=-csearch_path%3D{schema}"
        assert alone("queue", "create", f"of-{schema}", "--url", url).code == 0
        names = [item["name"] for item in alone("queue", "list", "--json", "--url", url).json["items"]]
        assert f"of-{schema}" in names
        assert not any(name.startswith("of-two") for name in names if schema == "one")
        assert not any(name.startswith("of-one") for name in names if schema == "two")
