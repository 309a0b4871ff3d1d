"""uvicorn's HTTP protocol with what it lacks: deadlines for slow headers, slow bodies and slow
readers, and bounds on headers. Refusals carry the contract's envelope.
"""

from __future__ import annotations

import asyncio
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from redrive.api.envelope import http_response
from redrive.api.joined import JoinedTransport
from redrive.api.settings import ApiSettings
from redrive.domain.errors import (
    HeadersTooLarge,
    InvalidRequest,
    RedriveError,
    RequestTimeout,
)

_HEADERS_MAX = 100
_DISCARDED_TIMES = 4  # a refused body is read on, so that the client sees the answer, up to so many limits


class BoundedProtocol(HttpToolsProtocol):
    """One connection. States: waiting for or reading a request's head, reading its body, answering."""

    def __init__(self, *args: Any, settings: ApiSettings, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._settings = settings
        self._deadline: asyncio.TimerHandle | None = None
        self._write_deadline: asyncio.TimerHandle | None = None
        self._in_head = True
        self._head_bytes = 0
        self._body_bytes = 0
        self._refused = False
        self._offered = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The first head's deadline runs from here."""
        super().connection_made(JoinedTransport(transport, self.loop))  # type: ignore[arg-type]
        self._arm(self._settings.header_seconds, self._head_too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadlines."""
        self._disarm()
        self._disarm_write()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed the parser, unless the connection was refused; whatever stays unfinished gets a deadline."""
        if self._refused:
            return
        if self._in_head:
            self._head_bytes += len(data)
        self._unset_keepalive_if_required()
        self._feed(data)
        self._after_data()

    def _feed(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self.send_400_response("")
        except httptools.HttpParserUpgrade as offer:
            if self._offered:  # the parser skips the body of an offer: read the request again without it
                head = self._head_without_offer()
                self._offered = False
                self.parser = httptools.HttpRequestParser(self)
                self._feed(head + data[offer.args[0] :])

    def _head_without_offer(self) -> bytes:
        version = self.parser.get_http_version().encode()
        lines = [self.parser.get_method() + b" " + self.url + b" HTTP/" + version]
        lines += [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        return b"\r\n".join([*lines, b"", b""])

    def _after_data(self) -> None:
        if self._refused:
            return
        if self._in_head and self._head_bytes > self._settings.header_bytes_max:
            self._refuse_head()
        elif self._deadline is not None:
            return
        elif not self._in_head:
            self._arm(self._settings.body_seconds, self._body_too_slow)
        elif self._head_bytes:
            self._arm(self._settings.header_seconds, self._head_too_slow)

    def on_url(self, url: bytes) -> None:
        """Collect the target."""
        if not self._refused:
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect a header. What comes behind a chunked body is counted and dropped: it must not take the
        place of a header that was judged before, nor fill the memory.
        """
        if self._refused:
            return
        if self._in_head:
            super().on_header(name, value)
            return
        self._head_bytes += len(name) + len(value) + 4
        if self._head_bytes > self._settings.header_bytes_max:
            self._refuse_head()

    def on_headers_complete(self) -> None:
        """The head is there: check its size, start the request, give its body a deadline."""
        if self._refused:
            return
        if self.parser.get_http_version() == "0.9":  # a line without a version is read as that
            self.send_400_response("")
            return
        if self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT":
            self._offered = True  # h2c and the like: passed over, the request itself is served
            return
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > self._settings.header_bytes_max or len(self.headers) > _HEADERS_MAX:
            self._refuse_head(size)
            return
        self._in_head, self._head_bytes, self._body_bytes = False, 0, 0
        self._disarm()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Hand a part of the body on; close when a refused body goes on and on."""
        if self._refused:
            return
        self._body_bytes += len(body)
        if self._body_bytes > _DISCARDED_TIMES * self._settings.request_bytes_max:
            self._refused = True
            self.transport.close()
            return
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The body is there; the next bytes are another head."""
        if self._refused or self._offered:
            return
        self._disarm()
        self._in_head, self._head_bytes = True, 0
        super().on_message_complete()

    def pause_writing(self) -> None:
        """The client does not read: an answer must not be held for ever."""
        super().pause_writing()
        self._disarm_write()
        seconds = self._settings.body_seconds
        self._write_deadline = self.loop.call_later(seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """The client reads again."""
        self._disarm_write()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's signature
        """Not HTTP: the contract's envelope instead of uvicorn's plain text."""
        if not self._refused:
            self._refuse(InvalidRequest("the request is not valid HTTP/1.1"), "Bad Request")

    def _arm(self, seconds: float, late: Any) -> None:
        self._disarm()
        self._deadline = self.loop.call_later(seconds, late)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _disarm_write(self) -> None:
        if self._write_deadline is not None:
            self._write_deadline.cancel()
            self._write_deadline = None

    def _head_too_slow(self) -> None:
        if self._answering():  # a pipelined head: what is being answered is not its fault
            self._arm(self._settings.header_seconds, self._head_too_slow)
        elif not self._head_bytes:
            self._refused = True  # nothing was asked: nothing to answer
            self.transport.close()
        else:
            seconds = self._settings.header_seconds
            self._refuse(
                RequestTimeout(f"the request's headers did not come within {seconds:g} s"), "Request Timeout"
            )

    def _body_too_slow(self) -> None:
        seconds = self._settings.body_seconds
        self._refuse(
            RequestTimeout(f"the request's body did not come within {seconds:g} s"), "Request Timeout"
        )

    def _answering(self) -> bool:
        cycle = self._current()
        return cycle is not None and not cycle.response_complete

    def _current(self) -> RequestResponseCycle | None:
        return self.cycle  # None before the first request, whatever uvicorn's annotation says

    def _refuse_head(self, size: int | None = None) -> None:
        limit = self._settings.header_bytes_max
        error = HeadersTooLarge(
            f"the request's headers must be at most {limit} bytes and {_HEADERS_MAX} fields, "
            f"got {size or self._head_bytes} bytes",
            details={"limit": limit, "actual": size or self._head_bytes},
        )
        self._refuse(error, "Request Header Fields Too Large")

    def _refuse(self, error: RedriveError, reason: str) -> None:
        self._refused = True
        self._disarm()
        self._unset_keepalive_if_required()
        cycle = self._current()
        if self._in_head or cycle is None or not cycle.response_started:
            self.transport.write(http_response(error, reason))
        if cycle is not None:  # the endpoint sees a client that went away
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.close()
