"""The transports' own suite over the real service: in process, and over HTTP through the real server."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator

import pytest

from redrive.api.server import Server
from redrive.api.settings import ApiSettings
from redrive.service import Service, ServiceSettings
from redrive.storage.memory import MemoryEngine
from redrive.storage.sqlite import SqliteEngine
from redrive.transports.conformance import TransportConformance, item, one, put
from redrive.transports.contract_transport import ContractTransport
from redrive.transports.local import open_local
from redrive.transports.port import Redriven
from redrive.transports.rest import open_rest

SECRET = "conformance-key-0123456789"
_NUMBERS = itertools.count(1)


def fresh_queue(transport: ContractTransport, kind: str) -> str:
    """A new queue with one retry that comes at once."""
    name = f"{kind}-{next(_NUMBERS)}"
    policy = {"base_seconds": 0, "jitter": False}
    transport.call("queue.create", {"name": name, "type": kind, "max_retries": 1, "retry_policy": policy})
    return name


class OverContract(TransportConformance):
    """Queues are created through the contract itself."""

    @pytest.fixture
    def queue(self, transport: ContractTransport) -> str:
        return fresh_queue(transport, "standard")

    @pytest.fixture
    def fifo_queue(self, transport: ContractTransport) -> str:
        return fresh_queue(transport, "fifo")

    def test_a_redriven_message_names_its_plan(self, transport: ContractTransport, queue: str) -> None:
        """The delivery after a redrive says which plan sent it, and how often it came back."""
        put(transport, queue, 1)
        first = one(transport, queue)
        assert first.redrive is None
        for count in (1, 2):
            transport.nack(queue, *item(one(transport, queue) if count > 1 else first), permanent=True)
            done = transport.call("queue.dlq.redrive", {"queue": queue, "message_ids": [first.message_id]})
            seen = transport.call("redrive.message", {"message_id": first.message_id})["message"]
            assert seen["redrive"] == {"plan_id": done["plan_id"], "count": count}
            listed = transport.call("queue.messages", {"queue": queue})["items"]
            assert [each["redrive"] for each in listed] == [seen["redrive"]]
        again = one(transport, queue)
        assert again.redrive == Redriven(done["plan_id"], 2)
        assert transport.ack(queue, [item(again)]) == [True]


@pytest.fixture(scope="module")
def sqlite_transport(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContractTransport]:
    """The service in process, on an SQLite file."""
    service = Service(SqliteEngine(tmp_path_factory.mktemp("local") / "redrive.db"))
    service.start()
    transport = open_local(service)
    yield transport
    transport.close()


@pytest.fixture(scope="module")
def rest_transport() -> Iterator[ContractTransport]:
    """The real server on a free port, over HTTP."""
    service = Service(MemoryEngine(), ServiceSettings(api_key=SECRET))
    service.start(first_key=True)
    ready = threading.Event()
    server = Server(service, "127.0.0.1", 0, ApiSettings())
    thread = threading.Thread(target=lambda: server.run(ready.set))
    thread.start()
    assert ready.wait(20)
    transport = open_rest(server.url, SECRET)
    yield transport
    transport.close()
    server.stop()
    thread.join(20)
    service.close()
    assert not thread.is_alive()


class TestLocal(OverContract):
    """In process; on SQLite, since memory is behind REST here."""

    @pytest.fixture
    def transport(self, sqlite_transport: ContractTransport) -> ContractTransport:
        return sqlite_transport


class TestRest(OverContract):
    """Over HTTP, through the real server."""

    @pytest.fixture
    def transport(self, rest_transport: ContractTransport) -> ContractTransport:
        return rest_transport
