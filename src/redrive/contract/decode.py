"""From a request's parts to the struct that the service takes: one decode when nothing is unusual."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from redrive.contract.capability import Capability
from redrive.contract.exact import check_text, is_plain
from redrive.contract.publishing import check_key_bytes, check_no_nul, decode_publish, decode_publish_batch
from redrive.contract.reading import parse, read, struct_fields, with_aliases, with_path
from redrive.contract.refusals import check_queue_name, exceeded, shown
from redrive.contract.shapes import AckBatch, AckItem, Request
from redrive.contract.shapes.dead import DEAD_REASONS
from redrive.contract.shapes.queues import RATE_MIN
from redrive.domain import limits
from redrive.domain.errors import InvalidRequest, PayloadTooLarge, QueueNotFound, RedriveError
from redrive.domain.fingerprint import clean_text

_PATTERN = re.compile(r"[A-Za-z0-9._*-]+")
_SHORT = {
    "queue.consume", "queue.ack", "queue.ack_batch", "queue.nack", "queue.extend", "queue.release",
}  # fmt: skip
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_DECODERS: dict[str, msgspec.json.Decoder[Any]] = {}
_KEY_FIELDS = ("idempotency_key", "job_key", "consumer_id", "message_id", "receipt_handle", "actor")
_TEXT_FIELDS = (
    "id",
    "cursor",
    "text",
    "error_type",
    "fingerprint",
    "action",
    "name",
    "confirm",
    "result_hash",
)
_IGNORED_MAX = 100  # so many are told; a request of a million unknown names is not echoed
_MAY_CREATE = {"queue.publish", "queue.publish_batch", "queue.consume", "queue.ack"}


class Decoded(Struct, gc=False):
    """``request`` as its capability's shape; ``ignored_fields`` are dotted paths, empty when none."""

    request: Any
    ignored_fields: list[str]


def decode(
    capability: Capability,
    path_params: Mapping[str, str],
    query: Mapping[str, str],
    body: bytes,
    *,
    strict: bool = False,
) -> Decoded:
    """Read a request: aliases, tolerant reading, limits.

    ``path_params`` and ``query`` are percent-decoded; ``body`` counts only for POST. With ``strict``
    (``Prefer: handling=strict``) an unknown field is refused. Raises InvalidRequest, LimitExceeded,
    PayloadTooLarge; QueueNotFound for a name in the path that no queue can have.
    """
    params = dict(path_params)
    _check_path(capability, params)
    if capability.method != "POST":
        fields = with_path({name: value for name, value in query.items() if value != ""}, params)
        request, ignored = _generic(capability, fields, lax=True)
    else:
        request, ignored = _decode_body(capability, params, body)
        if query:
            ignored = [*ignored, *(name[:200] for name in query)]
    if ignored and strict:
        raise _unknown(capability, ignored)
    return Decoded(request, ignored[:_IGNORED_MAX])


def _decode_body(capability: Capability, params: dict[str, str], body: bytes) -> tuple[Any, list[str]]:
    if len(body) > limits.REQUEST_BYTES_MAX:
        raise too_large(len(body))
    check_text(body)
    if capability.id == "queue.publish":
        return decode_publish(params, body)
    if capability.id == "queue.publish_batch":
        return decode_publish_batch(params, body)
    if capability.id in _SHORT and not params:
        short = _decode_short(capability, body)
        if short is not None:
            return short, []
    fields = with_path(parse(body), params)
    if capability.id != "redrive.plan.create" or fields.pop("edit", None) is None:
        return _generic(capability, fields)
    request, ignored = _generic(capability, fields)
    request.edit = _edit(body)
    return request, ignored


def _edit(body: bytes) -> msgspec.Raw:
    """The patch's JSON text as it was sent: its numbers go into the payload."""
    edit = _MEMBERS.decode(body)["edit"]
    size = len(memoryview(edit))
    if size > limits.BODY_BYTES_MAX:
        raise PayloadTooLarge(
            f"edit must be at most {limits.BODY_BYTES_MAX} bytes, got {size}",
            details={"field": "edit", "limit": limits.BODY_BYTES_MAX, "actual": size},
        )
    return msgspec.Raw(bytes(edit))


def _decode_short(capability: Capability, body: bytes) -> Any:
    decoder = _DECODERS.get(capability.id)
    if decoder is None:
        decoder = _DECODERS[capability.id] = msgspec.json.Decoder(capability.wire or capability.request)
    try:
        request = decoder.decode(body)
    except (ValueError, RecursionError):
        return None  # the long way finds out what it was
    if capability.id == "queue.ack_batch":
        request = AckBatch(queue=request.queue, items=request.items, idempotency_key=request.idempotency_key)
    return _checked(capability, request, plain=is_plain(body))


def _generic(capability: Capability, fields: dict[str, Any], *, lax: bool = False) -> tuple[Any, list[str]]:
    fields = with_aliases(fields, capability.field_aliases)
    if capability.id == "queue.ack_batch":
        request, ignored = _ack_batch(capability, fields)
    else:
        request, ignored = read(fields, capability.wire or capability.request, lax=lax)
    return _checked(capability, request, plain=False), ignored


