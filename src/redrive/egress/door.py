"""The door: a target is read strictly, its addresses are looked up once and judged, and one of these very
addresses is called, by its name and its certificate, without proxies, redirects or decompression.
"""

from __future__ import annotations

import http.client
import re
import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Final

from redrive import seams
from redrive.domain.errors import InvalidRequest
from redrive.egress.addresses import Address
from redrive.egress.line import Line, TooMuch, left
from redrive.egress.names import Resolver, resolve
from redrive.egress.policy import Policy
from redrive.egress.targets import Target, read_target

SCHEMES: Final = ("https", "http")
OUTPUT_BYTES: Final = 4_096
_HEAD_BYTES_MAX: Final = 64 * 1024  # of an answer, before its body
_CHECK_SECONDS: Final = 5.0  # for the look-up of a name that is registered
_AGENT: Final = "Redrive"
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # a token: `Host ` would be read as another Host
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
# What is between two ends of a connection, not the user's to say: with two lengths a request is two requests.
_OURS: Final = frozenset(
    {"Transfer-Encoding", "Te", "Trailer", "Upgrade", "Keep-Alive", "Expect", "Proxy-Connection"}
)


class TargetTimedOut(Exception):
    """The target did not answer in time; it may have done what it was asked for."""


class TargetUnreachable(Exception):
    """No answer: no address, no connection, no valid certificate, or an answer that is not HTTP."""


@dataclass(frozen=True)
class Answer:
    """``headers`` by their lower-case names (the last of equal ones); ``output``: the first bytes of the
    body; ``truncated`` when it has more, or was cut; ``seconds`` from the look-up of the name to the end.
    """

    status: int
    headers: Mapping[str, str]
    output: bytes
    truncated: bool
    seconds: float


class Door:
    """Calls targets within ``policy``. Safe to use by many threads; keeps no connection.

    ``ca_file``: a PEM file of authorities trusted beside the system's (OSError when it cannot be read).
    """

    def __init__(self, policy: Policy, *, ca_file: str | None = None, resolver: Resolver = resolve) -> None:
        self._policy = policy
        self._resolver = resolver
        self._tls = ssl.create_default_context()
        self._tls.minimum_version = ssl.TLSVersion.TLSv1_2
        if ca_file is not None:
            self._tls.load_verify_locations(ca_file)

    def check(self, url: str, *, schemes: Sequence[str] = SCHEMES, field: str = "url") -> None:
        """Whether ``url`` may be registered: no connection is made, a name without an address passes.

        Raises InvalidRequest (malformed, or a scheme that is not in ``schemes``) or TargetRefused.
        """
        target = read_target(url, field)
        try:
            addresses = self._addresses(target, _CHECK_SECONDS)
        except OSError:  # and TimeoutError: it is judged when it is called
            addresses = ()
        self._policy.admit(target, addresses, schemes, field)

    def post(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        timeout_seconds: float,
        output_bytes: int = OUTPUT_BYTES,
        schemes: Sequence[str] = SCHEMES,
    ) -> Answer:
        """POST ``body``; whatever the status, it is an answer. All of it ends within ``timeout_seconds``.

        Raises InvalidRequest or TargetRefused (not called), TargetTimedOut, TargetUnreachable.
        """
        began = seams.monotonic()
        ends = began + timeout_seconds
        target = read_target(url)
        try:
            addresses = self._addresses(target, timeout_seconds)
            if not addresses:
                raise TargetUnreachable(f"{target.host} has no address")
            self._policy.admit(target, addresses, schemes)
            with self._connect(target, addresses, ends) as connected:
                line = Line(connected, ends, _HEAD_BYTES_MAX + output_bytes)
                return _exchange(line, target, body, headers, output_bytes, began)
        except TimeoutError:
            raise TargetTimedOut(f"{target.shown} did not answer within {timeout_seconds:g} s") from None
        except TooMuch:
            raise TargetUnreachable(
                f"{target.shown} sent more than {_HEAD_BYTES_MAX} bytes before its answer's body"
            ) from None
        except ssl.SSLError as error:
            raise TargetUnreachable(f"no secure connection to {target.shown}: {_reason(error)}") from None
        except http.client.HTTPException as error:
            raise TargetUnreachable(
                f"{target.shown} did not answer in HTTP: {type(error).__name__}"
            ) from None
        except OSError as error:
            raise TargetUnreachable(f"{target.shown}: {error.strerror or type(error).__name__}") from None

    def _addresses(self, target: Target, seconds: float) -> Sequence[Address]:
        return (target.address,) if target.address is not None else self._resolver(target.host, seconds)

    def _connect(self, target: Target, addresses: Sequence[Address], ends: float) -> socket.socket:
        """A connection to the first of the addresses that takes it; TLS is by the target's name."""
        failure: OSError = OSError("no address")
        for number, address in enumerate(addresses):
            seconds = left(ends)
            family = socket.AF_INET6 if isinstance(address, IPv6Address) else socket.AF_INET
            line = socket.socket(family, socket.SOCK_STREAM)
            try:
                line.settimeout(
                    seconds / (len(addresses) - number)
                )  # a silent one leaves time for the others
                line.connect((str(address), target.port))
                line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if target.scheme == "http":
                    return line
                line.settimeout(left(ends))
                return self._tls.wrap_socket(line, server_hostname=target.host.rstrip("."))
            except OSError as error:
                line.close()
                failure = error
                if isinstance(error, ssl.SSLError):
                    break  # the target's own answer: another of its addresses gives no better one
            except BaseException:
                line.close()
                raise
        raise failure


def _exchange(
    line: Line, target: Target, body: bytes, headers: Mapping[str, str], output_bytes: int, began: float
) -> Answer:
    connection = http.client.HTTPConnection("unused", target.port)
    connection.sock = line  # connected already, to an address that was judged
    connection.auto_open = 0
    connection.putrequest("POST", target.path, skip_host=True, skip_accept_encoding=True)
    fixed = {
        "Host": target.authority,
        "User-Agent": _AGENT,
        "Accept-Encoding": "identity",
        "Connection": "close",
        "Content-Length": str(len(body)),
    }
    ours = fixed.keys() | _OURS
    given = {name: value for name, value in headers.items() if name.title() not in ours}
    for name, value in given.items():
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise InvalidRequest(f"headers has {name[:80]!r}, which HTTP cannot carry")
    for name, value in (fixed | given).items():
        connection.putheader(name, value)
    connection.endheaders(body)
    answer = connection.getresponse()
    output, truncated = _first(answer, output_bytes)
    return Answer(
        answer.status,
        {name.lower(): value for name, value in answer.getheaders()},
        output,
        truncated,
        seams.monotonic() - began,
    )


def _first(answer: http.client.HTTPResponse, wanted: int) -> tuple[bytes, bool]:
    """The first bytes of the body, and whether there are more. The status counts, however the body ends."""
    output = b""
    try:
        while len(output) <= wanted:
            piece = answer.read1(wanted + 1 - len(output))
            if not piece:  # the end, or less than was announced
                return output[:wanted], len(output) > wanted or bool(answer.length)
            output += piece
    except (OSError, TooMuch, http.client.HTTPException):
        return output[:wanted], True
    return output[:wanted], True


def _reason(error: ssl.SSLError) -> str:
    """Why, without the places in the library's source."""
    return getattr(error, "verify_message", "") or error.reason or type(error).__name__
