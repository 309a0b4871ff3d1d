"""What a selection of dead letters holds, found by reading only, within a bounded time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from redrive import seams
from redrive.domain.patterns import may_see
from redrive.domain.plans import members_sha256
from redrive.service.context import Context
from redrive.storage.port import Reader
from redrive.storage.values import DeadFilter, DeadLetter

SECONDS = 5.0  # after which a survey ends with what it has: a count must not keep anybody from acting
_PAGE = 100  # records of one snapshot: about a millisecond
_HASHED_MAX = 100_000  # members up to which their hash is given: it must hold their ids
_GROUPS_MAX = 1_000

Cause = tuple[str | None, str, str | None]  # fingerprint, reason, error type


class Survey:
    """``count`` dead letters by ``causes`` (the first thousand), between ``oldest_ms`` and ``newest_ms``;
    ``complete``: False when there are at least so many, because the time was over."""

    def __init__(self) -> None:
        self.count = 0
        self.complete = True
        self.causes: Counter[Cause] = Counter()
        self.oldest_ms: int | None = None
        self.newest_ms: int | None = None
        self._ids: list[str] = []

    def take(self, page: list[DeadLetter]) -> None:
        """Count these, which are newer than those before."""
        for record in page:
            cause = (record.fingerprint, record.reason, record.error_type)
            if cause in self.causes or len(self.causes) < _GROUPS_MAX:
                self.causes[cause] += 1
            if self.count < _HASHED_MAX:
                self._ids.append(record.message_id)
            self.count += 1
        if page:
            self.oldest_ms = page[0].dead_ms if self.oldest_ms is None else self.oldest_ms
            self.newest_ms = page[-1].dead_ms

    @property
    def sha256(self) -> str | None:
        """The hash over the members' ids; None when they are too many to hold, or not all known."""
        whole = self.complete and self.count <= _HASHED_MAX
        return members_sha256(sorted(self._ids)) if whole else None


def survey(context: Context, select: DeadFilter, patterns: tuple[str, ...], most: int) -> Survey:
    """Of up to ``most`` dead letters, oldest first, whose sources ``patterns`` hold."""
    found, ends_at = Survey(), seams.monotonic() + SECONDS
    for page in _pages(context, select, most):
        found.take(
            [each for each in page if each.origin is None or may_see(patterns, each.origin)][
                : most - found.count
            ]
        )
        if found.count >= most:
            break
        if seams.monotonic() >= ends_at:
            found.complete = False
            break
    return found


def _pages(context: Context, select: DeadFilter, most: int) -> Iterator[list[DeadLetter]]:
    """In pages of a snapshot each."""
    after, wanted = (0, ""), min(_PAGE, most)
    while True:

        def read(reader: Reader, after: tuple[int, str] = after) -> list[DeadLetter]:
            return reader.dead_records(select, after, wanted)

        context.committer.give_way()
        page = context.engine.read(read)
        if page:
            after = page[-1].dead_ms, page[-1].message_id
            yield page
        if len(page) < wanted:
            return
