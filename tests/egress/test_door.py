"""Calls over real connections: by name and certificate, within a deadline and a size, and nowhere else."""

from __future__ import annotations

import gzip
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from pathlib import Path

import pytest
import trustme

from redrive.domain.errors import InvalidRequest
from redrive.egress.addresses import Address
from redrive.egress.door import Door, TargetTimedOut, TargetUnreachable
from redrive.egress.policy import Policy

Talk = Callable[[socket.socket, bytes], None]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Kind: a\r\n\r\nok"


class Target:
    """A server of raw bytes: reads a request's head and body, then ``talk`` has the connection."""

    def __init__(self, talk: Talk, tls: ssl.SSLContext | None = None) -> None:
        self._talk, self._tls = talk, tls
        self.requests: list[bytes] = []
        self.names: list[str | None] = []
        self.gone = threading.Event()
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port = self._door.getsockname()[1]
        if tls is not None:
            tls.sni_callback = lambda line, name, context: self.names.append(name)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                line, _ = self._door.accept()
            except OSError:
                return
            try:
                with line, self._tls.wrap_socket(line, server_side=True) if self._tls else line as talker:
                    self.requests.append(_request(talker))
                    self._talk(talker, self.requests[-1])
            except OSError:
                pass
            self.gone.set()

    def close(self) -> None:
        self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        self._thread.join(10)


