"""Work in a thread of its own for the length of a block."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Self

from tests.system.servers import SECONDS


class Alongside(ABC):
    """A thread that does ``work`` until the block ends; it is an error if it does not end then."""

    def __init__(self, name: str) -> None:
        self.stopped = threading.Event()
        self._thread = threading.Thread(target=self.work, name=name)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self._thread.join(SECONDS)
        assert not self._thread.is_alive(), f"{self._thread.name} did not end"

    @abstractmethod
    def work(self) -> None:
        """What is done until ``stopped`` is set."""
