"""One run of one command: its settings, its connection and its output; and how a command gets them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer

from redrive.cli.failures import EXIT_CODES, no_reader
from redrive.cli.origins import Found, gather
from redrive.cli.output import Column, Output, note
from redrive.cli.settings import Settings, variables

if TYPE_CHECKING:
    from redrive.cli.client import Client

Function = TypeVar("Function", bound=Callable[..., Any])
Options = Mapping[str, Any]
"""Parameters that several commands share: name → an annotated type; each is None when not given."""


def _flag(name: str, kind: Any, help: str, *words: str, metavar: str | None = None) -> Any:  # noqa: A002
    """The option of a setting: its help ends with the variables that set it too."""
    said = f"{help.removesuffix('.')} ({' or '.join(variables(name))})."
    return Annotated[kind | None, typer.Option(*words, help=said, metavar=metavar)]


FLAGS: Final[dict[str, Any]] = {
    "url": _flag("url", str, "The server.", metavar="URL"),
    "allow_targets": _flag(
        "allow_targets", str, "Private hosts and networks that cron and push may call.", metavar="LIST"
    ),
    "ca_file": _flag("ca_file", str, "Trusted certificates, PEM.", metavar="FILE"),
    "timeout_seconds": _flag(
        "timeout_seconds", float, "Seconds to wait for the server, repeats included.", "--timeout"
    ),
    "actor": _flag("actor", str, "Who you are, beside the key's name: for the audit log.", metavar="NAME"),
    "storage": _flag("storage", str, "sqlite:///file.db, postgresql://… or memory:.", metavar="URL"),
    "host": _flag("host", str, "Where to listen."),
    "port": _flag("port", int, "Where to listen; 0: a free one."),
    "auto_create_queues": _flag(
        "auto_create_queues", bool, "Whether a publish or a consume makes the queue that it names."
    ),
    "backup_directory": _flag("backup_directory", str, "Where `db backup` may write.", metavar="FOLDER"),
    "dead_letter_archive": _flag(
        "dead_letter_archive", str, "Where dead letters go before retention removes them.", metavar="FOLDER"
    ),
    "dead_letter_warning_seconds": _flag(
        "dead_letter_warning_seconds", int, "How long before the end of dead letters it is said."
    ),
    "rate_per_second": _flag("rate_per_second", float, "Requests a second of one key."),
    "rate_burst": _flag("rate_burst", int, "Requests at once of one key."),
    "ledger": _flag("ledger", str, "The application's database.", metavar="URL"),
    "log_level": _flag("log_level", str, "debug, info, warning or error."),
    "log_format": _flag("log_format", str, "auto, console or json."),
}
"""The options of settings, as typer reads them: name → an annotated type."""
SERVER: Final = ("url", "ca_file", "timeout_seconds")
"""The flags of a command that talks to a server."""
OPERATOR: Final = (*SERVER, "actor")
"""The same, of a command whose action goes into the audit log."""

LIMIT: Final = 100
Limit = Annotated[int, typer.Option(min=0, help="At most so many; 0: all.")]
"""How many items a list shows; over as many pages as it takes."""

_API_KEY_FILE = Annotated[
    Path | None,
    typer.Option(
        help="A file that holds the key (REDRIVE_API_KEY_FILE, or REDRIVE_API_KEY for the key itself).",
        metavar="FILE",
    ),
]
_CONFIG = Annotated[
    Path | None,
    typer.Option("--config", help="Settings (REDRIVE_CONFIG; default: redrive.toml).", metavar="FILE"),
]
_JSON = Annotated[bool, typer.Option("--json", help="Data as JSON.")]
_DEBUG = Annotated[bool, typer.Option("--debug", help="Tracebacks of errors.")]


class Session:
    """What a command works with. ``close`` is called when it ends, however it ends."""

    debug = False  # of the process: whether the person asked for tracebacks
    failing_as_json = False  # of the process: whether a failure is told as JSON

    def __init__(self, flags: Mapping[str, Any], *, as_json: bool, config: Path | None) -> None:
        self.flags, self._config = flags, config
        self.out = Output(as_json=as_json)
        self._client: Client | None = None

    @functools.cached_property
    def found(self) -> Found:
        """Every setting with its origin and what is wrong, which stops nothing here."""
        return gather(self.flags, config=self._config)

    @functools.cached_property
    def settings(self) -> Settings:
        """The effective settings; raises Refusal (exit 2) when one is wrong."""
        settings = self.found.settings()
        for problem in self.found.problems:
            note(f"redrive: warning: {problem}")
        return settings

    @property
    def client(self) -> Client:
        """The server (or store) that the settings name, connected when first used."""
        if self._client is None:
            from redrive.cli.client import connected

            self._client = connected(self.settings)
        return self._client

    def show_items(
        self,
        capability_id: str,
        request: Mapping[str, Any],
        columns: Sequence[Column],
        *,
        limit: int,
        empty: str,
    ) -> None:
        """Up to ``limit`` items of a list (0: all); as JSON ``{"items": […], "next_cursor": …}``."""
        import msgspec

        items, more = self.client.items(capability_id, request, limit or None)
        if self.out.as_json:
            self.out.json({"items": items, "next_cursor": more})
            return
        self.out.table((msgspec.json.decode(item) for item in items), columns, empty=empty)
        if more is not None:
            note(f"the first {len(items)} are shown; --limit 0 shows all")

    def show_record(self, capability_id: str, request: Mapping[str, Any]) -> None:
        """What a call answers, field by field."""
        if self.out.as_json:
            self.out.json(self.client.exact(capability_id, request))
        else:
            self.out.record(self.client.call(capability_id, request))

    def do(self, capability_id: str, request: Mapping[str, Any], told: Callable[[Any], str]) -> None:
        """Call, and say in one line what was done."""
        if self.out.as_json:
            self.out.json(self.client.exact(capability_id, request))
        else:
            self.out.line(told(self.client.call(capability_id, request)))

    def close(self) -> None:
        """Give connections back."""
        if self._client is not None:
            with suppress(ConnectionError):
                self._client.close()


def command(
    app: typer.Typer,
    name: str,
    *,
    flags: tuple[str, ...] = SERVER,
    groups: Mapping[str, Options] | None = None,
    json: bool = True,
) -> Callable[[Function], Function]:
    """Register ``function(session, …)`` under ``name``.

    Its other parameters are options and arguments as typer reads them. A parameter named in ``groups`` gets a
    dict of that group's options that were given. ``flags`` are the settings that have a flag here.
    """

    def register(function: Function) -> Function:
        groups_ = groups or {}
        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        taken = {parameter.name: parameter for parameter in own if parameter.name not in groups_}
        shared = {option: kind for group in groups_.values() for option, kind in group.items()}
        added: dict[str, Any] = {flag: FLAGS[flag] for flag in flags if flag not in taken}
        if {"url", "host"} & set(flags):
            added["api_key_file"] = _API_KEY_FILE
        added["config"] = _CONFIG
        if json:
            added["as_json"] = _JSON
        added["debug"] = _DEBUG

        def run(**given: Any) -> None:
            Session.debug = bool(given.pop("debug"))
            as_json, config = bool(given.pop("as_json", False)), given.pop("config")
            Session.failing_as_json = as_json
            settings = {flag: given.pop(flag) for flag in flags if flag not in taken}
            settings |= _key_of(given.pop("api_key_file", None))
            for group, options in groups_.items():
                values = {option: given.pop(option) for option in options}
                given[group] = {option: value for option, value in values.items() if value not in (None, [])}
            session = Session(settings, as_json=as_json, config=config)
            try:
                function(session, **given)
                session.out.flush()
            except BrokenPipeError:  # typer would take it for an error
                raise SystemExit(no_reader()) from None
            finally:
                session.close()

        run.__name__, run.__doc__ = function.__name__, function.__doc__
        run.__annotations__ = {}
        run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # what typer reads
            [
                *(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in taken.values()),
                *(_parameter(option, kind) for option, kind in (shared | added).items()),
            ]
        )
        app.command(name, epilog=EXIT_CODES)(run)
        return function

    return register


def _parameter(name: str, kind: Any) -> inspect.Parameter:
    default = False if kind in (_JSON, _DEBUG) else None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)


def _key_of(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    from redrive.cli.origins import key_in_file

    return {"api_key": key_in_file(path)}
