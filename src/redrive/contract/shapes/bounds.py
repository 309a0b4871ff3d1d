"""The field types of the wire with their bounds, each taken from :mod:`redrive.domain.limits`.

A bound in an annotation is checked while msgspec decodes, so that it costs nothing in Python; the JSON
Schemas of discovery and OpenAPI and the boundary tests read the same annotations.
"""

from __future__ import annotations

from typing import Annotated, Any, Self, TypeAlias

from msgspec import Meta, Struct

from redrive.domain import limits
from redrive.domain.errors import RedriveError


class Request(Struct, kw_only=True, forbid_unknown_fields=True, gc=False):
    """The base of every request. ``idempotency_key`` is the body's; the header wins over it."""

    idempotency_key: Key | None = None


class Answer(Struct, kw_only=True, gc=False):
    """The base of every answer's ``data``."""


class Replayed(Struct, gc=False):
    """What the service returns instead of a plain answer when it is the first answer to an idempotent
    request again; the envelope says ``cache_hit``.
    """

    answer: Any


class ErrorBody(Struct, kw_only=True, gc=False, omit_defaults=True):
    """``error`` of a failed answer or of a failed item of a batch."""

    code: str
    message: str
    hint: str
    http_status: int
    retryable: bool
    details: dict[str, Any] | None = None

    @classmethod
    def of(cls, error: RedriveError) -> ErrorBody:
        """The body of ``error``."""
        return cls(
            code=error.code,
            message=error.message,
            hint=error.hint,
            http_status=error.http_status,
            retryable=error.retryable,
            details=error.details,
        )


class Item(Answer, omit_defaults=True):
    """The base of an item of a batch's answer: what was done, or ``error``, never both."""

    error: ErrorBody | None = None

    @classmethod
    def refused(cls, error: RedriveError) -> Self:
        """The item for an entry that was refused; the other items are not touched by it."""
        return cls(error=ErrorBody.of(error))


_NAME_SCHEMA = {
    "pattern": f"^({limits.DERIVED_QUEUE_NAME_PATTERN})$",
    "minLength": 1,
    "maxLength": limits.DERIVED_QUEUE_NAME_CHARS_MAX,
}
_NEW_NAME_SCHEMA = {
    "pattern": f"^{limits.QUEUE_NAME_PATTERN}$",
    "minLength": 1,
    "maxLength": limits.QUEUE_NAME_CHARS_MAX,
}
_KEY_META = Meta(
    min_length=1,
    max_length=limits.KEY_BYTES_MAX,
    description=f"At most {limits.KEY_BYTES_MAX} bytes of UTF-8.",
)

QueueName: TypeAlias = Annotated[
    str, Meta(description="A queue's name; a derived `.dlq` may be longer.", extra_json_schema=_NAME_SCHEMA)
]
NewQueueName: TypeAlias = Annotated[
    str, Meta(description="The name of the queue to make.", extra_json_schema=_NEW_NAME_SCHEMA)
]
Key: TypeAlias = Annotated[str, _KEY_META]
MessageId: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=limits.KEY_BYTES_MAX, description="As publish gave it.")
]
Receipt: TypeAlias = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=limits.KEY_BYTES_MAX,
        description="The opaque handle of one delivery, valid until the next lease.",
    ),
]
Reason: TypeAlias = Annotated[
    str, Meta(max_length=limits.REASON_CHARS_MAX, description="Free text, kept in the audit log.")
]
DelaySeconds: TypeAlias = Annotated[
    float, Meta(ge=0, le=limits.DELAY_SECONDS_MAX, description="Seconds before it can be delivered.")
]
Priority: TypeAlias = Annotated[
    int, Meta(ge=limits.PRIORITY_MIN, le=limits.PRIORITY_MAX, description="Higher first.")
]
MaxMessages: TypeAlias = Annotated[
    int, Meta(ge=limits.CONSUME_MESSAGES_MIN, le=limits.CONSUME_MESSAGES_MAX, description="At most so many.")
]
VisibilityTimeout: TypeAlias = Annotated[
    float,
    Meta(
        ge=limits.VISIBILITY_SECONDS_MIN,
        le=limits.VISIBILITY_SECONDS_MAX,
        description="Seconds for which a delivery is hidden from other consumers.",
    ),
]
ExtendTimeout: TypeAlias = Annotated[
    float,
    Meta(
        ge=0,
        le=limits.VISIBILITY_SECONDS_MAX,
        description="Seconds from now; 0 gives the message back at once with the attempt spent.",
    ),
]
WaitSeconds: TypeAlias = Annotated[
    float, Meta(ge=0, le=limits.WAIT_SECONDS_MAX, description="Seconds to wait for a first message.")
]
MaxRetries: TypeAlias = Annotated[
    int,
    Meta(
        ge=limits.MAX_RETRIES_MIN,
        le=limits.MAX_RETRIES_MAX,
        description="Retries after the first delivery; every way a delivery can end counts.",
    ),
]
RetentionSeconds: TypeAlias = Annotated[
    int,
    Meta(
        ge=limits.RETENTION_SECONDS_MIN,
        le=limits.RETENTION_SECONDS_MAX,
        description="Seconds that a message may wait, fixed at publish.",
    ),
]
RetentionDays: TypeAlias = Annotated[
    float,
    Meta(
        ge=limits.RETENTION_SECONDS_MIN / 86_400,
        le=limits.RETENTION_SECONDS_MAX / 86_400,
        description="`retention_seconds` in days.",
    ),
]
Headers: TypeAlias = Annotated[
    dict[str, str],
    Meta(
        max_length=limits.HEADERS_COUNT_MAX,
        description=f"At most {limits.HEADERS_BYTES_MAX} bytes of names and values.",
    ),
]
ListLimit: TypeAlias = Annotated[
    int, Meta(ge=1, le=limits.LIST_LIMIT_MAX, description=f"Default {limits.LIST_LIMIT_DEFAULT}.")
]
Cursor: TypeAlias = Annotated[
    str, Meta(max_length=1_000, description="Opaque; the `next_cursor` of the page before.")
]
Instant: TypeAlias = Annotated[
    int,
    Meta(
        description="RFC 3339, UTC with milliseconds.",
        extra_json_schema={"type": "string", "format": "date-time"},
    ),
]
BackoffSeconds: TypeAlias = Annotated[float, Meta(ge=0, le=limits.DELAY_SECONDS_MAX, description="Seconds.")]
