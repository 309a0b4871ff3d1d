"""Expired-match cleanup: the match as it is now decides."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from redrive.arena.cleanup import clean_match
from redrive.arena.game import Game, Night
from redrive.arena.outcomes import Reject
from redrive.arena.records import Match, cleanup_key
from tests.arena.conftest import NOW_MS


def _job(match_id: str, version: int) -> Any:
    key = cleanup_key(match_id, version)
    return SimpleNamespace(key=key, payload={"match_id": match_id, "expected_version": version}, delivery=1)


def _pick(night: Night, state: str, expired: bool) -> Match:
    return next(m for m in night.matches if m.state == state and (m.expires_at_ms <= NOW_MS) == expired)


def test_an_expired_match_is_closed_once(game: Game, night: Night) -> None:
    """Open, at the expected version, past its expiry: closed; the second time there is nothing to do."""
    match = _pick(night, "open", expired=True)
    job = _job(match.match_id, match.version)
    assert clean_match(job, game.connection, now_ms=NOW_MS)["outcome"] == "expired"
    closed = game.match(match.match_id)
    assert closed is not None
    assert (closed.state, closed.version) == ("expired", match.version + 1)
    assert clean_match(job, game.connection, now_ms=NOW_MS)["outcome"] == "already_expired"
    rows = game.rows("cleanups_all")
    assert [(row["outcome"], row["position"]) for row in rows] == [
        ("expired", match.position),
        ("already_expired", match.position),
    ]


@pytest.mark.parametrize(
    ("state", "expired", "outcome"),
    [
        ("finished", True, "already_finished"),
        ("open", False, "not_yet_expired"),
        ("expired", True, "already_expired"),
    ],
)
def test_a_cleanup_that_is_no_longer_valid_does_nothing(
    sqlite_game: Game, night: Night, state: str, expired: bool, outcome: str
) -> None:
    """The job was right when it was made; the match has moved on, and stays as it is."""
    match = _pick(night, state, expired)
    assert clean_match(_job(match.match_id, match.version), sqlite_game.connection, now_ms=NOW_MS) == {
        "match_id": match.match_id,
        "outcome": outcome,
    }
    assert sqlite_game.match(match.match_id) == match


def test_a_match_at_another_version_is_left_alone(sqlite_game: Game, night: Night) -> None:
    """Someone played on since: the version of the job is not the match's."""
    match = _pick(night, "open", expired=True)
    job = _job(match.match_id, match.version + 1)
    assert clean_match(job, sqlite_game.connection, now_ms=NOW_MS)["outcome"] == "version_moved"
    assert clean_match(_job("m-none", 1), sqlite_game.connection, now_ms=NOW_MS)["outcome"] == "gone"


@pytest.mark.parametrize(
    "payload", [None, {}, {"match_id": 7, "expected_version": 1}, {"match_id": "m", "expected_version": True}]
)
def test_a_malformed_cleanup_is_rejected(sqlite_game: Game, payload: Any) -> None:
    """Permanent, with the field named."""
    with pytest.raises(Reject, match="payload"):
        clean_match(SimpleNamespace(key="k", payload=payload), sqlite_game.connection, now_ms=NOW_MS)
