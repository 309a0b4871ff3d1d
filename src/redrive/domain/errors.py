"""The one taxonomy of errors: code, HTTP status, whether a retry can help, one sentence.

API bodies, SDK exceptions, CLI exit codes and the table in the docs all come from these classes. A refusal
is always one of them; anything else that escapes is a bug and is answered as ``INTERNAL``.
"""

from __future__ import annotations

from typing import Any, ClassVar


class RedriveError(Exception):
    """The base of every refusal.

    ``message`` names the field, the limit and the actual value; ``hint`` says what to do next;
    ``details`` is a JSON object for programs. Class attributes: ``code`` (UPPER_SNAKE, on the wire),
    ``http_status``, ``retryable`` (the same request may succeed later).
    """

    code: ClassVar[str] = "INTERNAL"
    http_status: ClassVar[int] = 500
    retryable: ClassVar[bool] = True

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        details: dict[str, Any] | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = details
        self.retry_after = retry_after  # whole seconds, for the Retry-After header


class InvalidRequest(RedriveError):
    """The request's shape is wrong: a type, a missing field, malformed JSON."""

    code, http_status, retryable = "INVALID_REQUEST", 400, False


class Unauthenticated(RedriveError):
    """No key, or a key that is not known, expired or revoked."""

    code, http_status, retryable = "UNAUTHENTICATED", 401, False


class Forbidden(RedriveError):
    """The key is known, but has no scope for this route."""

    code, http_status, retryable = "FORBIDDEN", 403, False


class MethodNotAllowed(RedriveError):
    """The path exists, but not with this method."""

    code, http_status, retryable = "METHOD_NOT_ALLOWED", 405, False


class RequestTimeout(RedriveError):
    """The request's headers or body came too slowly."""

    code, http_status, retryable = "REQUEST_TIMEOUT", 408, True


class NotFound(RedriveError):
    """The path or the resource is not found."""

    code, http_status, retryable = "NOT_FOUND", 404, False


class QueueNotFound(NotFound):
    """The queue is not found, or the key may not see it."""

    code = "QUEUE_NOT_FOUND"


class MessageNotFound(NotFound):
    """The message is gone or never existed, or the key may not see its queue."""

    code = "MESSAGE_NOT_FOUND"


class CronNotFound(NotFound):
    """The schedule is not found."""

    code = "CRON_NOT_FOUND"


class PlanNotFound(NotFound):
    """The redrive plan is not found."""

    code = "PLAN_NOT_FOUND"


class QueueExists(RedriveError):
    """A queue of that name exists with other settings."""

    code, http_status, retryable = "QUEUE_EXISTS", 409, False


class StaleReceipt(RedriveError):
    """The receipt handle is not that of the message's current delivery; nothing was changed."""

    code, http_status, retryable = "STALE_RECEIPT", 409, False


class Conflict(RedriveError):
    """The state of the resource forbids this; nothing was changed."""

    code, http_status, retryable = "CONFLICT", 409, False


class PayloadTooLarge(RedriveError):
    """A body is above its limit."""

    code, http_status, retryable = "PAYLOAD_TOO_LARGE", 413, False


class LimitExceeded(RedriveError):
    """A value is outside its documented limit."""

    code, http_status, retryable = "LIMIT_EXCEEDED", 422, False


class IdempotencyKeyReused(RedriveError):
    """The idempotency key was used for a different request; nothing was done."""

    code, http_status, retryable = "IDEMPOTENCY_KEY_REUSED", 422, False


class TargetRefused(RedriveError):
    """The address of a cron or push target is not allowed."""

    code, http_status, retryable = "TARGET_REFUSED", 422, False


class ConfirmationRequired(RedriveError):
    """A destructive call needs the confirmation token that this answer carries."""

    code, http_status, retryable = "CONFIRMATION_REQUIRED", 428, False


class RateLimited(RedriveError):
    """The key sent more requests than its rate allows."""

    code, http_status, retryable = "RATE_LIMITED", 429, True


class HeadersTooLarge(RedriveError):
    """The request's headers are above their limit."""

    code, http_status, retryable = "HEADERS_TOO_LARGE", 431, False


class Internal(RedriveError):
    """A bug in the server; the request may or may not have had an effect that can be read back."""

    code, http_status, retryable = "INTERNAL", 500, True


class Overloaded(RedriveError):
    """The server's bounded queue of work is full, or it is stopping; nothing was done."""

    code, http_status, retryable = "OVERLOADED", 503, True


class ReadOnly(RedriveError):
    """The storage refuses writes; reads go on."""

    code, http_status, retryable = "READ_ONLY", 503, True


class OutcomeUnknown(Internal):
    """The connection broke inside COMMIT and the database could not say what became of it."""


class StorageFull(RedriveError):
    """The disk is full: new work is refused, acknowledgements and reads go on."""

    code, http_status, retryable = "STORAGE_FULL", 507, True


ERRORS: dict[str, type[RedriveError]] = {
    error.code: error
    for error in (
        InvalidRequest, Unauthenticated, Forbidden, MethodNotAllowed, RequestTimeout, NotFound,
        QueueNotFound, MessageNotFound, CronNotFound, PlanNotFound, QueueExists, StaleReceipt, Conflict,
        PayloadTooLarge, LimitExceeded, IdempotencyKeyReused, TargetRefused, ConfirmationRequired,
        RateLimited, HeadersTooLarge, Internal, Overloaded, ReadOnly, StorageFull,
    )
}  # fmt: skip


def error_from(code: str, message: str, **fields: Any) -> RedriveError:
    """The exception for an error ``code`` read off the wire; an unknown code becomes ``Internal``."""
    return ERRORS.get(code, Internal)(message, **fields)
