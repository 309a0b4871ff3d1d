"""Purging beside another node: what it holds is waited for, with an end."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from redrive.domain.errors import Overloaded
from redrive.service import removing
from redrive.storage import commands as c
from redrive.storage.values import AuditRow

ROWS: list[Any] = []  # the outcome and the detail of the last row that a purge wrote


def purge(answers: Iterator[c.Purged], monkeypatch: pytest.MonkeyPatch) -> tuple[int, list[float]]:
    """What a purge that gets these answers removes, and its pauses; each pause takes a second."""
    pauses: list[float] = []

    def wait(_event: object, seconds: float) -> bool:
        pauses.append(seconds)
        return False

    monkeypatch.setattr(removing, "seams", SimpleNamespace(monotonic=lambda: float(len(pauses)), wait=wait))
    audited: list[AuditRow] = []

    def call(command: c.Command) -> object:
        if isinstance(command, c.WriteAudit):
            return audited.append(command.row)
        return next(answers)

    context: Any = SimpleNamespace(committer=SimpleNamespace(call=call))
    row = AuditRow(0, "ops", "queue.purge", "jobs", "test data", None, "done")
    try:
        return removing._purge_audited(context, "jobs", 0, row), pauses
    finally:
        [last] = audited
        ROWS[:] = [last.outcome, last.detail]


def test_what_another_node_holds_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by asking again at once."""
    answers = iter([c.Purged(500, True), c.Purged(0, True), c.Purged(0, True), c.Purged(7, False)])
    removed, pauses = purge(answers, monkeypatch)
    assert removed == 507
    assert ROWS == ["done", b'{"purged":507}']
    assert len(pauses) == 2
    assert min(pauses) > 0


def test_the_wait_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the answer says how far it came, and the audit log too."""
    answers = iter([c.Purged(500, True), *[c.Purged(0, True)] * 1_000])
    with pytest.raises(Overloaded, match="500 messages are removed"):
        purge(answers, monkeypatch)
    assert ROWS == ["stopped", b'{"purged":500}']
