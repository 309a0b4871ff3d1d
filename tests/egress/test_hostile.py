"""Hostile URLs: no connection reaches a private address, counted by who listens there."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from ipaddress import IPv4Address, ip_address

import pytest

from redrive.domain.errors import InvalidRequest, TargetRefused
from redrive.egress import policy as policies
from redrive.egress.addresses import Address
from redrive.egress.door import Door, TargetTimedOut, TargetUnreachable
from redrive.egress.policy import Policy
from tests.egress.hostile import MALFORMED, PRIVATE, addresses

PUBLIC: Address = ip_address("93.184.215.14")
ROUNDS = 1_000


class Listener:
    """Listens on every address of this machine and counts who comes."""

    def __init__(self) -> None:
        self.count = 0
        self._door = socket.socket(socket.AF_INET6)
        self._door.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        self._door.bind(("::", 0))
        self._door.listen(64)
        self.port = self._door.getsockname()[1]
        self._thread = threading.Thread(target=self._take)
        self._thread.start()

    def _take(self) -> None:
        while True:
            line, _ = self._door.accept()
            with line:
                if line.recv(1) == b"E":
                    return
            self.count += 1

    def ended(self) -> int:
        """Count what has come, to the last one, and stop."""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 5) as line:
            line.sendall(b"E")
        self._thread.join(10)
        self._door.close()
        return self.count


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener()
    yield made
    if made._thread.is_alive():
        made.ended()


def post(door: Door, url: str) -> None:
    door.post(url, b"{}", {}, timeout_seconds=0.5)


def test_there_are_at_least_150() -> None:
    """Different ones."""
    assert len({*MALFORMED, *PRIVATE}) >= 150


def test_hostile_urls_open_no_connection(listener: Listener) -> None:
    """Neither when they are registered nor when they are called."""
    door = Door(Policy(), resolver=addresses)
    for text in MALFORMED:
        url = text.replace("{port}", str(listener.port))
        with pytest.raises(InvalidRequest):
            door.check(url)
        with pytest.raises(InvalidRequest):
            post(door, url)
    for text in PRIVATE:
        url = text.replace("{port}", str(listener.port))
        with pytest.raises(TargetRefused, match=r"url leads to .* \("):
            door.check(url)
        with pytest.raises(TargetRefused):
            post(door, url)
    assert listener.ended() == 0


def test_control_without_the_table_they_are_called(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The listener hears them: it would have counted."""
    monkeypatch.setattr(policies, "not_public", lambda address: "")
    door = Door(Policy(), resolver=addresses)
    local = [url for url in PRIVATE if url.startswith(("http://loop", "http://127", "http://[::1]"))]
    for url in local:
        with pytest.raises((TargetTimedOut, TargetUnreachable)):
            post(door, url.replace("{port}", str(listener.port)))
    assert listener.ended() == len(local)


def test_a_name_that_changes_between_look_ups_is_called_where_it_was_judged(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand rounds: public when it is looked up first, private a moment later."""
    answers = iter([PUBLIC, ip_address("127.0.0.1")] * ROUNDS)
    called: list[str] = []

    def connect(self: socket.socket, where: tuple[str, int]) -> None:
        called.append(where[0])
        raise ConnectionRefusedError

    monkeypatch.setattr(
        "redrive.egress.door.socket.socket", type("Line", (socket.socket,), {"connect": connect})
    )
    door = Door(Policy(), resolver=lambda host, seconds: [next(answers)])
    refused = 0
    for _ in range(ROUNDS):
        door.check("http://changes.test/")  # public: registered
        try:
            post(door, f"http://changes.test:{listener.port}/")
        except TargetRefused:
            refused += 1
    monkeypatch.undo()
    assert (refused, called, listener.ended()) == (ROUNDS, [], 0)
    one = iter([PUBLIC, IPv4Address("127.0.0.1")])
    monkeypatch.setattr(
        "redrive.egress.door.socket.socket", type("Line", (socket.socket,), {"connect": connect})
    )
    with pytest.raises(TargetUnreachable):
        post(Door(Policy(), resolver=lambda host, seconds: [next(one)]), "http://changes.test/")
    assert called == [str(PUBLIC)]  # the one look-up's answer, and only that


def test_tls_needs_the_name_even_at_an_allowed_address(listener: Listener) -> None:
    """An allowed network does not switch the certificate off."""
    door = Door(Policy.parse("127.0.0.0/8"), resolver=addresses)
    with pytest.raises((TargetUnreachable, TargetTimedOut)):
        post(door, f"https://loop.test:{listener.port}/")
    assert ssl.HAS_TLSv1_2
