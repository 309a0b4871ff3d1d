"""Many lines when the server goes away in between: what is said is what is so."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from redrive.cli.failures import OUT_OF_REACH, Refusal
from redrive.cli.lines import publish_lines
from redrive.cli.output import Output
from redrive.transports.port import Published, Unreachable


class Breaking:
    """Takes some batches, then is gone."""

    def __init__(self, batches: int) -> None:
        self.taken: list[int] = []
        self._batches = batches

    def publish(self, queue: str, entries: list[Any]) -> list[Published]:
        if len(self.taken) == self._batches:
            raise Unreachable("gone", sent=True)
        self.taken.append(len(entries))
        return [Published("id") for _ in entries]


def _run(tmp_path: Path, lines: str, batches: int) -> tuple[Breaking, Any]:
    source = tmp_path / "lines"
    source.write_text(lines)
    transport = Breaking(batches)
    session: Any = SimpleNamespace(out=Output(as_json=False), client=SimpleNamespace(transport=transport))
    return transport, publish_lines(session, "q", source, entries=False)


def test_the_lines_that_are_published_are_named(tmp_path: Path) -> None:
    """The second batch's outcome is not known, and the message says which lines that are."""
    with pytest.raises(Refusal) as stopped:
        _run(tmp_path, "1\n" * 2_500, 1)
    assert stopped.value.exit_code == OUT_OF_REACH
    assert "lines up to 1000 are answered" in stopped.value.message
    assert (
        "whether lines 1001 to 2000 are published is not known, later ones are not" in stopped.value.message
    )


def test_a_batch_is_bounded_in_bytes(tmp_path: Path) -> None:
    """Lines near the limit of a payload go in smaller batches."""
    transport, done = _run(tmp_path, ('"' + "x" * 200_000 + '"\n') * 60, 99)
    assert (done.published, sum(transport.taken)) == (60, 60)
    assert max(transport.taken) * 200_000 <= 8 * 1024 * 1024


def test_a_line_without_an_end_does_not_fill_the_memory(tmp_path: Path) -> None:
    """A line far above the limit is refused by number, and the next one is read from its start."""
    _, done = _run(tmp_path, "1" * 2_000_000 + "\n2\n", 99)
    assert (done.published, done.refused) == (1, 1)
