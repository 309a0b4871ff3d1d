"""The manners of four languages' HTTP stacks: header names and order, bodies, numbers, nulls.

Each class makes requests as its stack puts them on the wire; ``call`` answers with whatever came.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from tests.system.programs.wire import API_KEY, Answer, Connection, chunks

UNDEFINED = object()  # JavaScript's: a member with it is not serialised
_NO_HEADERS: Mapping[str, str] = {}


class Requests:
    """Python's requests: a session with keep-alive, spaces in its JSON, ASCII only."""

    def __init__(self) -> None:
        self.connection = Connection()

    def call(
        self, method: str, path: str, value: Any = None, headers: Mapping[str, str] = _NO_HEADERS
    ) -> Answer:
        """``session.request(method, path, json=value, headers=headers)``: a GET or DELETE may have a body."""
        head = [
            f"{method} {path} HTTP/1.1",
            f"Host: {self.connection.host}",
            "User-Agent: python-requests/2.32.3",
            "Accept-Encoding: gzip, deflate",
            "Accept: */*",
            "Connection: keep-alive",
            f"Authorization: Bearer {API_KEY}",
            *_lines(headers),
        ]
        body = b"" if value is None else json.dumps(value).encode()
        if value is not None:
            head += [f"Content-Length: {len(body)}", "Content-Type: application/json"]
        elif method == "POST":
            head.append("Content-Length: 0")
        return self.connection.exchange(head, [body])


class Go:
    """Go's net/http and encoding/json: a newline after the value, ``<``, ``>`` and ``&`` escaped."""

    def __init__(self) -> None:
        self.connection = Connection()

    def call(
        self,
        method: str,
        path: str,
        value: Any = None,
        headers: Mapping[str, str] = _NO_HEADERS,
        *,
        stream: bool = False,
    ) -> Answer:
        """``client.Do``; with ``stream`` the body's length is unknown to it, so that it is chunked."""
        body = b"" if value is None else _go_json(value)
        length = "Transfer-Encoding: chunked" if stream else f"Content-Length: {len(body)}"
        named = {"Authorization": f"Bearer {API_KEY}", **headers}
        if value is not None:
            named["Content-Type"] = "application/json"
        head = [
            f"{method} {path} HTTP/1.1",
            f"Host: {self.connection.host}",
            "User-Agent: Go-http-client/1.1",
            *([length] if body or method == "POST" else []),
            *_lines(dict(sorted(named.items()))),
            "Accept-Encoding: gzip",
        ]
        half = len(body) // 2
        parts = chunks([body[:half], body[half:]]) if stream else [body]
        return self.connection.exchange(head, parts)


class Fetch:
    """Node's fetch: lower-case headers, compact JSON, members that are undefined left out."""

    def __init__(self) -> None:
        self.connection = Connection()

    def call(
        self, method: str, path: str, value: Any = None, headers: Mapping[str, str] = _NO_HEADERS
    ) -> Answer:
        """``fetch(path, {method, body: JSON.stringify(value), headers})``."""
        return self.send(method, path, None if value is None else stringify(value), headers)

    def send(
        self, method: str, path: str, body: str | None, headers: Mapping[str, str] = _NO_HEADERS
    ) -> Answer:
        """The same with the body's own text."""
        raw = (body or "").encode()
        return self.connection.exchange(self._head(method, path, body, headers), [raw])

    def abort(self, method: str, path: str, value: Any) -> None:
        """The same, aborted once it is sent."""
        body = stringify(value)
        self.connection.abandon(self._head(method, path, body, _NO_HEADERS), body.encode())

    def _head(self, method: str, path: str, body: str | None, headers: Mapping[str, str]) -> list[str]:
        length = len((body or "").encode())
        return [
            f"{method} {path} HTTP/1.1",
            f"host: {self.connection.host}",
            "connection: keep-alive",
            f"authorization: Bearer {API_KEY}",
            *(["content-type: application/json;charset=utf-8"] if body is not None else []),
            *_lines({name.lower(): text for name, text in headers.items()}),
            "accept: */*",
            "accept-language: *",
            "sec-fetch-mode: cors",
            "user-agent: node",
            "accept-encoding: gzip, deflate",
            *([f"content-length: {length}"] if length or method == "POST" else []),
        ]


