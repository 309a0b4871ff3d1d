"""TLS where the server speaks none, the reverse, and a certificate that nobody trusts: told at once."""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.transports.scripted_server import Answer, serving

from redrive.domain.errors import RedriveError
from redrive.transports import Unreachable
from redrive.transports.rest import RestCarrier
from redrive.transports.rest import carrier as carrier_module

PAIR = Path(__file__).with_name("untrusted.pem")  # a self-signed certificate and its key, for these tests
SECONDS = 20.0
PAGE = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"
PLAIN_PAGES = [
    PAGE + b"Client sent an HTTP request to an HTTPS server.\n",
    PAGE + b"<html><head><title>400 The plain HTTP request was sent to HTTPS port</title></head></html>",
]
ALERT = bytes.fromhex("15030300020228")  # "handshake failure", and nothing after it


@contextlib.contextmanager
def answering(answer: bytes, context: ssl.SSLContext | None = None) -> Iterator[tuple[int, list[int]]]:
    """A server that says ``answer`` to each connection and hangs up: its port, and its visitors' ports."""
    visitors: list[int] = []
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, (_, port) = server.accept()
            except OSError:  # the end of the test
                return
            visitors.append(port)
            connection.settimeout(SECONDS)
            with contextlib.suppress(OSError), connection:
                if context is not None:
                    connection = context.wrap_socket(connection, server_side=True)
                with connection:
                    connection.recv(65_536)
                    connection.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield server.getsockname()[1], visitors
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join(SECONDS)


def refused(url: str, **settings: str) -> str:
    """What the client says of ``url``; it has much time to try again."""
    carrier = RestCarrier(url, deadline_seconds=SECONDS, **settings)  # type: ignore[arg-type]
    try:
        with pytest.raises(Unreachable) as failure:
            carrier.call("queue.list", {})
    finally:
        carrier.close()
    assert str(failure.value).startswith(f"{url}: ")
    assert not failure.value.sent
    return str(failure.value)


@pytest.mark.parametrize("answer", [PAGE, b"SSH-2.0-OpenSSH_9.2\r\n", b"+OK ready\r\n"])
def test_https_to_a_server_without_tls(answer: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """One connection, and the question that helps; not a word of trying again."""
    with answering(answer) as (port, visitors), caplog.at_level(logging.WARNING, "redrive"):
        assert "is it http:// instead of https://?" in refused(f"https://127.0.0.1:{port}")
    assert (len(visitors), caplog.messages) == (1, [])


@pytest.mark.parametrize("answer", [*PLAIN_PAGES, ALERT])
def test_http_to_a_server_that_speaks_tls(answer: bytes) -> None:
    """Where it says so itself, with a page or with an alert: one connection."""
    with answering(answer) as (port, visitors):
        assert "is it https:// instead of http://?" in refused(f"http://127.0.0.1:{port}")
    assert len(visitors) == 1


def test_a_certificate_that_is_not_trusted(tmp_path: Path) -> None:
    """One connection, and how another authority is named; named, it is served: the control."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(PAIR)
    body = b'{"ok":true,"data":{"items":[]},"metadata":{}}'
    served = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    with answering(served, context) as (port, visitors):
        said = refused(f"https://127.0.0.1:{port}")
        assert "not trusted: self-signed certificate; ca_file" in said.replace("self signed", "self-signed")
        assert len(visitors) == 1
        carrier = RestCarrier(f"https://127.0.0.1:{port}", ca_file=str(PAIR))
        assert carrier.call("queue.list", {}) == b'{"items":[]}'
        carrier.close()


@pytest.mark.parametrize(("answer", "told_apart"), [(b"", True), (PAGE, False)], ids=["silent", "control"])
def test_a_connection_that_ends_in_the_handshake_is_tried_again(
    answer: bytes, told_apart: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that restarts says nothing of TLS, and is waited for; so would be what is not told apart."""
    if not told_apart:
        monkeypatch.setattr(carrier_module, "_misdirected", lambda _: "")
    with answering(answer) as (port, visitors):
        carrier = RestCarrier(f"https://127.0.0.1:{port}", deadline_seconds=1.0)
        with pytest.raises(Unreachable):
            carrier.call("queue.list", {})
        carrier.close()
    assert len(visitors) > 1


def test_a_refusal_in_the_envelope_stays_a_refusal() -> None:
    """Redrive's own 400 may speak of HTTPS."""
    error = {"code": "INVALID_REQUEST", "message": "url must be HTTPS"}
    with serving(Answer(400, error=error)) as script:
        carrier = RestCarrier(script.url)
        with pytest.raises(RedriveError, match="url must be HTTPS"):
            carrier.call("queue.list", {})
        carrier.close()
