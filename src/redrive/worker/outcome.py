"""How a delivery ended, as a frozen value: decided before anything is settled."""

from __future__ import annotations

import json
import traceback
from typing import Literal

import msgspec

from redrive.domain import limits
from redrive.domain.fingerprint import ErrorInfo, error_info
from redrive.worker.job import Reject, RetryLater

Kind = Literal["done", "retry", "reject", "undecodable", "lost", "died", "untouched"]
"""``lost``: the lease could not be proved to the end, nothing is settled. ``died``: the process died.
``untouched``: the ledger could not even begin, the handler never ran; the attempt is given back."""


class Outcome(msgspec.Struct, frozen=True):
    """``error`` has type, message and stack; ``delay_seconds`` only when the handler asked for one."""

    kind: Kind
    error: dict[str, str] | None = None
    delay_seconds: float | None = None
    duplicate: bool = False
    rss_bytes: int = 0

    @property
    def info(self) -> ErrorInfo:
        """The error as the ledger keeps it: clean and bounded."""
        return error_info(self.error or {"type": self.kind}) or ErrorInfo(self.kind, "")


class Rules(msgspec.Struct, frozen=True):
    """The user's classification, on top of the default one; ``transient`` wins over ``permanent``."""

    permanent: tuple[type[BaseException], ...] = ()
    transient: tuple[type[BaseException], ...] = ()


DEFAULT_RULES = Rules()


def classify(error: BaseException, rules: Rules) -> Outcome:
    """What to do about ``error``: permanent failures are rejected, everything unknown is retried."""
    described = describe(error)
    if isinstance(error, RetryLater):
        after = None if error.after is None else min(error.after, limits.DELAY_SECONDS_MAX)
        return Outcome("retry", described, after)
    if isinstance(error, Reject):
        return Outcome("reject", described)
    if isinstance(error, rules.transient):
        return Outcome("retry", described)
    permanent = isinstance(error, rules.permanent) or _permanent_by_default(error)
    return Outcome("reject" if permanent else "retry", described)


def _permanent_by_default(error: BaseException) -> bool:
    # A provider's error page is no JSON, or no text: that passes. A payload that is wrong stays wrong.
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
        return False
    if isinstance(error, msgspec.ValidationError):
        return True
    if isinstance(error, msgspec.DecodeError):
        return False
    return isinstance(error, ValueError) or _is_pydantic(error)


def _is_pydantic(error: BaseException) -> bool:
    """By its shape, so that pydantic need not be installed."""
    kind = type(error)
    package = kind.__module__.partition(".")[0]
    return kind.__name__ == "ValidationError" and package in ("pydantic", "pydantic_core")


def describe(error: BaseException) -> dict[str, str]:
    """``error`` as type, message and stack, clean and bounded; never raises."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - a broken __str__ must not hide the failure itself
        message = "<no message: str() of the error failed>"
    try:
        stack = "".join(traceback.format_exception(error, limit=-30))
    except Exception:  # noqa: BLE001 - so may the traceback's own code
        stack = ""
    info = error_info({"type": type(error).__name__, "message": message, "stack": stack})
    assert info is not None
    return {"type": info.type, "message": info.message, "stack": info.stack}