def _request(line: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = line.recv(65_536)
        if not piece:
            return data
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(int(row[15:]) for row in head.split(b"\r\n") if row.lower().startswith(b"content-length:"))
    while len(body) < length:
        body += line.recv(65_536)
    return head + b"\r\n\r\n" + body


def answers(data: bytes) -> Talk:
    return lambda line, request: line.sendall(data)


@pytest.fixture
def target() -> Iterator[Callable[..., Target]]:
    made: list[Target] = []

    def make(talk: Talk, tls: ssl.SSLContext | None = None) -> Target:
        made.append(Target(talk, tls))
        return made[-1]

    yield make
    for one in made:
        one.close()


def local(host: str, seconds: float) -> list[Address]:
    return [ip_address("127.0.0.1")]


@pytest.fixture
def door() -> Door:
    return Door(Policy.parse("hooks.test"), resolver=local)


def post(door: Door, port: int, *, scheme: str = "http", seconds: float = 5.0, **named: object) -> object:
    return door.post(
        f"{scheme}://hooks.test:{port}/in?x=1",
        b'{"a":1}',
        {"X-A": "b"},
        timeout_seconds=seconds,
        **named,  # type: ignore[arg-type]
    )


def test_a_call(target: Callable[..., Target], door: Door) -> None:
    """The answer as it came, the request by the name."""
    there = target(answers(OK))
    answer = post(door, there.port)
    assert (answer.status, answer.output, answer.truncated) == (200, b"ok", False)
    assert answer.headers["x-kind"] == "a"
    head = there.requests[0].decode().split("\r\n")
    assert head[0] == "POST /in?x=1 HTTP/1.1"
    assert {f"Host: hooks.test:{there.port}", "Accept-Encoding: identity", "X-A: b", "Content-Length: 7"} <= {
        *head
    }
    assert head[-1] == '{"a":1}'


def test_no_header_changes_how_the_request_is_framed(target: Callable[..., Target], door: Door) -> None:
    """What a caller says about lengths and hosts is left out."""
    there = target(answers(OK))
    headers = {
        "host": "x",
        "content-length": "0",
        "Transfer-encoding": "chunked",
        "connection": "keep-alive",
        "X": "y",
    }
    door.post(f"http://hooks.test:{there.port}/", b"body", headers, timeout_seconds=5)
    head = there.requests[0].lower()
    assert b"transfer-encoding" not in head
    assert (head.count(b"host:"), head.count(b"content-length:"), head.count(b"connection:")) == (1, 1, 1)
    assert b"\r\nx: y\r\n" in head


@pytest.mark.parametrize("name", ["Host ", "Transfer-Encoding ", "X\n", "X:", "X y", "", "\x00X"])
def test_a_header_that_two_programs_read_in_two_ways_is_not_sent(
    target: Callable[..., Target], door: Door, name: str
) -> None:
    """Neither is one whose value would end its line."""
    there = target(answers(OK))
    for headers in ({name: "x"}, {"X": f"x\r\n{name}: x"}):
        with pytest.raises(InvalidRequest, match="headers has"):
            door.post(f"http://hooks.test:{there.port}/", b"", headers, timeout_seconds=5)
    assert there.requests in ([], [b""] * len(there.requests))


def test_a_body_that_ends_early_is_marked(target: Callable[..., Target], door: Door) -> None:
    """Less came than was announced."""
    there = target(answers(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"))
    answer = post(door, there.port)
    assert (answer.output, answer.truncated) == (b"abc", True)


def test_a_redirect_is_an_answer_and_is_not_followed(target: Callable[..., Target], door: Door) -> None:
    """Its place hears nothing."""
    elsewhere = target(answers(OK))
    there = target(
        answers(
            b"HTTP/1.1 307 X\r\nLocation: http://127.0.0.1:%d/\r\nContent-Length: 0\r\n\r\n" % elsewhere.port
        )
    )
    assert post(door, there.port).status == 307
    assert elsewhere.requests == []


def test_the_environments_proxy_is_not_asked(
    target: Callable[..., Target], door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the variables say."""
    proxy, there = target(answers(OK)), target(answers(OK))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "https_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
    assert post(door, there.port).status == 200
    assert proxy.requests == []


def test_an_endless_answer_is_cut_at_its_size(target: Callable[..., Target], door: Door) -> None:
    """What is kept is kept, and we hang up."""

    def endless(line: socket.socket, request: bytes) -> None:
        line.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            line.sendall(b"x" * 65_536)

    there = target(endless)
    answer = post(door, there.port)
    assert (answer.status, answer.truncated, answer.output) == (200, True, b"x" * 4_096)
    assert there.gone.wait(10)  # we hung up


def test_exactly_as_much_as_is_kept_is_not_truncated(target: Callable[..., Target], door: Door) -> None:
    """The boundary."""
    there = target(answers(b"HTTP/1.1 200 OK\r\nContent-Length: 4096\r\n\r\n" + b"x" * 4_096))
    assert not post(door, there.port).truncated


@pytest.mark.parametrize("endless", [b"HTTP/1.1 100 Continue\r\n\r\n", b"X: " + b"x" * 1_000 + b"\r\n"])
def test_an_endless_head_is_cut(target: Callable[..., Target], door: Door, endless: bytes) -> None:
    """By lines or by interim answers."""

    def talk(line: socket.socket, request: bytes) -> None:
        line.sendall(b"HTTP/1.1 200 OK\r\n" if endless.startswith(b"X") else b"")
        while True:
            line.sendall(endless)

    there = target(talk)
    with pytest.raises(TargetUnreachable):
        post(door, there.port)
    assert there.gone.wait(10)


@pytest.mark.parametrize("drips", [b"", b"HTTP/1.1 200 OK\r\nX: "])
def test_a_slow_answer_is_cut_at_the_deadline_whatever_it_drips(
    target: Callable[..., Target], door: Door, drips: bytes
) -> None:
    """A byte now and then buys no time."""
    ended = threading.Event()

    def drip(line: socket.socket, request: bytes) -> None:
        line.sendall(drips)
        while not ended.wait(0.05):
            if drips:
                line.sendall(b"x")

    there = target(drip)
    with pytest.raises(TargetTimedOut, match=r"did not answer within 0\.4 s"):
        post(door, there.port, seconds=0.4)
    ended.set()
    assert there.gone.wait(10)


def test_the_status_counts_when_only_the_body_is_slow(target: Callable[..., Target], door: Door) -> None:
    """The target has said how it went."""
    ended = threading.Event()

    def talk(line: socket.socket, request: bytes) -> None:
        line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
        ended.wait(10)

    there = target(talk)
    answer = post(door, there.port, seconds=0.4)
    ended.set()
    assert (answer.status, answer.output, answer.truncated) == (200, b"abc", True)


def test_a_compressed_answer_is_kept_as_it_came(target: Callable[..., Target], door: Door) -> None:
    """A bomb is its first bytes."""
    bomb = gzip.compress(b"0" * 10_000_000)
    there = target(
        answers(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb) + bomb)
    )
    answer = post(door, there.port)
    assert answer.output == bomb[:4_096]


@pytest.mark.parametrize("data", [b"", b"SSH-2.0-x\r\n", b"HTTP/9 x\r\n\r\n", b"HTTP/1.1 2OO OK\r\n\r\n"])
def test_what_is_not_http_is_no_answer(target: Callable[..., Target], door: Door, data: bytes) -> None:
    """Nothing, another protocol, another version, no number."""
    there = target(answers(data))
    with pytest.raises(TargetUnreachable, match=r"hooks\.test"):
        post(door, there.port)


class TestTls:
    @pytest.fixture
    def authority(self) -> trustme.CA:
        return trustme.CA()

    @pytest.fixture
    def trusting(self, authority: trustme.CA, tmp_path: Path) -> Door:
        authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
        return Door(Policy.parse("127.0.0.0/8"), ca_file=str(tmp_path / "ca.pem"), resolver=local)

    @staticmethod
    def context(authority: trustme.CA, name: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(name).configure_cert(context)
        return context

    def test_by_the_name_at_the_judged_address(
        self, target: Callable[..., Target], authority: trustme.CA, trusting: Door
    ) -> None:
        """SNI, certificate and Host are the name."""
        there = target(answers(OK), self.context(authority, "hooks.test"))
        assert post(trusting, there.port, scheme="https").status == 200
        assert there.names == ["hooks.test"]
        assert f"Host: hooks.test:{there.port}".encode() in there.requests[0]

    def test_another_names_certificate_is_refused(
        self, target: Callable[..., Target], authority: trustme.CA, trusting: Door
    ) -> None:
        """And nothing is sent."""
        there = target(answers(OK), self.context(authority, "127.0.0.1"))
        with pytest.raises(TargetUnreachable, match=r"no secure connection to https://hooks\.test"):
            post(trusting, there.port, scheme="https")
        assert there.requests == []

    def test_another_authoritys_certificate_is_refused(
        self, target: Callable[..., Target], trusting: Door
    ) -> None:
        """With the reason."""
        there = target(answers(OK), self.context(trustme.CA(), "hooks.test"))
        with pytest.raises(TargetUnreachable, match="certificate"):
            post(trusting, there.port, scheme="https")

    def test_one_that_never_shakes_hands_is_cut(self, trusting: Door) -> None:
        """At the deadline."""
        with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(TargetTimedOut):
            post(trusting, silent.getsockname()[1], scheme="https", seconds=0.3)


def test_the_next_address_is_tried_when_one_refuses(target: Callable[..., Target]) -> None:
    """Of those that were judged."""
    there = target(answers(OK))
    both = [ip_address("127.0.0.2"), ip_address("127.0.0.1")]
    door = Door(Policy.parse("hooks.test"), resolver=lambda host, seconds: both)
    assert post(door, there.port).status == 200


def test_a_name_that_hangs_ends_in_time() -> None:
    """As any other wait."""

    def hangs(host: str, seconds: float) -> list[Address]:
        raise TimeoutError

    with pytest.raises(TargetTimedOut):
        post(Door(Policy(), resolver=hangs), 80, seconds=0.1)


def test_the_systems_resolver_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """In time and in threads."""
    from redrive.egress import names

    ends = threading.Event()
    monkeypatch.setattr(names.socket, "getaddrinfo", lambda *_, **__: ends.wait(10) and [])
    monkeypatch.setattr(names, "_turns", threading.BoundedSemaphore(1))
    with pytest.raises(TimeoutError, match="was not found out within"):
        names.resolve("slow.test", 0.05)
    with pytest.raises(TimeoutError, match="look-ups"):
        names.resolve("next.test", 0.05)
    ends.set()
    assert names.resolve("localhost", 5) == []
