"""The URLs that may be called, read strictly: what two programs could read in two ways is refused.

No user, no backslash, no control character, no fragment, ASCII only (names in their ``xn--`` form), an IPv4
address only as four decimal numbers, an IPv6 address only in brackets without a zone. Nothing is repaired.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final

from redrive.domain.errors import InvalidRequest
from redrive.egress.addresses import Address

URL_CHARS_MAX: Final = 2_000
_PORTS: Final = {"http": 80, "https": 443}
_URL: Final = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?]*)(?P<path>[^?]*)(?P<query>\?.*)?"
)
_AUTHORITY: Final = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]*\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?")
_LABEL: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_ODD: Final = re.compile(r"[^\x21-\x7e]|[\\#\"<>^`{|}]")
_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class Target:
    """A URL in parts. ``host`` in lower case, without brackets; ``address`` when it is one; ``path`` with the
    query, at least ``/``.
    """

    scheme: str
    host: str
    port: int
    path: str
    address: Address | None = None

    @property
    def shown(self) -> str:
        """Scheme, host and port for errors and logs: a path or a query may carry a secret."""
        return f"{self.scheme}://{self.authority}"

    @property
    def authority(self) -> str:
        """The ``Host`` header: without the port that the scheme has by itself."""
        host = f"[{self.host}]" if isinstance(self.address, IPv6Address) else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def read_target(url: str, field: str = "url") -> Target:
    """Read ``url``. Raises InvalidRequest that names ``field`` and what is wrong, never the URL itself."""
    if not url or len(url) > URL_CHARS_MAX:
        raise InvalidRequest(f"{field} must have 1 to {URL_CHARS_MAX} characters, not {len(url)}")
    odd = _ODD.search(url)
    if odd is not None:
        raise InvalidRequest(
            f"{field} has the character {odd.group()!r} at {odd.start()}, which a URL cannot have",
            hint="Encode it; write an international name in its xn-- form; leave out the part behind #.",
        )
    if _PERCENT.search(url):
        raise InvalidRequest(f"{field} has a % that no two hexadecimal digits follow")
    parts = _URL.fullmatch(url)
    if parts is None:
        raise InvalidRequest(f"{field} must be an absolute URL: https://host/path")
    scheme = parts["scheme"].lower()
    if scheme not in _PORTS:
        raise InvalidRequest(f"{field} must begin with https:// or http://, not {scheme}://")
    if "@" in parts["authority"]:
        raise InvalidRequest(
            f"{field} must not carry a user or a password",
            hint="Requests are signed: let the target check the signature, or send a header.",
        )
    authority = _AUTHORITY.fullmatch(parts["authority"])
    if authority is None:
        raise InvalidRequest(f"{field} must have a host name or an address behind ://")
    port = int(authority["port"] or _PORTS[scheme])
    if not 1 <= port <= 65_535:
        raise InvalidRequest(f"{field} has the port {port}; ports are 1 to 65535")
    host, address = _read_host(authority["host"].lower(), field)
    return Target(scheme, host, port, (parts["path"] or "/") + (parts["query"] or ""), address)


def _read_host(text: str, field: str) -> tuple[str, Address | None]:
    try:
        if text.startswith("["):
            return text[1:-1], IPv6Address(text[1:-1])
        labels = text.removesuffix(".").split(".")
        if _NUMBER.fullmatch(labels[-1]):  # programs read such a name as an address, each in its own way
            return text, IPv4Address(text)
    except AddressValueError:
        raise InvalidRequest(
            f"{field} has the host {text}, which is no address as four decimal numbers or in brackets"
        ) from None
    if len(text) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise InvalidRequest(
            f"{field} has a host that is no name: labels of 1 to 63 letters, digits and hyphens"
        )
    return text, None
