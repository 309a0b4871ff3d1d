"""What an endpoint's answer means for the pushed message, and what a row of answers means for the endpoint.

An endpoint that is down must not carry a whole queue into the dead letters: after a few failures in a row it
is called seldom and with one message at a time, and one that has failed for long is paused with the reason.
Any success ends that, so a poison message among good ones slows nobody for long.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Final

#: What ``Retry-After`` may ask for, in milliseconds; more is cut to the maximum, less raised to the minimum.
RETRY_AFTER_MS_MIN: Final = 1_000
RETRY_AFTER_MS_MAX: Final = 3_600_000
#: Failures in a row from which on an endpoint is probed: one message at a time, after a growing hold.
PROBED_AFTER: Final = 3
HOLD_MS_BASE: Final = 1_000
HOLD_MS_MAX: Final = 300_000
#: An endpoint is paused when it has failed this often in a row and for this long.
PAUSED_AFTER_FAILURES: Final = 10
PAUSED_AFTER_MS: Final = 3_600_000

_GONE: Final = 410
_SLOW_DOWN: Final = frozenset({429, 503})
_SECONDS_DIGITS_MAX: Final = 12


class PushState(StrEnum):
    """``paused``: by an operator or after long failing; ``disabled``: the endpoint said that it is gone."""

    ACTIVE = "active"
    PAUSED = "paused"
    DISABLED = "disabled"


class Settle(StrEnum):
    """What becomes of the message. ``release`` spends no attempt: the endpoint is gone, not the job bad."""

    ACK = "ack"
    NACK = "nack"
    RELEASE = "release"


@dataclass(frozen=True, slots=True)
class Verdict:
    """``wait_ms``: what the endpoint asked for, for this message and for all others; None leaves the
    message to the queue's backoff. ``reason``: why it is no success."""

    settle: Settle
    wait_ms: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """How an endpoint does. ``failures`` in a row, the first one at ``failing_since_ms``; nothing is sent
    before ``held_until_ms``."""

    state: PushState = PushState.ACTIVE
    reason: str | None = None
    failures: int = 0
    failing_since_ms: int = 0
    held_until_ms: int = 0

    def room(self, max_in_flight: int, in_flight: int, now_ms: int) -> int:
        """How many more messages may be sent now."""
        if self.state is not PushState.ACTIVE or now_ms < self.held_until_ms:
            return 0
        bound = 1 if self.failures >= PROBED_AFTER else max_in_flight
        return max(0, bound - in_flight)

    def after(self, verdict: Verdict, now_ms: int) -> Standing:
        """Where the endpoint stands after one more answer.

        Answers to what was under way when it was paused or disabled change nothing: only a resume does.
        """
        if self.state is not PushState.ACTIVE:
            return self
        if verdict.settle is Settle.ACK:
            return Standing()
        if verdict.settle is Settle.RELEASE:
            return replace(self, state=PushState.DISABLED, reason=verdict.reason)
        failures = self.failures + 1
        since_ms = self.failing_since_ms if self.failures else now_ms
        hold_ms = max(_hold_ms(failures), verdict.wait_ms or 0)
        held_until_ms = max(self.held_until_ms, now_ms + hold_ms)
        failed = Standing(PushState.ACTIVE, None, failures, since_ms, held_until_ms)
        if failures < PAUSED_AFTER_FAILURES or now_ms - since_ms < PAUSED_AFTER_MS:
            return failed
        seconds = (now_ms - since_ms) // 1_000
        told = f"{failures} failures in a row over {seconds} s, the last: {verdict.reason}"
        return replace(failed, state=PushState.PAUSED, reason=told)


def judge(status: int, retry_after: str | None, now_ms: int) -> Verdict:
    """What an answer with ``status`` means; ``retry_after`` is its header, if it has one."""
    if 200 <= status <= 299:
        return Verdict(Settle.ACK)
    reason = f"the endpoint answered {status}"
    if status == _GONE:
        return Verdict(Settle.RELEASE, None, reason)
    asked = retry_after if status in _SLOW_DOWN else None
    return Verdict(Settle.NACK, None if asked is None else _wait_ms(asked, now_ms), reason)


def unanswered(reason: str) -> Verdict:
    """What a call without an answer means (refused, unreachable, too late)."""
    return Verdict(Settle.NACK, None, reason)


def _hold_ms(failures: int) -> int:
    """How long nothing is sent after this many failures in a row."""
    if failures < PROBED_AFTER:
        return 0
    doublings = min(failures - PROBED_AFTER, HOLD_MS_MAX.bit_length())
    return min(HOLD_MS_MAX, HOLD_MS_BASE << doublings)


def _wait_ms(retry_after: str, now_ms: int) -> int | None:
    """``Retry-After`` in milliseconds within its bounds; None when it is neither seconds nor a date."""
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        wait_ms = RETRY_AFTER_MS_MAX if len(text) > _SECONDS_DIGITS_MAX else int(text) * 1_000
    else:
        try:
            at = parsedate_to_datetime(text)
            aware = at if at.tzinfo else at.replace(tzinfo=UTC)
            wait_ms = int(aware.timestamp() * 1_000) - now_ms
        except (ValueError, OverflowError):
            return None
    return min(RETRY_AFTER_MS_MAX, max(RETRY_AFTER_MS_MIN, wait_ms))
