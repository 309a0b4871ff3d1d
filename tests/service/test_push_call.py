"""Pushed deliveries to a real receiver, which verifies them with the standardwebhooks library."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec
import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from redrive import seams
from redrive.domain.push import Settle
from redrive.domain.rotation import ROTATION_MS, SigningSecrets
from redrive.egress.door import Door
from redrive.egress.policy import Policy
from redrive.service.push_call import Endpoint, PushedMessage, push

OLD, NEW = "whsec_b2xkLXNlY3JldA==", "whsec_bmV3LXNlY3JldA=="
PAYLOAD = b'{"n":90071992547409931,"a":1,"a":2}'
MESSAGE = PushedMessage("m1", "billing", 2, msgspec.Raw(PAYLOAD), msgspec.Raw(b'{"k":"v"}'))
DEADLINE_SECONDS = 20.0


class Receiver(ThreadingHTTPServer):
    """Keeps what it gets; answers ``status`` with ``more`` headers, once ``may_answer`` is set."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status, self.more = 200, dict[str, str]()
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.may_answer = threading.Event()
        self.may_answer.set()

    def endpoint(self, secrets: SigningSecrets, seconds: float = DEADLINE_SECONDS) -> Endpoint:
        return Endpoint(f"http://127.0.0.1:{self.server_port}/in", secrets, seconds)

    def verified_by(self) -> list[str]:
        """Which of both secrets verifies the last call."""
        headers, body = self.got[-1]
        return [secret for secret in (OLD, NEW) if verified(secret, headers, body)]


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append(({key.lower(): value for key, value in self.headers.items()}, body))
        self.server.may_answer.wait(DEADLINE_SECONDS)
        self.send_response(self.server.status)
        for name, value in {"Content-Length": "0", **self.server.more}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing on stderr."""


def verified(secret: str, headers: dict[str, str], body: bytes) -> bool:
    try:
        Webhook(secret).verify(body.decode(), headers)
    except WebhookVerificationError:
        return False
    return True


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.may_answer.set()
        server.shutdown()
        thread.join(DEADLINE_SECONDS)


@pytest.fixture
def door() -> Door:
    return Door(Policy.parse("127.0.0.1"))


def test_before_during_and_after_a_rotation(receiver: Receiver, door: Door) -> None:
    """The library verifies with the old secret, with both, with the new one alone."""
    now_ms = seams.wall_ms()
    before = SigningSecrets(OLD)
    for secrets, expected in (
        (before, [OLD]),
        (before.rotated(NEW, now_ms), [OLD, NEW]),
        (before.rotated(NEW, now_ms - ROTATION_MS), [NEW]),
    ):
        assert push(door, receiver.endpoint(secrets), MESSAGE).settle is Settle.ACK
        assert receiver.verified_by() == expected
        assert receiver.got[-1][0]["webhook-id"] == "m1"


def test_the_body_is_exact(receiver: Receiver, door: Door) -> None:
    """The contract's fields, and the payload's own bytes: large integers and duplicate keys included."""
    push(door, receiver.endpoint(SigningSecrets(OLD)), MESSAGE)
    head = b'{"message_id":"m1","queue":"billing","attempt":2,"payload":'
    assert receiver.got[-1][1] == head + PAYLOAD + b',"headers":{"k":"v"}}'


def test_answers_are_verdicts(receiver: Receiver, door: Door) -> None:
    """A wish to wait is heard, a redirect is no success and is not followed, gone gives the message back."""
    endpoint = receiver.endpoint(SigningSecrets(OLD))
    receiver.status, receiver.more = 503, {"Retry-After": "7"}
    slowed = push(door, endpoint, MESSAGE)
    assert (slowed.settle, slowed.wait_ms) == (Settle.NACK, 7_000)
    receiver.status, receiver.more = 302, {"Location": "/else"}
    assert push(door, endpoint, MESSAGE).settle is Settle.NACK
    receiver.status = 410
    assert push(door, endpoint, MESSAGE).settle is Settle.RELEASE
    assert len(receiver.got) == 3


def test_a_private_address_is_not_called(receiver: Receiver) -> None:
    """Unless the operator lists it; the control is every other test here."""
    verdict = push(Door(Policy()), receiver.endpoint(SigningSecrets(OLD)), MESSAGE)
    assert (verdict.settle, receiver.got) == (Settle.NACK, [])
    assert verdict.reason


def test_no_answer_in_time_is_a_nack(receiver: Receiver, door: Door) -> None:
    """With a reason that does not show the secret."""
    receiver.may_answer.clear()
    verdict = push(door, receiver.endpoint(SigningSecrets(OLD), 0.3), MESSAGE)
    assert verdict.settle is Settle.NACK
    assert verdict.reason is not None
    assert "did not answer within" in verdict.reason
    assert OLD not in verdict.reason
