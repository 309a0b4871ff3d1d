"""How a batch begins: what it is known to ask for first goes out with BEGIN, in one round trip."""

from __future__ import annotations

from typing import Any

from redrive import seams
from redrive.storage.postgres.binary import Parameter
from redrive.storage.postgres.failures import Again
from redrive.storage.postgres.floors import Floors
from redrive.storage.postgres.session import Request, Session


class Opening:
    """The beginning of a transaction, sent when its first answer is needed.

    ``wrote``: whether there is anything to commit; ``xid``: the transaction's number once a statement has
    told it. ``ahead``: whether statements may be sent before it is known that no outage must be taken out
    first. When one must, the batch runs again without.
    """

    def __init__(self, session: Session, floors: Floors, *, ahead: bool) -> None:
        self.wrote = False
        self.xid: str | None = None
        self._session = session
        self._floors = floors
        self._ahead = ahead
        self._now_ms: int | None = None
        self._tick_ms: int | None = None
        self._asked: list[Request] = []
        self._early: dict[Request, list[tuple[Any, ...]]] = {}
        session.later("begin_write")

    @property
    def now_ms(self) -> int:
        """The engine's time, read once."""
        return self._open() if self._now_ms is None else self._now_ms

    def last_tick_ms(self) -> int | None:
        """See ``storage.port.Transaction``."""
        if self._now_ms is None:
            self._open()
        return self._tick_ms

    def _ask_early(self, name: str, *values: Parameter) -> None:
        """Send this statement with BEGIN; the first :meth:`_fetch` of the same gets its answer."""
        if self._ahead and self._now_ms is None:
            self._asked.append((name, values))

    def _open(self) -> int:
        [[(now_ms, self._tick_ms)], *answers] = self._session.fetch_all([("times", ()), *self._asked])
        self._early.update(zip(self._asked, answers, strict=True))
        self._now_ms = int(now_ms)
        self._floors.begin(self._now_ms, seams.monotonic())
        return self._now_ms

    def _fetch(self, name: str, *values: Parameter) -> list[tuple[Any, ...]]:
        """A statement's rows, perhaps asked for early."""
        early = self._early.pop((name, values), None) if self._early else None
        return self._session.fetch(name, *values) if early is None else early

    def not_too_early(self) -> None:
        """Refuse to go on over answers that nobody has taken: what was done early is part of the batch."""
        if self._early:
            names = ", ".join(name for name, _ in self._early)
            raise Again(f"asked for too early: {names}")

    def _write(self, name: str, *values: Parameter) -> None:
        """A write whose answer nobody needs; it goes out with the next statement that is read."""
        self.wrote = True
        self._session.later(name, *values)
