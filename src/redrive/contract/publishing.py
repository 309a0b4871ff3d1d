"""Decoding of publish and publish_batch: the payload's JSON text is kept exactly and never parsed."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from redrive.contract.exact import is_plain
from redrive.contract.idempotency import request_hash
from redrive.contract.reading import parse, struct_fields, with_aliases, with_path
from redrive.contract.refusals import check_queue_name, exceeded, refusal
from redrive.contract.shapes import Publish, PublishBatch, PublishBatchWire, PublishEntry
from redrive.domain import limits
from redrive.domain.errors import InvalidRequest, PayloadTooLarge, RedriveError

_PUBLISH = msgspec.json.Decoder(Publish)
_BATCH = msgspec.json.Decoder(PublishBatchWire)
_MEMBERS = msgspec.json.Decoder(dict[str, Raw])
_LIST = msgspec.json.Decoder(list[Raw])
_STRING = msgspec.json.Decoder(str)
_KEYS = ("idempotency_key", "message_group_id", "deduplication_id", "job_key")
_LOOK_AT = (b'"idempotency_key"', b'"traceparent"', b'"batch"')
_ALIASES = {"body": "payload"}


def decode_publish(params: dict[str, str], body: bytes) -> tuple[Publish, list[str]]:
    """The request and what it ignored; raises InvalidRequest, LimitExceeded or PayloadTooLarge."""
    ignored: list[str] = []
    try:
        if params:
            raise msgspec.ValidationError
        request = _PUBLISH.decode(body)
    except msgspec.ValidationError:
        request, ignored = _publish_slowly(params, body)
    except (msgspec.DecodeError, RecursionError) as error:
        if body.strip():
            raise refusal(error, None, Publish) from None
        request, ignored = _publish_slowly(params, body)
    check_queue_name(request.queue, "queue")
    check_entry(request, "", plain=is_plain(body))
    return request, ignored


def decode_publish_batch(params: dict[str, str], body: bytes) -> tuple[PublishBatch, list[str]]:
    """As :func:`decode_publish`; an entry's own fault is in the request's ``refused``."""
    ignored: list[str] = []
    refused: dict[int, Any] = {}
    try:
        if params:
            raise msgspec.ValidationError
        wire = _BATCH.decode(body)
    except msgspec.ValidationError:
        wire, refused, ignored = _batch_slowly(params, body)
    except (msgspec.DecodeError, RecursionError) as error:
        if body.strip():
            raise refusal(error, None, PublishBatchWire) from None
        wire, refused, ignored = _batch_slowly(params, body)
    check_queue_name(wire.queue, "queue")
    if len(body) > limits.BATCH_BYTES_MAX:
        _check_batch_bytes(wire.messages)
    request = PublishBatch(
        queue=wire.queue, messages=wire.messages, idempotency_key=wire.idempotency_key, refused=refused
    )
    plain = is_plain(body)
    if (
        not plain
        or len(body) > limits.BODY_BYTES_MAX
        or any(name in body for name in _LOOK_AT)
        or (len(body) > limits.HEADERS_BYTES_MAX and b'"headers"' in body)
    ):
        _look_at_entries(request, body, plain)
    return request, ignored


def check_entry(entry: PublishEntry, prefix: str, *, plain: bool) -> None:
    """What the annotations cannot say: bytes of payload, keys and headers; ``batch``; ``traceparent``."""
    size = len(memoryview(entry.payload))
    if size > limits.BODY_BYTES_MAX:
        raise PayloadTooLarge(
            f"{prefix}payload must be at most {limits.BODY_BYTES_MAX} bytes, got {size}",
            hint="Store it elsewhere and publish a reference to it.",
            details={"field": prefix + "payload", "limit": limits.BODY_BYTES_MAX, "actual": size},
        )
    if entry.batch is not None:
        raise InvalidRequest(
            f"{prefix}batch is not supported by this version",
            hint="Publish without batch; a batch's follow-up is not kept yet.",
            details={"field": prefix + "batch"},
        )
    if not plain:
        check_key_bytes(entry, _KEYS, prefix)
    if entry.traceparent is not None:
        entry.headers = {"traceparent": entry.traceparent, **(entry.headers or {})}
    if entry.headers:
        _check_headers(entry.headers, prefix)


def check_key_bytes(request: Any, names: tuple[str, ...], prefix: str = "") -> None:
    """Raise when one of the named fields is above the bytes of a key, or has a NUL."""
    for name in names:
        value = getattr(request, name)
        size = 0 if value is None else len(value.encode())
        if size > limits.KEY_BYTES_MAX:
            raise exceeded(prefix + name, "at most", limits.KEY_BYTES_MAX, size, " bytes")
    check_no_nul(request, names, prefix)


def check_no_nul(request: Any, names: tuple[str, ...], prefix: str = "") -> None:
    """Raise when one of the named fields has a NUL, which PostgreSQL takes in no text."""
    for name in names:
        if "\x00" in (getattr(request, name) or ""):
            raise InvalidRequest(f"{prefix}{name} must not contain U+0000", details={"field": prefix + name})


def _check_headers(headers: dict[str, str], prefix: str) -> None:
    if len(headers) > limits.HEADERS_COUNT_MAX:
        raise exceeded(prefix + "headers", "at most", limits.HEADERS_COUNT_MAX, len(headers), " entries")
    size = sum(len(name.encode()) + len(value.encode()) for name, value in headers.items())
    if size > limits.HEADERS_BYTES_MAX:
        raise exceeded(prefix + "headers", "at most", limits.HEADERS_BYTES_MAX, size, " bytes")


def _check_batch_bytes(entries: list[PublishEntry]) -> None:
    size = sum(len(memoryview(entry.payload)) for entry in entries)
    if size > limits.BATCH_BYTES_MAX:
        raise PayloadTooLarge(
            f"messages must carry at most {limits.BATCH_BYTES_MAX} bytes of payloads, got {size}",
            hint="Send several batches.",
            details={"field": "messages", "limit": limits.BATCH_BYTES_MAX, "actual": size},
        )


def _look_at_entries(request: PublishBatch, body: bytes, plain: bool) -> None:
    positions = [n for n in range(len(request.messages) + len(request.refused)) if n not in request.refused]
    kept: list[PublishEntry] = []
    raw: list[Raw] | None = None
    for position, entry in zip(positions, request.messages, strict=True):
        try:
            check_entry(entry, f"messages[{position}].", plain=plain)
        except RedriveError as error:
            request.refused[position] = error
            continue
        if entry.idempotency_key is not None:
            raw = raw or _LIST.decode(_MEMBERS.decode(body)["messages"])
            named = {"queue": request.queue}
            request.entry_hashes[len(kept)] = request_hash(bytes(raw[position]), named)
        kept.append(entry)
    request.messages = kept
    if not plain:
        check_key_bytes(request, ("idempotency_key",))


def _members(body: bytes, shape: type[Any]) -> dict[str, Raw]:
    if not body.strip():
        return {}
    try:
        return _MEMBERS.decode(body)
    except msgspec.ValidationError:
        parse(body)  # says that it is no object
        raise
    except (msgspec.DecodeError, RecursionError) as error:
        raise refusal(error, None, shape) from None


def _text_members(members: dict[str, Raw], params: dict[str, str]) -> dict[str, Raw]:
    if not params:
        return members
    given = members.get("queue")
    named: dict[str, Any] = {}
    if given is not None and bytes(given) != b"null":
        try:
            named["queue"] = _STRING.decode(given)
        except msgspec.ValidationError:
            named["queue"] = ""  # a wrong type contradicts the path too
    with_path(named, params)
    return {**members, **{name: Raw(msgspec.json.encode(value)) for name, value in params.items()}}


def _canonical(members: dict[str, Raw], prefix: str) -> dict[str, bytes]:
    texts = {name: bytes(value) for name, value in members.items()}
    both = "body" in texts and "payload" in texts
    if both and texts["body"] != texts["payload"] and b"null" in (texts["body"], texts["payload"]):
        texts.pop("body" if texts["body"] == b"null" else "payload")
    return with_aliases(texts, _ALIASES, prefix)


def _joined(members: dict[str, bytes]) -> bytes:
    return b"{" + b",".join(msgspec.json.encode(name) + b":" + text for name, text in members.items()) + b"}"


def _publish_slowly(params: dict[str, str], body: bytes) -> tuple[Publish, list[str]]:
    members = _canonical(_text_members(_members(body, Publish), params), "")
    known = {n: t for n, t in members.items() if n in struct_fields(Publish) and _present(n, t)}
    ignored = [name[:200] for name, text in members.items() if name not in known and text != b"null"]
    return _decode_known(_PUBLISH, known, Publish, ""), ignored


def _present(name: str, text: bytes) -> bool:
    return text != b"null" or name == "payload"


def _decode_known(decoder: Any, known: dict[str, bytes], shape: type[Any], prefix: str) -> Any:
    whole = parse(b'{"n":%s}' % known.get("priority", b"null"))["n"]
    if type(whole) is int:  # 3.0 is 3
        known["priority"] = msgspec.json.encode(whole)
    joined = _joined(known)
    try:
        return decoder.decode(joined)
    except msgspec.ValidationError as error:
        raise refusal(error, parse(joined), shape, prefix) from None


_ENTRY = msgspec.json.Decoder(PublishEntry)


def _batch_slowly(params: dict[str, str], body: bytes) -> tuple[PublishBatchWire, dict[int, Any], list[str]]:
    members = _text_members(_members(body, PublishBatchWire), params)
    texts = {name: bytes(value) for name, value in members.items()}
    known = {n: t for n, t in texts.items() if n in struct_fields(PublishBatchWire) and t != b"null"}
    ignored = [name[:200] for name, text in texts.items() if name not in known and text != b"null"]
    entries = known.get("messages", b"")
    raws: list[Raw] = []
    if entries[:1] == b"[":
        raws = _LIST.decode(entries)
        if len(raws) > limits.BATCH_ENTRIES_MAX:
            raise exceeded("messages", "at most", limits.BATCH_ENTRIES_MAX, len(raws), " entries")
        known["messages"] = b"[]"
    wire: PublishBatchWire = _decode_known(_BATCH, known, PublishBatchWire, "")
    refused: dict[int, Any] = {}
    for position, raw in enumerate(raws):
        try:
            wire.messages.append(_entry(bytes(raw), f"messages[{position}]."))
        except RedriveError as error:
            refused[position] = error
    return wire, refused, ignored


def _entry(text: bytes, prefix: str) -> PublishEntry:
    if text[:1] != b"{":
        return PublishEntry(payload=Raw(text))
    members = _MEMBERS.decode(text)
    if "payload" not in members and "body" not in members:
        return PublishEntry(payload=Raw(text))
    texts = _canonical(members, prefix)
    unknown = [n for n, value in texts.items() if n not in struct_fields(PublishEntry) and value != b"null"]
    if unknown:
        raise InvalidRequest(
            f"{prefix}{unknown[0][:80]} is not a field of an entry with a payload",
            hint="Put it inside the payload, or send the bare value as the entry.",
            details={"field": f"{prefix}{unknown[0][:80]}"},
        )
    known = {n: t for n, t in texts.items() if n in struct_fields(PublishEntry) and _present(n, t)}
    entry: PublishEntry = _decode_known(_ENTRY, known, PublishEntry, prefix)
    return entry
