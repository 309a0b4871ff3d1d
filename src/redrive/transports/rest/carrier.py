"""Takes one request of the contract over HTTP within a deadline, and repeats it where that is harmless."""

from __future__ import annotations

import logging
import os
import ssl
import threading
from collections.abc import Iterator, Mapping
from http.client import BadStatusLine
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import urllib3

from redrive import seams
from redrive.domain.errors import Internal, RedriveError, error_from
from redrive.transports.contract_transport import ContractTransport
from redrive.transports.port import Unreachable
from redrive.transports.rest.repeat import Misdirected, delay_seconds, harmless
from redrive.transports.routing import Parts, Route, cut, route_of

CONNECT_SECONDS = 5.0
READ_SECONDS = 15.0
DEADLINE_SECONDS = 30.0
CONNECTIONS_MAX = 32
ANSWER_BYTES_MAX = 64 * 1024 * 1024
LOG_EVERY_SECONDS = 10.0
_LOG = logging.getLogger("redrive.transports")
_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"})
_TLS_ALERT = "\x15\x03"  # how an answer begins that refuses plain text
_ONLY_TLS = "the server speaks TLS here; is it https:// instead of http://?"


class _WireError(msgspec.Struct):
    code: str = "INTERNAL"
    message: str = ""
    hint: str = ""
    details: dict[str, Any] | None = None


class _Envelope(msgspec.Struct):
    ok: bool
    data: msgspec.Raw = msgspec.Raw(b"null")
    error: _WireError | None = None


_ENVELOPE = msgspec.json.Decoder(_Envelope)


class RestCarrier:
    """A pool of connections to one server. Thread-safe. The key is never shown, logged or put in an error."""

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        *,
        deadline_seconds: float = DEADLINE_SECONDS,
        read_seconds: float = READ_SECONDS,
        connect_seconds: float = CONNECT_SECONDS,
        ca_file: str | None = None,
        actor: str | None = None,
        routes: Mapping[str, Route] | None = None,
    ) -> None:
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("base_url must be http://host[:port] or https://host[:port]")
        if parts.username or parts.password:
            raise ValueError("base_url must not carry a user or a password; pass the key as api_key")
        self.base_url = f"{parts.scheme}://{parts.netloc}"
        self._prefix = parts.path.rstrip("/").removesuffix("/v1")
        self._deadline_seconds = deadline_seconds
        self._read_seconds = read_seconds
        self._connect_seconds = connect_seconds
        self._routes = routes
        self._closed = threading.Event()
        self._said_at = -LOG_EVERY_SECONDS
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Prefer": "handling=strict",
            "User-Agent": "redrive-sdk",
        }
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        if actor:  # a header is bytes, which urllib3 takes as Latin-1
            self._headers["X-Redrive-Actor"] = actor.encode().decode("latin-1")
        settings: dict[str, Any] = {"maxsize": CONNECTIONS_MAX, "block": False}
        if parts.scheme == "https" and ca_file:
            settings["ca_certs"] = ca_file
        self._pool = urllib3.connection_from_url(self.base_url, **settings)

    def __repr__(self) -> str:
        return f"RestCarrier({self.base_url!r})"

    def call(
        self, capability_id: str, request: Mapping[str, Any], *, deadline_seconds: float | None = None
    ) -> bytes:
        """The answer's data; raises RedriveError for a refusal, Unreachable when none came in time."""
        route = route_of(capability_id, self._routes)
        fields = dict(request)
        key = fields.pop("idempotency_key", None)
        if key is None and route.records_key:  # one key for the call: a repetition gets the first answer
            key = seams.token(16)
        headers = self._headers | ({"Idempotency-Key": key} if key else {})
        parts = cut(route, fields)
        wait_seconds = float(fields.get("wait_seconds") or 0.0)
        budget = wait_seconds + (deadline_seconds or self._deadline_seconds)
        ends = seams.monotonic() + budget
        for attempt in count(1):
            left = max(0.05, ends - seams.monotonic())
            try:
                return self._once(parts, headers, min(left, self._read_seconds + wait_seconds))
            except (RedriveError, Unreachable) as failure:
                pause = delay_seconds(
                    failure, attempt=attempt, twice=harmless(route, keyed=key is not None), draw=seams.draw()
                )
                if pause is None or seams.monotonic() + pause >= ends:
                    raise
                self._say(failure, ends)
            if seams.wait(self._closed, pause):
                raise Unreachable(f"{self.base_url}: the client was closed", sent=False)
        raise AssertionError("count() ends never")

    def _say(self, failure: RedriveError | Unreachable, ends: float) -> None:
        """An outage is told when it begins, not when a call's patience ends; seldom, for calls are many."""
        now = seams.monotonic()
        if isinstance(failure, Unreachable) and now - self._said_at >= LOG_EVERY_SECONDS:
            self._said_at = now
            _LOG.warning("%s; trying again for up to %.0f s", failure, ends - now)

    def _once(self, parts: Parts, headers: dict[str, str], read_seconds: float) -> bytes:
        timeout = urllib3.Timeout(connect=min(self._connect_seconds, read_seconds), read=read_seconds)
        try:
            answer = self._pool.request(
                parts.method,
                self._prefix + parts.target,
                body=parts.body or None,
                headers=headers,
                timeout=timeout,
                retries=False,
                redirect=False,
            )
        except (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError) as error:
            raise Unreachable(f"{self.base_url}: {_reason(error)}", sent=False) from None
        except (urllib3.exceptions.HTTPError, OSError) as error:
            if wrong := _misdirected(error):
                raise Misdirected(f"{self.base_url}: {wrong}") from None
            raise Unreachable(f"{self.base_url}: {_reason(error)}", sent=True) from None
        if answer.status == 400 and b"HTTPS" in answer.data and not answer.data.startswith(b"{"):
            raise Misdirected(f"{self.base_url}: {_ONLY_TLS}")  # a proxy's page, in whatever words
        return _data_of(answer.status, answer.data, answer.headers.get("Retry-After"))

    def close(self) -> None:
        """Close idle connections and stop repeating."""
        self._closed.set()
        self._pool.close()


