"""The answer's envelope (section 1 of the contract), put together as bytes around the encoded data."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from redrive.contract.shapes import Answer, Consume, Deliveries, ErrorBody
from redrive.domain.errors import RedriveError
from redrive.seams import monotonic, uuid7_text, wall_ms

_ENCODER = msgspec.json.Encoder()
Headers = list[tuple[bytes, bytes]]
JSON: tuple[bytes, bytes] = (b"content-type", b"application/json")


class Stamp:
    """A request's id (UUIDv7) and the moment it began."""

    __slots__ = ("began", "request_id")

    def __init__(self) -> None:
        self.began = monotonic()
        self.request_id = uuid7_text(wall_ms())

    def metadata(self, *, cache_hit: bool = False, ignored_fields: Sequence[str] = ()) -> bytes:
        """``metadata`` as JSON; ``latency_ms`` is whole milliseconds since the request began."""
        latency_ms = int((monotonic() - self.began) * 1000)
        ignored = b',"ignored_fields":' + _ENCODER.encode(ignored_fields) if ignored_fields else b""
        return b'{"request_id":"%s","latency_ms":%d,"vendor":"redrive","cost_usd":0,"cache_hit":%s%s}' % (
            self.request_id.encode(),
            latency_ms,
            b"true" if cache_hit else b"false",
            ignored,
        )


def data_bytes(answer: Answer, request: object = None) -> bytes:
    """``data`` as compact JSON. A consume's list is encoded once and written as the views that were asked."""
    if not isinstance(answer, Deliveries):
        return _ENCODER.encode(answer)
    listed = _ENCODER.encode(answer.messages)
    view = request.view if isinstance(request, Consume) else None
    parts = [b'"messages":' + listed] if view != "items" else []
    if view != "messages":
        parts.append(b'"items":' + listed)
    parts.append(b'"lease_seconds":' + _ENCODER.encode(answer.lease_seconds))
    if answer.redact is not msgspec.UNSET:
        parts.append(b'"redact":' + _ENCODER.encode(answer.redact))
    return b"{" + b",".join(parts) + b"}"


def success(
    data: bytes, stamp: Stamp, *, cache_hit: bool = False, ignored_fields: Sequence[str] = ()
) -> bytes:
    """The body of a 200."""
    metadata = stamp.metadata(cache_hit=cache_hit, ignored_fields=ignored_fields)
    return b'{"ok":true,"data":' + data + b',"metadata":' + metadata + b"}"


def failure(error: RedriveError, stamp: Stamp) -> bytes:
    """The body of every other answer."""
    body = _ENCODER.encode(ErrorBody.of(error))
    return b'{"ok":false,"data":null,"error":' + body + b',"metadata":' + stamp.metadata() + b"}"


def error_headers(error: RedriveError) -> Headers:
    """The headers that an error brings: Retry-After in whole seconds, Allow, WWW-Authenticate."""
    headers: Headers = []
    retry_after = error.retry_after
    if retry_after is None and error.code in ("OVERLOADED", "RATE_LIMITED", "READ_ONLY"):
        retry_after = 1
    if retry_after is not None:
        headers.append((b"retry-after", str(max(1, retry_after)).encode()))
    if error.http_status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="redrive"'))
    if error.http_status == 405 and error.details:
        headers.append((b"allow", ", ".join(error.details["allow"]).encode()))
    return headers


def http_response(error: RedriveError, reason: str) -> bytes:
    """A whole HTTP/1.1 response that closes the connection, for refusals below ASGI."""
    stamp = Stamp()
    body = failure(error, stamp)
    lines = [f"HTTP/1.1 {error.http_status} {reason}".encode()]
    headers = [JSON, (b"x-request-id", stamp.request_id.encode()), *error_headers(error)]
    lines += [name + b": " + value for name, value in headers]
    lines += [b"content-length: " + str(len(body)).encode(), b"connection: close", b"", body]
    return b"\r\n".join(lines)
