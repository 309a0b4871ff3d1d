"""The cleanup of one expired match."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from redrive import seams
from redrive.arena.game.database import Game
from redrive.arena.outcomes import Reject, RetryLater
from redrive.arena.records import Match


class CleanupJob(Protocol):
    """What the handler needs of a delivered job."""

    @property
    def key(self) -> str:
        """The job key, ``cleanup:<match id>:<version>``."""
        ...

    @property
    def payload(self) -> Any:
        """``{"match_id", "expected_version"}``."""
        ...


def clean_match(job: CleanupJob, db: Any, *, now_ms: int | None = None) -> dict[str, Any]:
    """Close the match if it is still open, at the expected version and past its expiry (wall clock).

    The answer is ``{"match_id", "outcome"}``: ``expired`` when it was closed now, else why nothing was to do:
    ``gone``, ``already_finished``, ``already_expired``, ``version_moved``, ``not_yet_expired``. Raises
    ``Reject`` for a payload that can never be valid, ``RetryLater`` when the match changed meanwhile.
    """
    match_id, expected_version = _order(job)
    now_ms = seams.wall_ms() if now_ms is None else now_ms
    game = Game(db)
    match = game.match(match_id)
    outcome = _judge(match, expected_version, now_ms)
    if outcome == "expired" and not game.write(
        "match_expire", match_id=match_id, expected_version=expected_version
    ):
        raise RetryLater(after=1.0)
    game.write(
        "cleanup_add", job_key=job.key, match_id=match_id, shard=match.shard if match else "",
        position=match.position if match else 0, outcome=outcome, written_at_ms=now_ms,
    )  # fmt: skip
    return {"match_id": match_id, "outcome": outcome}


def _order(job: CleanupJob) -> tuple[str, int]:
    payload = job.payload
    if not isinstance(payload, Mapping):
        raise Reject(f"a cleanup's payload is an object, got {type(payload).__name__}")
    match_id, version = payload.get("match_id"), payload.get("expected_version")
    if not isinstance(match_id, str) or not match_id:
        raise Reject("the payload lacks match_id (non-empty text)")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise Reject("the payload lacks expected_version (a whole number from 1)")
    return match_id, version


def _judge(match: Match | None, expected_version: int, now_ms: int) -> str:
    if match is None:
        return "gone"
    if match.state != "open":
        return f"already_{match.state}"
    if match.version != expected_version:
        return "version_moved"
    return "expired" if match.expires_at_ms <= now_ms else "not_yet_expired"