def _misdirected(error: BaseException) -> str:
    """What is wrong with the address or the certificate, where no repetition helps; else an empty text."""
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted: {cause.verify_message}; ca_file names other authorities"
        if isinstance(cause, ssl.SSLError) and cause.reason in _NO_TLS:
            return "the server does not speak TLS here; is it http:// instead of https://?"
        if isinstance(cause, BadStatusLine) and str(cause).startswith(_TLS_ALERT):
            return _ONLY_TLS
    return ""


def _reason(error: BaseException) -> str:
    """What the operating system says of a failed connection, else the kind of failure: no request's text."""
    for cause in _causes(error):
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
    return type(error).__name__


def _causes(error: BaseException) -> Iterator[object]:
    yield from (error.__cause__, error.__context__, *error.args, error)


def _data_of(status: int, body: bytes, retry_after: str | None) -> bytes:
    try:
        envelope = _ENVELOPE.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _foreign(status, retry_after) from None
    if envelope.ok and status == 200:
        return bytes(envelope.data)
    error = envelope.error or _WireError(message=f"HTTP status {status} without an error")
    raise error_from(
        error.code,
        error.message,
        hint=error.hint,
        details=error.details,
        retry_after=_whole_seconds(retry_after),
    )


def _foreign(status: int, retry_after: str | None) -> RedriveError | Unreachable:
    """Something between us and the server answered: a proxy's page is an outage, not a refusal."""
    if status in (429, 502, 503, 504):
        code = "RATE_LIMITED" if status == 429 else "OVERLOADED"
        message = f"HTTP status {status} from something that is not Redrive"
        return error_from(code, message, retry_after=_whole_seconds(retry_after))
    return Internal(f"HTTP status {status}, and the body is not the contract's envelope")


def _whole_seconds(text: str | None) -> int | None:
    """``Retry-After`` in seconds; a date or nonsense is as if absent."""
    return int(text) if text is not None and text.isascii() and text.isdigit() else None


def open_rest(base_url: str, api_key: str | None = None, **settings: Any) -> ContractTransport:
    """A transport to the server at ``base_url``; settings as in :class:`RestCarrier`.

    ``api_key`` is the bearer key; default: ``REDRIVE_API_KEY`` or the file named by ``REDRIVE_API_KEY_FILE``.
    """
    return ContractTransport(RestCarrier(base_url, api_key or _key_of_environment(), **settings))


def _key_of_environment() -> str | None:
    path = os.environ.get("REDRIVE_API_KEY_FILE")
    if path and not os.environ.get("REDRIVE_API_KEY"):
        return Path(path).read_text(encoding="utf-8").strip()
    return os.environ.get("REDRIVE_API_KEY")
