"""The worker tests' stand-in keeps the port's promises, so that what they show holds for real queues."""

from __future__ import annotations

import pytest
from tests.worker.memory_queue import MemoryQueue

from redrive.transports import Transport
from redrive.transports.conformance import TransportConformance


class TestMemoryQueue(TransportConformance):
    """The suite over the stand-in, which no reconciliation reads."""

    lacks = frozenset({"listing", "fates", "withdrawal"})

    @pytest.fixture
    def transport(self) -> Transport:
        return MemoryQueue(max_retries=1)

    @pytest.fixture
    def queue(self) -> str:
        return "work"

    @pytest.fixture
    def fifo_queue(self) -> str:
        return "work.fifo"
