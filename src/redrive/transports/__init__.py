"""One port, many carriers: how an application's side reaches a queue.

:func:`open_transport` resolves a URL. This package knows ``http`` and ``https``; ``redrive.compose`` adds the
schemes that need a storage engine, and each extra adds its broker's.
"""

from __future__ import annotations

from collections.abc import Callable

from redrive.transports.port import (
    Delivery,
    Entry,
    Lease,
    Nacked,
    Published,
    Transport,
    Unreachable,
    exact_json,
)

OpenTransport = Callable[[str, str | None], Transport]
"""Opens a transport for (URL, API key or None)."""

_SCHEMES: dict[str, OpenTransport] = {}


def register(scheme: str, opener: OpenTransport) -> None:
    """Let :func:`open_transport` resolve URLs of ``scheme`` with ``opener``."""
    _SCHEMES[scheme] = opener


def open_transport(url: str, api_key: str | None = None) -> Transport:
    """The transport for ``url``; raises ValueError for a scheme that nothing registered.

    ``api_key`` is the bearer key of an HTTP server (default: the environment's ``REDRIVE_API_KEY``).
    """
    scheme = url.partition(":")[0].lower()
    if scheme in _SCHEMES:
        return _SCHEMES[scheme](url, api_key)
    if scheme in ("http", "https"):
        from redrive.transports.rest import open_rest  # urllib3 is loaded by those who use it only

        return open_rest(url, api_key)
    known = ", ".join(sorted({"http", "https", *_SCHEMES}))
    raise ValueError(f"no transport for the scheme {scheme!r}; known here: {known}")


__all__ = [
    "Delivery",
    "Entry",
    "Lease",
    "Nacked",
    "OpenTransport",
    "Published",
    "Transport",
    "Unreachable",
    "exact_json",
    "open_transport",
    "register",
]
