"""Expired-match cleanup: judged by the match as it is now, not as it was when the job was made."""

from __future__ import annotations

from redrive.arena.cleanup.handler import clean_match

__all__ = ["clean_match"]
