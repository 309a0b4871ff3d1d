"""Every setting with its default, its bounds and its purpose: one table for flags, environment and file."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from redrive.domain.errors import InvalidRequest
from redrive.domain.limits import ACTOR_CHARS_MAX
from redrive.egress.policy import Policy

PREFIX: Final = "REDRIVE_"
LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["auto", "console", "json"]


class Settings(Struct, frozen=True, kw_only=True):
    """The effective settings of one command."""

    storage: Annotated[str, Meta(description="sqlite:///path.db, postgresql://… or memory:")] = (
        "sqlite:///redrive.db"
    )
    host: Annotated[str, Meta(min_length=1, description="a host name or address to listen on")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535, description="a whole number, 0 (a free one) to 65535")] = 7077
    url: Annotated[
        str, Meta(description="http://host:port or https://host:port of a server, or a storage URL")
    ] = "http://127.0.0.1:7077"
    api_key: Annotated[
        Annotated[str, Meta(min_length=1)] | None, Meta(description="a key's secret, not empty")
    ] = None
    actor: Annotated[
        Annotated[str, Meta(min_length=1, max_length=ACTOR_CHARS_MAX)] | None,
        Meta(description=f"a name of at most {ACTOR_CHARS_MAX} characters"),
    ] = None
    ledger: Annotated[str | None, Meta(description="sqlite:///app.db, postgresql://… or mysql://…")] = None
    auto_create_queues: Annotated[bool, Meta(description="true or false")] = True
    allow_targets: Annotated[
        tuple[str, ...], Meta(description="hosts, addresses and networks, separated by commas")
    ] = ()
    ca_file: Annotated[str | None, Meta(description="a file of trusted certificates (PEM)")] = None
    backup_directory: Annotated[str | None, Meta(description="a folder for backups")] = None
    dead_letter_archive: Annotated[
        str | None, Meta(description="a folder for dead letters that retention removes")
    ] = None
    dead_letter_warning_seconds: Annotated[
        int, Meta(ge=0, le=2_592_000, description="whole seconds, 0 (no warning) to 2592000 (30 days)")
    ] = 259_200
    log_level: Annotated[LogLevel, Meta(description="debug, info, warning or error")] = "info"
    log_format: Annotated[LogFormat, Meta(description="auto (by terminal), console or json")] = "auto"
    rate_per_second: Annotated[
        float, Meta(gt=0, le=1e9, description="requests a second of one key, above 0")
    ] = 20_000.0
    rate_burst: Annotated[int, Meta(ge=1, le=10**9, description="a whole number, at least 1")] = 40_000
    timeout_seconds: Annotated[
        float, Meta(gt=0, le=3600, description="seconds, above 0 and at most 3600")
    ] = 30.0


SECRETS: Final = frozenset({"api_key"})
PASSWORDS: Final = frozenset({"storage", "url", "ledger"})
"""URLs that may hold a password; it is never shown."""
FROM_FILE: Final = frozenset({*SECRETS, *PASSWORDS})
"""What ``REDRIVE_<NAME>_FILE`` may hold: secrets, and URLs with a password."""
TYPES: Final[dict[str, Any]] = {field.name: field.type for field in msgspec.structs.fields(Settings)}
DEFAULTS: Final[dict[str, Any]] = {field.name: field.default for field in msgspec.structs.fields(Settings)}


def variables(name: str) -> tuple[str, ...]:
    """The environment variables that set ``name``: the value itself, or for some a file that holds it."""
    itself = f"{PREFIX}{name.upper()}"
    return (itself, f"{itself}_FILE") if name in FROM_FILE else (itself,)


class BadValue(ValueError):
    """A value that a setting cannot have; the message says what it can have."""


def read(name: str, raw: Any) -> Any:
    """The value of setting ``name`` from a text or a TOML value; raises :class:`BadValue`."""
    given = raw
    if name == "allow_targets" and isinstance(raw, str):
        given = [part.strip() for part in raw.split(",") if part.strip()]
    try:
        value = msgspec.convert(given, TYPES[name], strict=not isinstance(raw, str))
    except msgspec.ValidationError:
        raise BadValue(f"{name} must be {description(name)}, got {_tellable(name, raw)}") from None
    check = _CHECKS.get(name)
    if check is not None and value is not None and (problem := check(value)):
        raise BadValue(f"{name} must be {description(name)}; {problem}")
    return value


def description(name: str) -> str:
    """What values ``name`` can have."""
    notes = [part for part in _notes(TYPES[name]) if part.description]
    return str(notes[0].description) if notes else "a value"


def hidden(name: str, value: Any) -> str:
    """``value`` as it may be shown: secrets as ``***``, a URL without its password."""
    if value is None:
        return ""
    if name in SECRETS:
        return "***"
    if name in PASSWORDS:
        return without_password(str(value))
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(value) if isinstance(value, tuple) else str(value)


def without_password(url: str) -> str:
    """A URL with the password of its user, and passwords in its query, as ``***``."""
    shown = re.sub(r"(?i)([?&](?:password|sslpassword)=)[^&#]*", r"\1***", url)
    return re.sub(r"^([A-Za-z][\w+.-]*://[^/?#:@]*):.*@", r"\1:***@", shown)


def _tellable(name: str, raw: Any) -> str:
    return "one that is not (it is a secret, and not shown)" if name in SECRETS else repr(hidden(name, raw))


def _notes(kind: Any) -> list[Meta]:
    return [part for part in get_args(kind) if isinstance(part, Meta)]


def _scheme(*schemes: str) -> Callable[[str], str]:
    def check(url: str) -> str:
        scheme = url.partition(":")[0].lower()
        if scheme.partition("+")[0] not in schemes:
            return f"{without_password(url)!r} starts with none of {', '.join(schemes)}"
        if scheme in ("http", "https"):
            return _server_url(url)
        if scheme == "sqlite" and not re.match(r"(?i)sqlite:///[^?#]", url):
            return f"{url!r} names no file: sqlite:///relative.db or sqlite:////absolute.db"
        return ""

    return check


def _server_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        return f"{without_password(url)!r}: {error}"
    if not host:
        return f"{without_password(url)!r} has no host"
    if parts.username or parts.password:
        return "it must not carry a user or a password; the key goes into REDRIVE_API_KEY"
    return ""


def _authorities(path: str) -> str:
    """What is wrong with a file of trusted certificates."""
    import ssl  # here: few commands need it, and it costs all of them their start

    if not Path(path).is_file():
        return f"{path!r} is no file"
    try:
        ssl.create_default_context(cafile=path)
    except OSError as error:  # of which errors of the certificates are a kind
        return f"{path!r} cannot be used: {error.strerror or error}"
    return ""


def _targets(values: tuple[str, ...]) -> str:
    for value in values:
        try:
            Policy.parse(value)
        except InvalidRequest:
            return f"{value!r} is none of them"
    return ""


_STORES = ("sqlite", "postgresql", "postgres", "memory")
_CHECKS: Final[dict[str, Callable[[Any], str]]] = {
    "storage": _scheme(*_STORES),
    "url": _scheme("http", "https", *_STORES),
    "ledger": _scheme("sqlite", "postgresql", "postgres", "mysql", "mariadb"),
    "actor": lambda name: "" if name.isprintable() else "it holds control characters",
    "allow_targets": _targets,
    "ca_file": _authorities,
}
