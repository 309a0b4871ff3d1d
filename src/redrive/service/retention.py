"""The end of messages by age: told ahead, archived if so set, counted when it comes.

Dead letters are evidence. A warning names those whose retention ends soon; their bodies go to the archive
before their rows go; what cannot be archived stays.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping

import msgspec

from redrive.service.access import Caller
from redrive.service.archive import Archive, ArchiveFailed, Letter
from redrive.service.batching import SLICE
from redrive.service.showing import Paths
from redrive.storage import commands as c
from redrive.storage.port import Engine, Reader
from redrive.storage.values import Ending

WARNING_SECONDS = 3 * 86_400  # a long weekend
_COUNTED_MAX = 100_000  # letters that one look counts
_SAY_AGAIN_MS = 3_600_000
_LOG = logging.getLogger("redrive.retention")


class Ended(msgspec.Struct):
    """What retention of dead letters has done on this node: letters removed by source, letters archived, and
    tries to archive that failed; ``failing`` is the last one's error, None when it went well since."""

    removed: Counter[str] = msgspec.field(default_factory=Counter)
    archived: int = 0
    failures: int = 0
    failing: str | None = None


class Retention:
    """Warns ``warning_seconds`` ahead, and writes to ``archive`` (None: bodies go with their rows)."""

    def __init__(self, engine: Engine, archive: Archive | None, warning_seconds: float) -> None:
        self._engine = engine
        self._archive = archive
        self._warning_ms = round(warning_seconds * 1000)
        self._lock = threading.Lock()
        self._said: dict[str, tuple[int, int]] = {}  # source → how many were told, and when
        self._untold: Counter[str] = Counter()
        self.ended = Ended()

    # -- ahead
    def ending(self, caller: Caller) -> list[Ending]:
        """Dead letters whose retention ends within the warning's time, of sources that the key may see."""
        return [found for found in self._look()[0] if caller.may_see(found.queue)]

    def warn(self) -> None:
        """Say which dead letters end soon: when they become more, and again after an hour."""
        if not self._warning_ms:
            return
        found, now_ms = self._look()
        for ending in found:
            count, said_ms = self._said.get(ending.queue, (0, 0))
            if ending.count <= count and now_ms - said_ms < _SAY_AGAIN_MS:
                continue
            self._said[ending.queue] = ending.count, now_ms
            _LOG.warning(
                "%d dead letters of %s end within %d s, the first in %d s: redrive them, or raise the "
                "retention of their queue for those to come",
                ending.count,
                ending.queue,
                self._warning_ms // 1000,
                max(0, ending.first_ms - now_ms) // 1000,
            )
        self._said = {e.queue: self._said[e.queue] for e in found}

    def _look(self) -> tuple[list[Ending], int]:
        def look(reader: Reader) -> tuple[list[Ending], int]:
            return reader.ending(reader.now_ms + self._warning_ms, _COUNTED_MAX), reader.now_ms

        return self._engine.read(look)

    # -- when it comes
    def rounds(self) -> list[Callable[[], c.Command | None]]:
        """What gives the slices of one round: each call a command, or None when nothing is left to do."""
        if self._archive is None:
            return [lambda: c.Age(SLICE)]
        letters = _Letters(self._engine, self._archive, self.ended)
        return [lambda: c.Age(SLICE, dead=False), letters.next]

    def committed(self, forgotten: Mapping[str, int]) -> None:
        """A batch has removed these dead letters, by source."""
        with self._lock:
            self.ended.removed.update(forgotten)
            self._untold.update(forgotten)

    def tell(self) -> None:
        """Say what was removed since this was last said."""
        with self._lock:
            told, self._untold = self._untold, Counter()
        for source, count in sorted(told.items()):
            _LOG.warning("retention removed %d dead letters of %s; their tombstones stay", count, source)


class _Letters:
    """Dead letters over age, slice by slice: into the round's file, and then away."""

    def __init__(self, engine: Engine, archive: Archive, ended: Ended) -> None:
        self._engine, self._archive, self._ended = engine, archive, ended
        self._name = ""

    def next(self) -> c.Command | None:
        """Archive one slice; the command that removes it. None when there is none, or it cannot be."""
        letters, now_ms = self._engine.read(_over_age)
        if not letters:
            return None
        self._name = self._name or self._archive.name(now_ms)
        try:
            self._archive.append(self._name, letters)
        except ArchiveFailed as failed:
            self._ended.failures += 1
            if self._ended.failing is None:  # said once, however long it is so
                _LOG.error("dead letters over age stay, because they cannot be archived: %s", failed)
            self._ended.failing = str(failed)
            return None
        self._ended.failing = None
        self._ended.archived += len(letters)
        marks = {stored.facts.message_id: stored.facts.body_hash for stored, _ in letters}
        return c.Forget(marks, self._name)


def _over_age(reader: Reader) -> tuple[list[Letter], int]:
    paths = Paths(reader)
    found = (stored for stored in reader.over_age(SLICE) if stored.record is not None)
    return [(stored, paths.of(stored)) for stored in found], reader.now_ms
