"""What a failure means: permanent, transient, or asked for."""

from __future__ import annotations

import json

import msgspec
import pytest

from redrive.domain import limits
from redrive.worker import Reject, RetryLater
from redrive.worker.outcome import DEFAULT_RULES, Outcome, Rules, classify, describe


def raised_by(function: object, *arguments: object) -> BaseException:
    """The exception of a call that must fail."""
    with pytest.raises(BaseException) as caught:
        function(*arguments)  # type: ignore[operator]
    return caught.value


class ValidationError(Exception):
    """Looks like pydantic's, without pydantic."""


ValidationError.__module__ = "pydantic_core._pydantic_core"

PERMANENT = [
    Reject("no such payment"),
    ValueError("negative amount"),
    raised_by(int, "x"),
    raised_by(lambda: msgspec.convert("x", int)),
    ValidationError("1 validation error"),
]
TRANSIENT = [
    TimeoutError(),
    ConnectionResetError(),
    OSError("disk"),
    KeyError("unknown"),
    RuntimeError("unknown"),
    SystemExit(3),
    raised_by(json.loads, "<html>502</html>"),
    raised_by(msgspec.json.decode, b"<html>"),
    raised_by(b"\xff".decode),
]


@pytest.mark.parametrize("error", PERMANENT, ids=lambda error: type(error).__name__)
def test_permanent_failures_are_rejected(error: BaseException) -> None:
    """What can never become right goes to the dead letters at once."""
    assert classify(error, DEFAULT_RULES).kind == "reject"


@pytest.mark.parametrize("error", TRANSIENT, ids=lambda error: type(error).__name__)
def test_everything_else_is_retried(error: BaseException) -> None:
    """Time-outs, connections, a provider's error page and the unknown may pass."""
    assert classify(error, DEFAULT_RULES).kind == "retry"


def test_retry_later_carries_its_wait() -> None:
    """``after`` becomes the delay, cut at the contract's limit."""
    assert classify(RetryLater(after=12.5), DEFAULT_RULES).delay_seconds == 12.5
    assert classify(RetryLater(after=1e9), DEFAULT_RULES).delay_seconds == limits.DELAY_SECONDS_MAX
    assert classify(RetryLater(), DEFAULT_RULES).delay_seconds is None


def test_a_negative_wait_is_refused_where_it_is_written() -> None:
    """``RetryLater(after=-1)`` names the field and the value."""
    with pytest.raises(ValueError, match="after must be at least 0 seconds, got -1"):
        RetryLater(after=-1)


def test_the_users_rules_win() -> None:
    """``permanent`` and ``transient`` change the default; ``transient`` is the stronger one."""
    assert classify(KeyError("x"), Rules(permanent=(LookupError,))).kind == "reject"
    assert classify(ValueError("x"), Rules(transient=(ValueError,))).kind == "retry"
    both = Rules(permanent=(ValueError,), transient=(ValueError,))
    assert classify(ValueError("x"), both).kind == "retry"


def test_an_error_can_always_be_described() -> None:
    """A broken ``__str__``, NUL, lone surrogates and a megabyte of text become clean, bounded text."""

    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    assert describe(Broken())["type"] == "Broken"
    found = describe(RuntimeError("\x00\ud800" + "x" * 1_000_000))
    assert sum(len(part.encode()) for part in found.values()) <= limits.ERROR_BYTES_MAX
    assert "\x00" not in found["message"]


def test_an_outcome_crosses_a_process_boundary() -> None:
    """A child's outcome is the same after the pipe."""
    outcome = classify(RetryLater("soon", after=2), DEFAULT_RULES)
    assert msgspec.json.decode(msgspec.json.encode(outcome), type=Outcome) == outcome
