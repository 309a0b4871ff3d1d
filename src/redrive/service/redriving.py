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
    """One thread that moves the plans of a store, with the other nodes' threads."""

    def __init__(self, engine: Engine, committer: Committer, node: str) -> None:
        self._engine, self._committer, self._node = engine, committer, node
        self._stop = threading.Event()
        self._news = threading.Event()
        self._look_at = 0.0
        self._due: dict[str, float] = {}  # plan id → when it is its turn, monotonic
        self._full: set[str] = set()  # plans that wait for one of their members to end
        self._thread = threading.Thread(target=self._loop, name="redrive-plans", daemon=True)
        self._last_error = ""

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """A plan has changed on this node: look at once."""
        self._look_at = 0.0
        self._news.set()

    def settled(self) -> None:
        """A member was settled on this node: who waits for room may have some."""
        if self._full:
            self._news.set()

    def stop(self) -> None:
        """End after the slice at hand."""
        self._stop.set()
        self._news.set()
        if self._thread.is_alive():
            self._thread.join(10)

    def _loop(self) -> None:
        while not self._stop.is_set():
            try:
                self._turn(heard=self._news.is_set())
                self._last_error = ""
            except RedriveError as error:
                self._complain(error)
                self._later()
            except Exception:  # noqa: BLE001 - whatever it is, the loop goes on
                _LOG.exception("a plan could not be moved; it is tried again")
                self._later()
            until = min([self._look_at, *self._due.values()])
            seams.wait(self._news, max(0.0, until - seams.monotonic()))

    def _turn(self, *, heard: bool) -> None:
        """Look for plans if it is time to, and move those whose turn it is."""
        self._news.clear()
        now = seams.monotonic()
        if now >= self._look_at:
            self._look_at = now + _LOOK_SECONDS  # before the look: what changes meanwhile is looked at again
            known = self._engine.read(lambda reader: reader.open_plans(PLANS_MAX))
            self._due = {plan.plan_id: self._due.get(plan.plan_id, 0.0) for plan in known}
            if not known:
                self._look_at += _QUIET_SECONDS - _LOOK_SECONDS
        for plan_id in [
            each for each, at in self._due.items() if at <= now or (heard and each in self._full)
        ]:
            done = self._move(plan_id)
            self._full.discard(plan_id)
            if done.wait_ms is None:
                del self._due[plan_id]
                continue
            self._due[plan_id] = now + done.wait_ms / 1000
            if done.full:
                self._full.add(plan_id)

    def _later(self) -> None:
        """After a failure nothing is done for a moment."""
        self._look_at = seams.monotonic() + _LOOK_SECONDS
        self._due = dict.fromkeys(self._due, self._look_at)
        self._full.clear()

    def _complain(self, error: RedriveError) -> None:
        if str(error) != self._last_error:  # said once, however often it is so
            self._last_error = str(error)
            _LOG.warning("plans: %s", error)

    def _move(self, plan_id: str) -> Advanced:
        """One slice."""
        done = self._call(AdvancePlan(plan_id, self._node))
        assert isinstance(done, Advanced)
        if done.listed:
            self._seal(plan_id)
        return done

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
