"""Keys: who may do what, and what is kept of a secret."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from redrive.contract import shapes
from redrive.domain.errors import (
    Forbidden,
    InvalidRequest,
    MessageNotFound,
    NotFound,
    QueueNotFound,
    Unauthenticated,
)
from redrive.service import Caller, Service, ServiceSettings
from redrive.storage.memory import MemoryEngine
from redrive.storage.sqlite import SqliteEngine

KEY = "an-operator-key-of-length"


@pytest.fixture
def service() -> Iterator[Service]:
    """A service in memory."""
    running = Service(MemoryEngine())
    running.start()
    yield running
    running.close()


def make(service: Service, **fields: object) -> shapes.KeyCreated:
    """A new key."""
    answer = service.call("account.keys.create", shapes.KeyCreate(name="k", **fields))  # type: ignore[arg-type]
    assert isinstance(answer, shapes.KeyCreated)
    return answer


def test_a_key_lives_until_it_is_revoked(service: Service) -> None:
    """A created key authenticates; a revoked one does not, and its secret was never listed."""
    key = make(service, scopes=["publish"])
    caller = service.access.authenticate(key.secret)
    assert (caller.name, caller.scopes) == ("k", ("publish",))
    with pytest.raises(Forbidden, match="lacks the scope operate"):
        caller.require("operate")
    page = service.call("account.keys.list", shapes.KeyList())
    assert key.secret not in repr(page)
    service.call("account.keys.revoke", shapes.KeyRevoke(id=key.id))
    with pytest.raises(Unauthenticated, match="revoked"):
        service.access.authenticate(key.secret)
    with pytest.raises(NotFound):
        service.call("account.keys.revoke", shapes.KeyRevoke(id="key_x"))


@pytest.mark.parametrize("secret", [None, "", "rdk_wrong", "\ud800"])
def test_no_key_no_entry(service: Service, secret: str | None) -> None:
    """None, an empty and an unknown secret are all refused."""
    with pytest.raises(Unauthenticated):
        service.access.authenticate(secret)


def test_an_expired_key(service: Service) -> None:
    """A key is refused from its expiry on."""
    key = make(service, expires_at=1_000)
    with pytest.raises(Unauthenticated, match="expired"):
        service.access.authenticate(key.secret)


def test_rotation(service: Service) -> None:
    """After a rotation both secrets work until the old one is revoked."""
    old = make(service)
    new = service.call("account.keys.rotate", shapes.KeyRotate(id=old.id))
    assert service.access.authenticate(new.secret).scopes == ("publish", "consume")
    service.call("account.keys.revoke", shapes.KeyRevoke(id=old.id))
    assert service.access.authenticate(new.secret)
    with pytest.raises(Unauthenticated):
        service.access.authenticate(old.secret)


def test_the_environments_key(tmp_path: Path) -> None:
    """REDRIVE_API_KEY is one admin key, replaced when it changes; a short one is refused."""
    path = tmp_path / "store.db"
    for secret, other in ((KEY, None), (KEY[::-1], KEY)):
        service = Service(SqliteEngine(path), ServiceSettings(api_key=secret))
        assert service.start(first_key=True) is None
        assert service.access.authenticate(secret).scopes == ("admin",)
        if other is not None:
            with pytest.raises(Unauthenticated):
                service.access.authenticate(other)
        service.close()
    assert KEY.encode() not in path.read_bytes()
    service = Service(MemoryEngine(), ServiceSettings(api_key="short"))
    with pytest.raises(InvalidRequest, match="at least 16 characters, has 5"):
        service.start(first_key=True)
    service.close()


def test_the_first_key_is_made_once(tmp_path: Path) -> None:
    """A fresh store is given one admin key; a store that has one is not."""
    service = Service(SqliteEngine(tmp_path / "store.db"))
    secret = service.start(first_key=True)
    assert secret is not None
    assert service.access.authenticate(secret).scopes == ("admin",)
    service.close()
    again = Service(SqliteEngine(tmp_path / "store.db"))
    assert again.start(first_key=True) is None
    again.close()


def test_a_queue_outside_the_pattern_does_not_exist(service: Service) -> None:
    """Not by name, not by a message's own queue, not in lists; a dead-letter queue goes with its source."""
    caller = Caller("k", "k", ("admin",), ("game-*",))
    assert (caller.may_see("game-a"), caller.may_see("game-a.dlq"), caller.may_see("other")) == (
        True, True, False,
    )  # fmt: skip
    other = service.call("queue.publish", shapes.Publish(queue="other", payload=_raw()))
    service.call("queue.publish", shapes.Publish(queue="game-a", payload=_raw()))
    with pytest.raises(QueueNotFound):
        service.call("queue.publish", shapes.Publish(queue="other", payload=_raw()), caller=caller)
    with pytest.raises(QueueNotFound):
        service.call("queue.stats", shapes.QueueStatsGet(queue="other"), caller=caller)
    [leased] = service.call("queue.consume", shapes.Consume(queue="other")).messages
    with pytest.raises(MessageNotFound):
        service.call("queue.message", shapes.MessageGet(message_id=other.message_id), caller=caller)
    nack = shapes.Nack(queue="game-a", message_id=other.message_id, receipt_handle=leased.receipt_handle)
    with pytest.raises(MessageNotFound):
        service.call("queue.nack", nack, caller=caller)
    ack = shapes.Ack(queue="game-a", message_id=other.message_id, receipt_handle=leased.receipt_handle)
    assert service.call("queue.ack", ack, caller=caller).acknowledged is False
    assert service.call("queue.ack", ack).acknowledged is True
    page = service.call("queue.list", shapes.QueueList(), caller=caller)
    assert [queue.name for queue in page.items] == ["game-a"]


def _raw() -> object:
    import msgspec

    return msgspec.Raw(b"{}")
