"""What went wrong, in the words of a person, and the exit code that says so to a script."""

from __future__ import annotations

import json
import os
import sys
import traceback
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from redrive.cli.text import plain
from redrive.domain.errors import RedriveError

DONE: Final = 0
NO: Final = 1
USAGE: Final = 2
OUT_OF_REACH: Final = 3
BUG: Final = 70
NO_READER: Final = 141

EXIT_CODES: Final = (
    "Exit codes: 0 done; 1 the answer is no; 2 wrong usage or settings; 3 cannot reach or not allowed; "
    "70 a bug; 130 interrupted."
)

_REPORT: Final = (
    "This is a bug in Redrive; please report it with the command and, from --debug, the traceback."
)
_USAGE_STATUS: Final = frozenset({400, 405, 413, 422, 431})
_OUT_OF_REACH_STATUS: Final = frozenset({401, 403, 408, 429, 503, 507})
_STRANGER: Final = "the body is not the contract's envelope"  # how the client tells of another's answer
_DRIVERS: Final = frozenset({"apsw", "psycopg", "pymysql", "sqlite3"})
_EXTRAS: Final = {
    "apsw": "server", "cronsim": "server", "httptools": "server", "jinja2": "server",
    "prometheus_client": "server", "starlette": "server", "uvicorn": "server", "uvloop": "server",
    "psycopg": "postgres", "pymysql": "mysql", "sqlalchemy": "sqlalchemy", "rich": "cli", "typer": "cli",
}  # fmt: skip


class Refusal(Exception):
    """A command ends here: ``exit_code``, one sentence, and what to do next."""

    def __init__(self, exit_code: int, message: str, *, hint: str = "", code: str = "") -> None:
        super().__init__(message)
        self.exit_code, self.message, self.hint, self.code = exit_code, message, hint, code


@dataclass(frozen=True, slots=True)
class Failure:
    """How an exception is shown."""

    exit_code: int
    message: str
    hint: str = ""
    code: str = ""


def failure_of(error: BaseException) -> Failure:
    """What ``error`` means for the person at the terminal; anything unknown is a bug."""
    if isinstance(error, Refusal):
        return Failure(error.exit_code, error.message, error.hint, error.code)
    if isinstance(error, RedriveError):
        return _refused(error)
    if isinstance(error, ConnectionError):
        hint = "Is the server running, and is --url (REDRIVE_URL) right?"
        return Failure(OUT_OF_REACH, f"cannot reach the server: {error}", hint, "UNREACHABLE")
    if isinstance(error, ModuleNotFoundError):
        name = (error.name or "").partition(".")[0]
        if name in _EXTRAS:
            return Failure(
                USAGE, f"this command needs the package {name}", f'pip install "redrive[{_EXTRAS[name]}]"'
            )
    if _lost_store(error):
        hint = "Is the database's URL right, and is it up?"
        if "the database file failed" in str(error):
            hint = "Is the path right, and is the file an SQLite database that this user may write?"
        return Failure(OUT_OF_REACH, str(error), hint, "STORAGE")
    return Failure(BUG, f"{type(error).__name__}: {error}", _REPORT, "BUG")


def say(failure: Failure, *, as_json: bool = False) -> None:
    """Print it to stderr: code, message, hint; ``as_json``: one line ``{"error": {…}}``."""
    if as_json:
        error = {"code": failure.code, "message": failure.message, "hint": failure.hint}
        print(json.dumps({"error": {**error, "exit_code": failure.exit_code}}), file=sys.stderr)
        return
    code = f"{failure.code}: " if failure.code else ""
    message = failure.message.expandtabs(2)  # libpq indents its second line
    print(f"redrive: {code}{plain(message)}", file=sys.stderr)
    if failure.hint:
        print(f"  hint: {plain(failure.hint)}", file=sys.stderr)


def no_reader() -> int:
    """The reader of stdout went away: nothing more is written there, not even at the interpreter's end."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return NO_READER


def say_traceback(error: BaseException) -> None:
    """For ``--debug``: where it came from."""
    traceback.print_exception(error, file=sys.stderr)


def _refused(error: RedriveError) -> Failure:
    code, status = type(error).code, type(error).http_status
    hint = error.hint
    if code in ("LEDGER_RETRY", "LEDGER_FILE") or status in _OUT_OF_REACH_STATUS:
        exit_code = OUT_OF_REACH
    elif code == "INTERNAL" and error.message.endswith(_STRANGER):
        exit_code, hint = OUT_OF_REACH, "Something else than Redrive answers at --url (REDRIVE_URL)."
    elif status in _USAGE_STATUS:
        exit_code = USAGE
    elif code == "INTERNAL":
        exit_code = BUG
        hint = hint or f"The server's log says more. {_REPORT}"
    else:
        exit_code = NO
    if error.retry_after:
        hint = f"{hint} Try again in {error.retry_after} s.".strip()
    if status == 401:  # the server's hint speaks of headers
        hint = "REDRIVE_API_KEY (or --api-key-file) names the key."
    return Failure(exit_code, error.message, hint, code)


def _lost_store(error: BaseException) -> bool:
    module = type(error).__module__
    if module.partition(".")[0] in _DRIVERS:
        return True
    if not module.startswith("redrive.storage"):
        return False
    from redrive.storage.port import Damaged, Lost  # only when the store was opened by this process anyway

    return isinstance(error, Lost | Damaged)
