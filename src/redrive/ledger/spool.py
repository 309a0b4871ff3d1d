"""Where a reconciliation puts what it cannot keep in memory: a private SQLite database that is gone with it.

What the queue holds comes in the order of arrival and is needed in the order of keys; suspects and findings
may be as many as there are jobs. Beyond a cache of 16 MiB all of it lies in an unnamed file in the system's
folder for temporary files.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

import msgspec

from redrive.domain.reconcile import Cause, Held
from redrive.ledger import catalog
from redrive.ledger.values import listed

MESSAGES_OF_A_JOB_MAX: Final = 100
"""At most so many messages of one job key are looked at; after a repair the next run sees the others."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One disagreement. ``message_id``: the message held, or the one that the ledger waits for; ``held_in``
    and ``held_state`` are None when none is held, ``ledger_state`` None when the ledger knows no such job.
    ``payload``: the ledger can publish the job again. ``completed_at_ms`` in ms since the epoch."""

    cause: Cause
    job_key: str
    message_id: str | None
    held_in: str | None
    held_state: str | None
    ledger_state: str | None
    generation: int
    payload: bool
    completed_at_ms: int | None


class Suspect(NamedTuple):
    """A job to look at again: whether it was final at the first look, the messages held and awaited then."""

    job_key: str
    final: bool
    message_ids: list[str]


class Spool:
    """One reconciliation's notes; used by one thread."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None)  # unnamed: SQLite removes it itself
        for name in ("settings", "tables"):
            for part in catalog.parts("spool", name, "named"):
                self._database.execute(part.text)
        self._database.execute("BEGIN")  # never committed: one transaction is one write of the cache

    def hold(self, page: Iterable[Held]) -> None:
        """Note messages that the queue holds."""
        self._database.executemany(_sql("hold"), map(msgspec.structs.asdict, page))

    def held(self) -> Iterator[tuple[str, list[Held]]]:
        """What was held, by job key in the order of its bytes, each message once, as it was seen last."""
        rows = self._database.execute(_sql("held"))
        for key, group in groupby(rows, key=itemgetter(0)):
            messages: dict[str, Held] = {}
            for row in group:
                if row[1] in messages or len(messages) < MESSAGES_OF_A_JOB_MAX:
                    messages[row[1]] = Held(*row)
            yield key, list(messages.values())

    def held_states(self) -> dict[str, int]:
        """How many messages were listed in each state."""
        return dict(self._database.execute(_sql("held_states")))

    def forget_held(self) -> None:
        """Make room for a second listing."""
        self._database.execute(_sql("forget_held"))

    def suspect(self, one: Suspect) -> None:
        """Note a job to look at again."""
        values = {**one._asdict(), "message_ids": listed(one.message_ids)}
        self._database.execute(_sql("suspect"), values)

    def suspects(self, limit: int) -> Iterator[list[Suspect]]:
        """Pages of them, in the order of keys."""
        after = ""
        while True:
            rows = self._database.execute(_sql("suspects"), {"after": after, "limit": limit}).fetchall()
            if not rows:
                return
            after = rows[-1][0]
            yield [Suspect(key, bool(final), msgspec.json.decode(ids)) for key, final, ids in rows]

    def suspect_count(self) -> int:
        """How many jobs there are to look at again."""
        count: int = self._database.execute(_sql("suspect_count")).fetchone()[0]
        return count

    def suspected(self, keys: Iterable[str]) -> set[str]:
        """Which of ``keys`` are to be looked at again."""
        rows = self._database.execute(_sql("suspected"), {"keys": listed(list(keys))})
        return {row[0] for row in rows}

    def find(self, finding: Finding) -> None:
        """Keep a finding."""
        values = {"cause": finding.cause.value, "finding": msgspec.json.encode(finding)}
        self._database.execute(_sql("find"), values)

    def findings(self, causes: Iterable[Cause] | None = None) -> Iterator[Finding]:
        """Findings of ``causes``, or all of them."""
        wanted = None if causes is None else listed([cause.value for cause in causes])
        for row in self._database.execute(_sql("findings"), {"causes": wanted}):
            yield msgspec.json.decode(row[0], type=Finding)

    def finding_counts(self) -> dict[Cause, int]:
        """How many findings there are of each cause."""
        return {Cause(cause): count for cause, count in self._database.execute(_sql("finding_counts"))}

    def close(self) -> None:
        """Remove it all."""
        self._database.close()


def _sql(name: str) -> Any:
    return catalog.parts("spool", name, "named")[0].text