class Axios:
    """axios on Node's http: its Accept, its charset, mixed case."""

    def __init__(self) -> None:
        self.connection = Connection()

    def call(
        self, method: str, path: str, value: Any = None, headers: Mapping[str, str] = _NO_HEADERS
    ) -> Answer:
        """``axios.request({method, url, data, headers, validateStatus: () => true})``."""
        raw = b"" if value is None else stringify(value).encode()
        head = [
            f"{method} {path} HTTP/1.1",
            "Accept: application/json, text/plain, */*",
            f"Content-Type: application/{'json;charset=utf-8' if raw else 'x-www-form-urlencoded'}",
            f"Authorization: Bearer {API_KEY}",
            *_lines(headers),
            "User-Agent: axios/0.27.2",
            *([f"Content-Length: {len(raw)}"] if raw or method == "POST" else []),
            f"Host: {self.connection.host}",
            "Connection: keep-alive",
        ]
        return self.connection.exchange(head, [raw])


class JavaHttpClient:
    """java.net.http.HttpClient: offers h2c with every request over plain HTTP, unless told ``HTTP_1_1``."""

    def __init__(self, *, offers_http2: bool = True) -> None:
        self.connection = Connection()
        self._offers_http2 = offers_http2

    def call(
        self, method: str, path: str, value: Any = None, headers: Mapping[str, str] = _NO_HEADERS
    ) -> Answer:
        """``client.send``; the head and the body are two writes."""
        raw = b"" if value is None else _jackson(value)
        offered = {"Connection": "Upgrade, HTTP2-Settings"} if self._offers_http2 else {}
        settings = {"HTTP2-Settings": "AAEAAEAAAAIAAAAAAAMAAAAAAAQBAAAAAAUAAEAAAAYABgAA", "Upgrade": "h2c"}
        head = [
            f"{method} {path} HTTP/1.1",
            *_lines(offered),
            *([f"Content-Length: {len(raw)}"] if raw or method == "POST" else []),
            f"Host: {self.connection.host}",
            *_lines(settings if offered else {}),
            "User-Agent: Java-http-client/17.0.15",
            f"Authorization: Bearer {API_KEY}",
            *(["Content-Type: application/json; charset=UTF-8"] if raw else []),
            *_lines(headers),
        ]
        return self.connection.exchange(head, [raw] if raw else [])


class JavaUrlConnection:
    """java.net.HttpURLConnection with a fixed length and ``Expect: 100-continue``; nulls serialised."""

    def __init__(self, key: str = API_KEY) -> None:
        self.connection = Connection()
        self._key = key

    def call(self, method: str, path: str, value: Any = None) -> Answer:
        """Open, write, read; the body waits for the 100."""
        raw = b"" if value is None else _jackson(value)
        head = [
            f"{method} {path} HTTP/1.1",
            *(["Expect: 100-continue"] if raw else []),
            f"Authorization: Bearer {self._key}",
            "Content-Type: application/json; charset=UTF-8",
            "User-Agent: Java/17.0.15",
            f"Host: {self.connection.host}",
            "Accept: text/html, image/gif, image/jpeg, */*; q=0.2",
            "Connection: keep-alive",
            *([f"Content-Length: {len(raw)}"] if raw else []),
        ]
        return self.connection.exchange(head, [raw], expects=bool(raw))


class OkHttp:
    """OkHttp: a POST needs a body, so that an empty one says ``Content-Length: 0``."""

    def __init__(self) -> None:
        self.connection = Connection()

    def call(self, method: str, path: str, value: Any = None) -> Answer:
        """``client.newCall(request).execute()``."""
        raw = b"" if value is None else _jackson(value)
        head = [
            f"{method} {path} HTTP/1.1",
            f"Authorization: Bearer {API_KEY}",
            *(["Content-Type: application/json; charset=utf-8"] if raw else []),
            *([f"Content-Length: {len(raw)}"] if method == "POST" else []),
            f"Host: {self.connection.host}",
            "Connection: Keep-Alive",
            "Accept-Encoding: gzip",
            "User-Agent: okhttp/4.12.0",
        ]
        return self.connection.exchange(head, [raw])


def stringify(value: Any) -> str:
    """``JSON.stringify``: compact, not escaped, members that are UNDEFINED left out."""
    return json.dumps(_defined(value), separators=(",", ":"), ensure_ascii=False)


def _defined(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _defined(member) for name, member in value.items() if member is not UNDEFINED}
    return [_defined(member) for member in value] if isinstance(value, list) else value


def _jackson(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _go_json(value: Any) -> bytes:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return (text + "\n").encode()


def _lines(headers: Mapping[str, str]) -> Iterable[str]:
    return [f"{name}: {text}" for name, text in headers.items()]
