"""``redrive serve``: the server over one store, until SIGTERM or SIGINT."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import typer

from redrive.cli.failures import OUT_OF_REACH, USAGE, Refusal
from redrive.cli.output import note
from redrive.cli.session import Session, command

FLAGS: Final = (
    "storage", "host", "port", "auto_create_queues", "backup_directory", "dead_letter_archive",
    "dead_letter_warning_seconds", "allow_targets", "ca_file", "rate_per_second",
    "rate_burst", "log_level", "log_format",
)  # fmt: skip


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    command(app, "serve", flags=FLAGS)(serve)


def serve(session: Session) -> None:
    """Serve the REST contract over one store until SIGTERM or SIGINT.

    On a store without any key it prints an admin key once, unless REDRIVE_API_KEY chooses one. With --json
    the key and the address are JSON lines.
    """
    from redrive.cli import logs
    from redrive.cli.stores import open_store
    from redrive.service import ServiceSettings

    settings = session.settings
    _long_enough(settings.api_key)
    logs.configure(settings)
    kept = ServiceSettings(
        auto_create_queues=settings.auto_create_queues,
        backup_directory=Path(settings.backup_directory) if settings.backup_directory else None,
        api_key=settings.api_key,
        dead_letter_archive=Path(settings.dead_letter_archive) if settings.dead_letter_archive else None,
        dead_letter_warning_seconds=settings.dead_letter_warning_seconds,
        allow_targets=settings.allow_targets,
        ca_file=settings.ca_file,
    )
    service = open_store(settings.storage, kept)
    with contextlib.closing(service):
        server = _bound(service, settings)
        _say_key(session, service.start(first_key=True))
        server.run(_ready(session, server))


def _long_enough(api_key: str | None) -> None:
    from redrive.domain.limits import API_KEY_CHARS_MIN

    if api_key is not None and len(api_key) < API_KEY_CHARS_MIN:
        raise Refusal(
            USAGE,
            f"REDRIVE_API_KEY needs at least {API_KEY_CHARS_MIN} characters, has {len(api_key)}",
            hint="Leave it unset, and the first start prints a key.",
            code="SETTINGS",
        )


def _bound(service: Any, settings: Any) -> Any:
    """The server with its socket: an address that is taken is told before a first key is made and lost."""
    from redrive.api.server import Server
    from redrive.api.settings import ApiSettings

    edge = ApiSettings(rate_per_second=settings.rate_per_second, rate_burst=settings.rate_burst)
    try:
        return Server(service, settings.host, settings.port, edge)
    except OSError as error:
        raise Refusal(
            OUT_OF_REACH,
            f"cannot listen on {settings.host}:{settings.port}: {error.strerror or error}",
            hint="Choose another with --host and --port (0: a free one).",
            code="ADDRESS",
        ) from None


def _say_key(session: Session, secret: str | None) -> None:
    if secret is None:
        return
    if session.out.as_json:
        session.out.json({"event": "first_key", "scopes": ["admin"], "secret": secret})
    else:
        session.out.line("This store had no key. Its first one, an admin's, is shown only now:")
        session.out.line(f"  export REDRIVE_API_KEY={secret}")
    session.out.flush()


def _ready(session: Session, server: Any) -> Callable[[], None]:
    def ready() -> None:
        if session.out.as_json:
            session.out.json({"event": "ready", "url": server.url})
            session.out.flush()
        else:
            note(f"redrive: serving at {server.url} ({server.url}/docs); stop it with Ctrl-C")

    return ready
