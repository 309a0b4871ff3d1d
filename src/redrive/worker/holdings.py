"""What this worker holds: every lease from its arrival to its settlement, and who may run next.

The suspect's rule lives here: a message whose last delivery was lost is handed out only when nothing else
is leased, and nothing else is handed out beside it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from redrive import seams
from redrive.transports import Delivery

SETTLING_MAX = 5_000
MARGIN_SECONDS_MAX = 1.0


class Held:
    """One lease. Instants are :func:`redrive.seams.monotonic` seconds, lengths seconds."""

    def __init__(self, delivery: Delivery, *, sent_at: float, lease_seconds: float) -> None:
        self.delivery = delivery
        self.lease_seconds = lease_seconds
        self.settled = False
        self.committed = False
        self._lock = threading.Lock()
        self._revoked = False
        self._on_change: Callable[[float], None] | None = None
        self.ends_at = self.beat_at = 0.0
        self._measure(sent_at)

    @property
    def suspect(self) -> bool:
        """Whether the last delivery of this message was lost."""
        return self.delivery.previous == "lost"

    @property
    def item(self) -> tuple[str, str]:
        """Message id and receipt handle."""
        return self.delivery.message_id, self.delivery.receipt_handle

    def _measure(self, sent_at: float) -> None:
        margin = min(MARGIN_SECONDS_MAX, self.lease_seconds / 10)
        self.ends_at = sent_at + self.lease_seconds - margin
        self.beat_at = sent_at + self.lease_seconds / 3

    def provable(self, now: float) -> bool:
        """Whether the lease is certainly ours at ``now``."""
        return not self._revoked and now < self.ends_at

    def watch(self, on_change: Callable[[float], None] | None) -> None:
        """Tell ``on_change`` the lease's end now and whenever it moves; 0.0 means that it is revoked."""
        with self._lock:
            self._on_change = on_change
            if on_change is not None:
                on_change(0.0 if self._revoked else self.ends_at)

    def extended(self, *, sent_at: float, lease_seconds: float) -> None:
        """The lease was prolonged by a request sent at ``sent_at``."""
        with self._lock:
            if self._revoked:
                return
            self.lease_seconds = lease_seconds
            self._measure(sent_at)
            if self._on_change is not None:
                self._on_change(self.ends_at)

    def revoke(self) -> None:
        """The lease counts as lost from now on: stop the handler, commit nothing."""
        with self._lock:
            if self._revoked:
                return
            self._revoked = True
            if self._on_change is not None:
                self._on_change(0.0)

    @property
    def revoked(self) -> bool:
        """Whether the lease was given up."""
        return self._revoked


class Holdings:
    """The leases of one worker, bounded by ``slots`` running and ``prefetch`` waiting."""

    def __init__(self, slots: int, prefetch: int) -> None:
        self._slots = slots
        self._prefetch = prefetch
        self._prefetching = True
        self._closed = False
        self._waiting: dict[Held, None] = {}  # in order of arrival
        self._running: set[Held] = set()
        self._settling: set[Held] = set()
        self._suspects = 0  # among waiting and running
        lock = threading.RLock()
        self._work = threading.Condition(lock)  # slots wait here
        self._changed = threading.Condition(lock)  # the lease loop and those who wait for the end
        self.changed_at = seams.monotonic()

    def _note(self, *, wake: int = 1) -> None:
        self.changed_at = seams.monotonic()
        self._work.notify(wake)
        if self._closed or not self._running or self._room() > 0:
            self._changed.notify_all()

    def _room(self) -> int:
        if self._closed or self._suspects or len(self._settling) >= SETTLING_MAX:
            return 0
        ahead = self._prefetch if self._prefetching else 0
        if len(self._waiting) > ahead // 2:
            return 0  # several small leases cost more than one
        return max(0, self._slots + ahead - len(self._running) - len(self._waiting))

    def wait_for_room(self, seconds: float) -> int:
        """How many messages may be leased now; waits up to ``seconds`` for it to be more than none."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._room() > 0, seconds / seams.TIME_FACTOR)
            return self._room()

    def add(self, arrived: Iterable[Held]) -> list[Held]:
        """Take leases in; answers those that must be given back (all the waiting ones beside a suspect)."""
        with self._changed:
            arrivals = list(arrived)
            if self._closed or not arrivals:
                return arrivals
            self._suspects += sum(held.suspect for held in arrivals)
            self._waiting.update(dict.fromkeys(arrivals))
            back: list[Held] = []
            if self._suspects:
                back = [held for held in self._waiting if not held.suspect]
                for held in back:
                    del self._waiting[held]
            self._note(wake=len(arrivals))
            return back

    def _runnable(self) -> bool:
        if not self._waiting:
            return False
        if self._suspects:
            return not self._running and not self._settling
        return len(self._running) < self._slots

    def take(self) -> Held | None:
        """The next lease to run, waiting for one; None when the worker stops."""
        with self._work:
            # woken by what makes it runnable and by close(); the time-out only bounds the wait
            while not self._runnable():
                if self._closed:
                    return None
                self._work.wait(1.0)
            held = next(iter(self._waiting))
            del self._waiting[held]
            self._running.add(held)
            self._note(wake=0)
            return held

    def _forget(self, held: Held) -> bool:
        """Take ``held`` out of waiting and running; whether it ran."""
        ran = held in self._running
        if ran or held in self._waiting:
            self._suspects -= held.suspect
        self._running.discard(held)
        self._waiting.pop(held, None)
        return ran

    def withdraw(self, held: Held) -> bool:
        """Take a waiting lease back, to give it to others; False when it runs already.

        Prefetching pauses until a handler ends: the handlers are slower than the leases.
        """
        with self._changed:
            if held not in self._waiting:
                return False
            self._forget(held)
            self._prefetching = False
            self._note()
            return True

    def settling(self, held: Held) -> None:
        """The handler of ``held`` ended; its settlement is under way."""
        with self._changed:
            self._forget(held)
            self._settling.add(held)
            self._prefetching = True
            self._note()

    def drop(self, held: Held) -> None:
        """``held`` is settled, given back or lost."""
        with self._changed:
            held.settled = True
            self._prefetching |= self._forget(held)
            self._settling.discard(held)
            self._note()

    def close(self) -> list[Held]:
        """Hand out nothing more; answers what was waiting."""
        with self._changed:
            self._closed = True
            waiting = list(self._waiting)
            for held in waiting:
                self._forget(held)
            self._note()
            self._work.notify_all()
            return waiting

    def running(self) -> list[Held]:
        """The leases whose handlers run."""
        with self._changed:
            return list(self._running)

    def beating(self) -> list[tuple[Held, bool]]:
        """Every lease to keep alive, and whether it waits only because it was fetched ahead."""
        with self._changed:
            ahead = [(held, not held.suspect) for held in self._waiting]
            return ahead + [(held, False) for held in (*self._running, *self._settling)]

    def wait_empty(self, seconds: float, *, running_only: bool = False) -> bool:
        """Wait up to ``seconds`` until nothing is held (or runs); whether that came true."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not self._running and (running_only or not (self._waiting or self._settling)),
                max(0.0, seconds) / seams.TIME_FACTOR,
            )
