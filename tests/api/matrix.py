"""Every way in which every field of every route can be wrong, generated from the contract's declarations."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from msgspec import inspect

from redrive.contract import CAPABILITIES, Capability
from redrive.contract.capability import parameter_of
from redrive.contract.reading import INSTANTS
from redrive.contract.schemas import wire_of

Path = tuple[str | int, ...]
NAMES = {"queue", "name", "dead_letter_queue"}
WRONG = {"string": '"text"', "number": "7.5", "bool": "true", "list": "[1]", "object": '{"a":1}'}
HUGE = "9" * 5_000
_FREE_TEXT = {"reason", "error", "traceparent", "redact", "headers"}  # NUL is cleaned, or kept as JSON
_MARK = "\u2205 here"


@dataclass(frozen=True)
class Field:
    """One field of a request: where it stands, what it takes, its bounds."""

    path: Path
    kind: str  # str, name, enum, instant, int, float, bool, list, object, record, text_or_object, raw
    required: bool
    minimum: float | None = None
    maximum: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    item: str = ""  # the kind of a list's items

    @property
    def name(self) -> str:
        """As refusals name it: ``messages[0].priority``."""
        text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)
        return text.removeprefix(".")


@dataclass(frozen=True)
class Fault:
    """One wrong request: what is wrong, the body or query, the refusal that must come."""

    capability: Capability
    about: Field | None
    what: str
    target: str
    body: bytes | None
    statuses: tuple[int, ...]
    names: str  # what `details.field` says
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """For messages."""
        return f"{self.capability.id} {self.about.name if self.about else ''} {self.what}"


def fields_of(capability: Capability) -> list[Field]:
    """Every field of the request, also those of objects and entries inside of it."""
    shape = inspect.type_info(wire_of(capability))
    assert isinstance(shape, inspect.StructType)
    return list(_walk(shape, ()))


def _walk(shape: inspect.StructType, path: Path) -> Iterator[Field]:
    for found in shape.fields:
        kind = _bare(found.type)
        here = (*path, found.name)
        yield _field(kind, here, found.required)
        if isinstance(kind, inspect.StructType):
            yield from _walk(kind, here)
        elif isinstance(kind, inspect.ListType):
            inner = _bare(kind.item_type)
            if isinstance(inner, inspect.StructType):
                yield from _walk(inner, (*here, 0))


def _bare(kind: Any) -> Any:
    if isinstance(kind, inspect.Metadata):
        return _bare(kind.type)
    if isinstance(kind, inspect.UnionType):
        parts = [part for part in kind.types if not isinstance(part, inspect.NoneType)]
        return _bare(parts[0]) if len(parts) == 1 else kind
    return kind


def _field(kind: Any, path: Path, required: bool) -> Field:
    name = path[-1]
    if name in INSTANTS:
        return Field(path, "instant", required)
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        word = "int" if isinstance(kind, inspect.IntType) else "float"
        return Field(path, word, required, minimum=kind.ge, maximum=kind.le)
    if isinstance(kind, inspect.StrType):
        is_name = name in NAMES and kind.max_length is None
        word = "name" if is_name else "str"
        return Field(path, word, required, min_length=kind.min_length, max_length=kind.max_length)
    if isinstance(kind, inspect.ListType):
        item = _field(_bare(kind.item_type), (*path, 0), True).kind
        lengths = {"min_length": kind.min_length, "max_length": kind.max_length}
        return Field(path, "list", required, item=item, **lengths)
    if isinstance(kind, inspect.DictType):
        return Field(path, "object", required, max_length=kind.max_length)
    words = {
        inspect.LiteralType: "enum", inspect.BoolType: "bool", inspect.StructType: "record",
        inspect.RawType: "raw", inspect.UnionType: "text_or_object",
    }  # fmt: skip
    return Field(path, words[type(kind)], required)


_TAKES = {
    "str": {"string"}, "name": {"string"}, "enum": set(), "instant": set(), "int": set(), "float": {"number"},
    "bool": {"bool"}, "list": set(), "object": {"object"}, "record": {"object"},
    "text_or_object": {"string", "object"}, "raw": set(WRONG),
}  # fmt: skip


def faults(capability: Capability) -> Iterator[Fault]:
    """Every fault of one route."""
    if capability.method == "POST":
        yield from _unknown(capability)
    for about in fields_of(capability):
        if about.path[0] == _in_path(capability):
            yield from _path_faults(capability, about)
        elif capability.method == "POST":
            yield from _body_faults(capability, about)
        elif about.path != ("idempotency_key",):
            yield from _query_faults(capability, about)


def _body_faults(capability: Capability, about: Field) -> Iterator[Fault]:
    def fault(what: str, text: str | None, *statuses: int, names: str | None = None) -> Fault:
        target, body = placed(capability, about.path, text)
        return Fault(capability, about, what, target, body, statuses, names or about.name)

    if about.required and about.path[:2] != ("messages", 0):  # an entry without payload is one itself
        yield fault("missing", None, 400)
        if about.kind != "raw":
            yield fault("null", "null", 400)
    for word, text in WRONG.items():
        if word not in _TAKES[about.kind] and (about.item, word) != ("record", "list"):
            items = about.kind == word == "list"
            yield fault(f"a {word}", text, 400, names=f"{about.name}[0]" if items else None)
    for what, value, status in _bounds(about):
        yield fault(what, json.dumps(value), status)
    yield fault("NaN", "NaN", 400, names="body")
    yield fault("a lone surrogate", '"\\ud800"', 400, names="body")
    yield fault("nesting", "[" * 200 + "]" * 200, 400, names="body")
    if about.kind in ("str", "name", "enum", "instant") and about.path[-1] not in _FREE_TEXT:
        yield fault("NUL", '"a\\u0000"', 400)
    if about.kind in ("int", "float"):
        yield fault("a huge integer", HUGE, 400, 422)
        yield fault("beyond a double", "1e999", 400, 422)
    if about.kind == "object":
        yield fault("a wrong value", '{"a":1}', 400)


def _bounds(about: Field) -> Iterator[tuple[str, Any, int]]:
    """What is wrong, the value, the status."""
    if about.minimum is not None:
        yield "too small", about.minimum - 1, 422
    if about.maximum is not None:
        yield "too large", about.maximum + 1, 422
    if about.max_length is not None:
        yield "too long", _of_length(about, about.max_length + 1), 422
    if about.min_length:
        yield "empty", _of_length(about, 0), 400
    if about.kind == "name":
        yield "too long", "q" * 85, 422
        yield "empty", "", 400
        yield "no name", "a b", 400


def _of_length(about: Field, length: int) -> Any:
    if about.kind == "list":
        return [{"payload": 1} if about.item == "record" else "consume"] * length
    return {f"h{n}": "v" for n in range(length)} if about.kind == "object" else "x" * length


def _query_faults(capability: Capability, about: Field) -> Iterator[Fault]:
    def fault(what: str, text: str, *statuses: int, raw: bool = False, names: str | None = None) -> Fault:
        target, _ = placed(capability, (), None)
        given = text if raw else quote(text, safe="")
        target = f"{target.partition('?')[0]}?{about.name}={given}"
        return Fault(capability, about, what, target, None, statuses, names or about.name)

    yield fault("invalid UTF-8", "%ff", 400, raw=True, names="query")
    if about.kind in ("int", "enum", "instant"):
        for text in ("text", "1.5", "true", "[]", "{}", "1e999", "\x00"):
            yield fault(f"as {text!r}", text, 400)
    if about.kind == "int":
        yield fault("a huge integer", HUGE, 400, 422)
    if about.kind in ("str", "name") and about.path[-1] not in _FREE_TEXT:
        yield fault("NUL", "a\x00", 400)
    for what, value, status in _bounds(about):
        if value != "":  # `?limit=` is the same as absent
            yield fault(what, str(value), status)
    unknown, _ = placed(capability, (), None)
    strict = {"Prefer": "handling=strict"}
    target = f"{unknown.partition('?')[0]}?colour=red"
    yield Fault(capability, about, "unknown", target, None, (400,), "colour", strict)


def _path_faults(capability: Capability, about: Field) -> Iterator[Fault]:
    _, body = placed(capability, (), None)
    too_long = "q" * 85 if about.kind == "name" else "x" * 201
    cases = {"NUL": "a%00", "invalid UTF-8": "%ff", "too long": too_long, "empty": ""}
    if about.kind == "name":
        cases["no name"] = "a%20b"
    for what, text in cases.items():
        target = re.sub(r"\{\w+\}", text, capability.path)
        yield Fault(capability, about, what, target, body, (400, 404, 405, 422), "")


def _unknown(capability: Capability) -> Iterator[Fault]:
    strict = {"Prefer": "handling=strict"}
    levels = {found.path[:-1] for found in fields_of(capability)}
    for level in sorted(levels, key=len):
        path = (*level, "colour")
        target, body = placed(capability, path, '"red"')
        prefix = Field(path, "", False).name
        yield Fault(capability, None, f"unknown {prefix}", target, body, (400,), prefix, strict)


def _in_path(capability: Capability) -> str | None:
    return parameter_of(capability.path)


def placed(capability: Capability, path: Path, text: str | None) -> tuple[str, bytes | None]:
    """The example as target and body, with the JSON ``text`` at ``path`` (None: without it)."""
    fields = json.loads(json.dumps(capability.example))
    if path:
        _set(fields, path, None if text is None else _MARK)
    target = capability.path
    name = _in_path(capability)
    if name is not None:
        target = target.replace(f"{{{name}}}", quote(str(fields.pop(name)), safe=""))
    if capability.method != "POST":
        return target, None
    raw = json.dumps(fields, ensure_ascii=False)
    if text is not None:
        assert raw.count(f'"{_MARK}"') == 1
        raw = raw.replace(f'"{_MARK}"', text)
    return target, raw.encode()


_WHOLE = {"evidence"}


def _set(fields: Any, path: Path, value: Any) -> None:
    for step, then in itertools.pairwise(path):
        if isinstance(step, int):
            fields = fields[step]
        elif step in _WHOLE:
            fields = fields[step]  # its other fields are required too
        elif isinstance(then, int):
            if "evidence" not in str(fields[step]):
                fields[step] = [{"payload": 1} if step == "messages" else {"message_id": "m"}]
            fields = fields[step]
        else:
            fields[step] = {}
            fields = fields[step]
    if value is None:
        fields.pop(path[-1], None)
    else:
        fields[path[-1]] = value


ALL = {capability.id: list(faults(capability)) for capability in CAPABILITIES}
