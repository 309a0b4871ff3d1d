"""What is printed of a night: nothing before an error, and after a kept one how to look around and end it."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from redrive.arena import report
from redrive.arena.evidence import Evidence
from redrive.arena.game import Night
from redrive.arena.night import Options, Outcome
from redrive.arena.roles import cast

KEPT = {
    "url": "http://127.0.0.1:7077",
    "api_key": "key",
    "game_url": "postgresql://h/db?a=1&b=2",
    "folder": "/somewhere/my files",
    "schemas": "",
    "pid": "123",
}


def _shown(night: Night, monkeypatch: pytest.MonkeyPatch, kept: dict[str, str]) -> list[str]:
    evidence = Evidence(night, cast(7, list(night.answers), with_payout=[], today=list(night.answers)))

    def run(options: Options, tell: Any) -> Outcome:
        tell("a step")
        return Outcome([], evidence, 1.0, kept)

    monkeypatch.setattr(report, "run", run)
    out = io.StringIO()
    assert report.show(Options(), Console(file=out, width=200)) == 0
    return out.getvalue().splitlines()


def test_a_kept_night_says_how_to_look_around_and_how_to_end_it(
    night: Night, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines to copy: queues, dead letters, ledger; stop, then remove. A shell takes each as it is meant."""
    lines = _shown(night, monkeypatch, KEPT)
    for line in (
        "  export REDRIVE_URL=http://127.0.0.1:7077 REDRIVE_API_KEY=key",
        "  export REDRIVE_LEDGER='postgresql://h/db?a=1&b=2'",
        "  redrive queue list; redrive dlq list settlement; redrive ledger status",
        "To stop it: kill 123",
        "To remove what it kept, then: rm -r '/somewhere/my files'",
    ):
        assert line in lines


def test_schemas_in_postgresql_are_named_too(night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the night left some."""
    lines = _shown(night, monkeypatch, {**KEPT, "schemas": "redrive_demo_1, redrive_demo_1_game"})
    assert lines[-1].endswith("; and drop the schemas redrive_demo_1, redrive_demo_1_game")


def test_nothing_is_printed_where_nothing_is_kept(night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps and the table, no empty line, and no hint about a server that is gone."""
    lines = _shown(night, monkeypatch, {})
    assert lines[0].endswith(" s  a step")
    assert "" not in lines
    assert lines[-1] == "0 of 0 claims hold, in 1 s."


@pytest.mark.parametrize("terminal", [False, True])
def test_an_error_stands_alone(terminal: bool) -> None:
    """Nothing that stays precedes it: no empty line in a pipe, at a terminal only a bar that is wiped."""
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=80)
    with pytest.raises(ValueError, match="payments must be"):
        report.show(Options(payments=5), console)
    if terminal:
        assert "the night begins" in out.getvalue()  # the control: there is a bar where it is seen
    else:
        assert out.getvalue() == ""
