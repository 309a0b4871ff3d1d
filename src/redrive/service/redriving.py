"""The loop that moves redrive plans: freezes their members, hashes them, sends them within the envelope.

Any number of nodes may run it: a plan's pace is in its row, and the node that moves it holds it for a moment.
What is to be done is read from the store each time, so that a crash forgets nothing.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import Final

from redrive import seams
from redrive.domain.errors import RedriveError
from redrive.domain.plans import members_sha256
from redrive.service.committer import Committer
from redrive.storage.plan_commands import Advanced, AdvancePlan, SealPlan
from redrive.storage.plans import Plan
from redrive.storage.port import Engine

PLANS_MAX: Final = 100  # that move at the same time; the others wait for their turn
_LOOK_SECONDS: Final = 1.0  # until what other nodes did to plans is seen, while any is open
_QUIET_SECONDS: Final = 5.0  # as long as none is: an idle node hardly asks
_PAGE: Final = 1_000
_LOG = logging.getLogger("redrive.plans")


class Redriving:
    """One thread. ``wake`` says that a plan has changed on this node."""

    def __init__(self, engine: Engine, committer: Committer, node: str) -> None:
        self._engine, self._committer, self._node = engine, committer, node
        self._stop = threading.Event()
        self._news = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="redrive-plans", daemon=True)
        self._last_error = ""

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """Look at once."""
        self._news.set()

    def stop(self) -> None:
        """End after the slice at hand."""
        self._stop.set()
        self._news.set()
        if self._thread.is_alive():
            self._thread.join(10)

    def _loop(self) -> None:
        due: dict[str, float] = {}
        look_at = 0.0
        while not self._stop.is_set():
            try:
                now = seams.monotonic()
                if self._news.is_set() or now >= look_at:
                    self._news.clear()
                    known = self._engine.read(lambda reader: reader.open_plans(PLANS_MAX))
                    due = {plan.plan_id: due.get(plan.plan_id, 0.0) for plan in known}
                    look_at = now + (_LOOK_SECONDS if due else _QUIET_SECONDS)
                for plan_id in [each for each, at in due.items() if at <= now]:
                    wait_ms = self._move(plan_id)
                    if wait_ms is None:
                        del due[plan_id]
                    else:
                        due[plan_id] = now + wait_ms / 1000
                self._last_error = ""
            except RedriveError as error:
                self._complain(error)
                look_at, due = self._later(due)
            except Exception:  # noqa: BLE001 - whatever it is, the loop goes on
                _LOG.exception("a plan could not be moved; it is tried again")
                look_at, due = self._later(due)
            until = min([look_at, *due.values()])
            seams.wait(self._news, max(0.0, until - seams.monotonic()))

    @staticmethod
    def _later(due: dict[str, float]) -> tuple[float, dict[str, float]]:
        """After a failure: when to look, and to move what is due."""
        at = seams.monotonic() + _LOOK_SECONDS
        return at, dict.fromkeys(due, at)

    def _complain(self, error: RedriveError) -> None:
        if str(error) != self._last_error:  # said once, however often it is so
            self._last_error = str(error)
            _LOG.warning("plans: %s", error)

    def _move(self, plan_id: str) -> int | None:
        """One slice; when to come again, in ms."""
        done = self._call(AdvancePlan(plan_id, self._node))
        assert isinstance(done, Advanced)
        if done.listed:
            self._seal(plan_id)
            return 0
        return done.wait_ms

    def _seal(self, plan_id: str) -> None:
        plan = self._engine.read(lambda reader: reader.plan(plan_id))
        if plan is not None:
            self._call(SealPlan(plan_id, members_sha256(self._ids(plan))))

    def _ids(self, plan: Plan) -> Iterator[str]:
        """The members' ids, sorted, in pages of a snapshot each: they cannot change any more."""
        after = ""
        while True:
            page = self._engine.read(lambda reader, last=after: reader.member_ids(plan.number, last, _PAGE))  # type: ignore[misc]
            yield from page
            if len(page) < _PAGE:
                return
            after = page[-1]

    def _call(self, command: AdvancePlan | SealPlan) -> object:
        answer = self._committer.call(command)
        if isinstance(answer, RedriveError):
            raise answer
        return answer
