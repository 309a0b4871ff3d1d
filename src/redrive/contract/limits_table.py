"""Every bound of the contract by field, read from the annotations and :mod:`redrive.domain.limits`.

Discovery, the reference page and the boundary tests use it.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec

from redrive.contract.capability import Capability
from redrive.contract.schemas import wire_of
from redrive.domain import limits

LIMITS: dict[str, Any] = {
    "body_bytes_max": limits.BODY_BYTES_MAX,
    "batch_entries_max": limits.BATCH_ENTRIES_MAX,
    "batch_bytes_max": limits.BATCH_BYTES_MAX,
    "request_bytes_max": limits.REQUEST_BYTES_MAX,
    "consume_messages_max": limits.CONSUME_MESSAGES_MAX,
    "consume_bytes_max": limits.CONSUME_BYTES_MAX,
    "delay_seconds_max": limits.DELAY_SECONDS_MAX,
    "retention_seconds_min": limits.RETENTION_SECONDS_MIN,
    "retention_seconds_max": limits.RETENTION_SECONDS_MAX,
    "visibility_seconds_min": limits.VISIBILITY_SECONDS_MIN,
    "visibility_seconds_max": limits.VISIBILITY_SECONDS_MAX,
    "wait_seconds_max": limits.WAIT_SECONDS_MAX,
    "deduplication_seconds": limits.DEDUPLICATION_SECONDS,
    "idempotency_seconds": limits.IDEMPOTENCY_SECONDS,
    "key_bytes_max": limits.KEY_BYTES_MAX,
    "reason_chars_max": limits.REASON_CHARS_MAX,
    "error_bytes_max": limits.ERROR_BYTES_MAX,
    "fingerprint_policies_max": limits.FINGERPRINT_POLICIES_MAX,
    "queue_name_chars_max": limits.QUEUE_NAME_CHARS_MAX,
    "derived_queue_name_chars_max": limits.DERIVED_QUEUE_NAME_CHARS_MAX,
    "headers_count_max": limits.HEADERS_COUNT_MAX,
    "headers_bytes_max": limits.HEADERS_BYTES_MAX,
    "priority_min": limits.PRIORITY_MIN,
    "priority_max": limits.PRIORITY_MAX,
    "max_retries_max": limits.MAX_RETRIES_MAX,
    "releases_max": limits.RELEASES_MAX,
    "redrive_skipped_max": limits.REDRIVE_SKIPPED_MAX,
    "json_depth_max": limits.JSON_DEPTH_MAX,
    "list_limit_max": limits.LIST_LIMIT_MAX,
}


@cache
def bounds(shape: type[Any]) -> dict[str, msgspec.Meta]:
    """The bound of each field of ``shape`` that has one."""
    found: dict[str, msgspec.Meta] = {}
    for name, hint in get_type_hints(shape, include_extras=True).items():
        meta = _meta(hint)
        if meta is not None:
            found[name] = meta
    return found


def limits_of(capability: Capability) -> dict[str, dict[str, Any]]:
    """For each bounded field: ``minimum`` and ``maximum``, or ``min_length`` and ``max_length``."""
    table: dict[str, dict[str, Any]] = {}
    for name, meta in bounds(wire_of(capability)).items():  # type: ignore[arg-type]
        row = {
            "minimum": meta.ge,
            "maximum": meta.le,
            "min_length": meta.min_length,
            "max_length": meta.max_length,
        }
        table[name] = {key: value for key, value in row.items() if value is not None}
    return {name: row for name, row in table.items() if row}


def _meta(hint: Any) -> msgspec.Meta | None:
    if get_origin(hint) is Annotated:
        return next((part for part in get_args(hint)[1:] if isinstance(part, msgspec.Meta)), None)
    return next(filter(None, (_meta(part) for part in get_args(hint) if get_origin(part) is Annotated)), None)