def _checked(capability: Capability, request: Any, *, plain: bool) -> Any:
    shape = type(request)
    names = shape.__struct_fields__
    for field in ("queue", "name", "dead_letter_queue"):
        if field in names and (field != "name" or capability.id.startswith("queue.")):
            value = getattr(request, field)
            if value is not None:
                check_queue_name(value, field, derived=capability.id != "queue.create" or field != "name")
    if not plain:
        _check_what_is_said(capability, request)
    if capability.id == "admin.backup" and request.name.endswith("\n"):
        raise InvalidRequest("name must not end in a newline", details={"field": "name"})
    if capability.id in ("queue.create", "queue.update"):
        _retention(request)
        if request.max_per_second is not None and 0 < request.max_per_second < RATE_MIN:
            raise exceeded("max_per_second", "0 or at least", RATE_MIN, request.max_per_second)
    elif capability.id == "account.keys.create":
        _check_patterns(request.queues or ())
    elif capability.id == "queue.dlq.redrive" and request.dead_reason is None:
        # a program that filters by the record's reason must not get an unfiltered redrive
        request.dead_reason = request.reason if request.reason in DEAD_REASONS else None
    return request


def _check_what_is_said(capability: Capability, request: Any) -> None:
    """Every text of a request that has more than plain letters."""
    _check_texts(request)
    if capability.id.startswith("redrive."):
        for prefix, part in _parts(request):
            _check_texts(part, prefix)
    elif capability.id == "queue.ack_batch":
        _check_ack_items(request)
    if getattr(request, "reason", None):
        request.reason = clean_text(request.reason, 4 * limits.REASON_CHARS_MAX)


def _check_texts(request: Any, prefix: str = "") -> None:
    names = type(request).__struct_fields__
    check_key_bytes(request, tuple(name for name in _KEY_FIELDS if name in names), prefix)
    check_no_nul(request, tuple(name for name in _TEXT_FIELDS if name in names), prefix)


def _parts(request: Any) -> Iterator[tuple[str, Any]]:
    """The objects within a request about plans that hold texts, with their paths."""
    select = getattr(request, "select", None)
    if select is not None:
        yield "select.", select
        for position, message_id in enumerate(select.message_ids or ()):
            if "\x00" in message_id:
                path = f"select.message_ids[{position}]"
                raise InvalidRequest(f"{path} must not contain U+0000", details={"field": path})
    for position, item in enumerate(getattr(request, "items", ())):
        yield f"items[{position}].", item
        yield f"items[{position}].evidence.", item.evidence


def _check_path(capability: Capability, params: dict[str, str]) -> None:
    name = params.get("queue")
    if name is None or capability.id in _MAY_CREATE:
        return
    try:
        check_queue_name(name, "queue")
    except RedriveError as error:
        raise QueueNotFound(f"queue {name[:100]!r} not found: {error.message}") from None


def _check_patterns(patterns: Sequence[str]) -> None:
    for position, pattern in enumerate(patterns):
        if not _PATTERN.fullmatch(pattern):  # other signs mean something to a matcher of file names
            raise InvalidRequest(
                f"queues[{position}] must be letters, digits, '.', '_', '-' and '*', got {shown(pattern)}",
                details={"field": f"queues[{position}]", "actual": shown(pattern)},
            )


def _retention(request: Any) -> None:
    days = request.message_retention_days
    if days is None:
        return
    seconds = round(days * 86_400)
    if request.retention_seconds not in (None, seconds):
        raise InvalidRequest(
            "retention_seconds and message_retention_days differ",
            hint="Send one of them.",
            details={"field": "message_retention_days"},
        )
    request.retention_seconds, request.message_retention_days = seconds, None


def _ack_batch(capability: Capability, fields: dict[str, Any]) -> tuple[AckBatch, list[str]]:
    given = fields.get("items")
    items: list[Any] = given if isinstance(given, list) else []
    if len(items) > limits.BATCH_ENTRIES_MAX:
        raise exceeded("items", "at most", limits.BATCH_ENTRIES_MAX, len(items), " entries")
    outer = {**fields, "items": []} if isinstance(given, list) else fields
    shape = capability.wire or capability.request
    wire, ignored = read(outer, shape)
    request = AckBatch(queue=wire.queue, items=[], idempotency_key=wire.idempotency_key)
    for position, item in enumerate(items):
        prefix = f"items[{position}]."
        try:
            if not isinstance(item, dict):
                raise InvalidRequest(
                    f"items[{position}] must be an object with message_id and receipt_handle",
                    details={"field": f"items[{position}]"},
                )
            read_item, unknown = read(
                with_aliases(item, capability.field_aliases, prefix), AckItem, prefix=prefix
            )
        except RedriveError as error:
            request.refused[position] = error
        else:
            request.items.append(read_item)
            ignored.extend(unknown)
    return request, ignored


def _check_ack_items(request: AckBatch) -> None:
    total = len(request.items) + len(request.refused)
    positions = [position for position in range(total) if position not in request.refused]
    kept: list[AckItem] = []
    for position, item in zip(positions, request.items, strict=True):
        try:
            check_key_bytes(item, ("message_id", "receipt_handle", "idempotency_key"), f"items[{position}].")
        except RedriveError as error:
            request.refused[position] = error
        else:
            kept.append(item)
    request.items = kept


def too_large(actual: int, limit: int = limits.REQUEST_BYTES_MAX) -> RedriveError:
    """PayloadTooLarge for a whole request of ``actual`` bytes."""
    return PayloadTooLarge(
        f"the request body must be at most {limit} bytes, got {actual}",
        details={"field": "body", "limit": limit, "actual": actual},
    )


def _unknown(capability: Capability, ignored: list[str]) -> InvalidRequest:
    names = [*struct_fields(capability.wire or capability.request), *capability.field_aliases]
    near = difflib.get_close_matches(ignored[0].rsplit(".", 1)[-1], names, n=1)
    return InvalidRequest(
        f"unknown field {ignored[0]}",
        hint=f"Did you mean {near[0]}?" if near else "The request said Prefer: handling=strict.",
        details={"field": ignored[0], "ignored_fields": ignored[:100]},
    )


__all__ = ["Decoded", "Request", "decode", "too_large"]
