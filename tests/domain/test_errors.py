"""The taxonomy is the contract's list."""

from __future__ import annotations

import pytest

from redrive.domain import errors
from redrive.domain.errors import ERRORS, Internal, RedriveError, error_from

#: Section 1 of the contract: every code, its status.
CONTRACT = {
    "INVALID_REQUEST": 400, "UNAUTHENTICATED": 401, "FORBIDDEN": 403, "METHOD_NOT_ALLOWED": 405,
    "REQUEST_TIMEOUT": 408, "QUEUE_NOT_FOUND": 404, "MESSAGE_NOT_FOUND": 404, "CRON_NOT_FOUND": 404,
    "PLAN_NOT_FOUND": 404, "NOT_FOUND": 404, "QUEUE_EXISTS": 409, "STALE_RECEIPT": 409, "CONFLICT": 409,
    "PAYLOAD_TOO_LARGE": 413, "LIMIT_EXCEEDED": 422, "HEADERS_TOO_LARGE": 431, "IDEMPOTENCY_KEY_REUSED": 422,
    "TARGET_REFUSED": 422, "CONFIRMATION_REQUIRED": 428, "RATE_LIMITED": 429, "INTERNAL": 500,
    "OVERLOADED": 503, "READ_ONLY": 503, "STORAGE_FULL": 507,
}  # fmt: skip
CLASSES = [
    found
    for found in vars(errors).values()
    if isinstance(found, type) and issubclass(found, RedriveError) and found is not RedriveError
]


def test_the_codes_are_the_contracts() -> None:
    """Every code of the contract has one class with its status, and there are no others."""
    assert {code: error.http_status for code, error in ERRORS.items()} == CONTRACT


@pytest.mark.parametrize("error", CLASSES)
def test_each_error(error: type[RedriveError]) -> None:
    """A code is one class's alone (special cases apart), has a sentence, and says if a retry helps."""
    assert ERRORS[error.code] is error or issubclass(error, ERRORS[error.code])
    assert error.__doc__
    assert error.retryable == (error.http_status >= 500 or error.http_status in (408, 429))
    if error.http_status == 404:
        assert "not found" in error.__doc__ or "gone" in error.__doc__


def test_errors_off_the_wire() -> None:
    """A code becomes its class with all its fields; a code of a newer server becomes INTERNAL."""
    error = error_from("LIMIT_EXCEEDED", "too long", hint="shorten", details={"max": 3}, retry_after=2)
    assert isinstance(error, errors.LimitExceeded)
    assert (error.message, error.hint, error.details, error.retry_after) == (
        "too long",
        "shorten",
        {"max": 3},
        2,
    )
    assert type(error_from("FROM_THE_FUTURE", "?")) is Internal
