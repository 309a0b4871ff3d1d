"""Tolerant reading of a parsed request: aliases, nulls, unknown fields, instants, then the shape.

This is the way for every route that carries no payload, and for the others when the short way in
:mod:`redrive.contract.decode` refused.
"""

from __future__ import annotations

import json
import types
from functools import cache
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from redrive.contract.instants import instant_ms
from redrive.contract.refusals import refusal
from redrive.domain.errors import InvalidRequest

_DIGITS_MAX = 400  # more is beyond every double, and Python refuses to read thousands of them
INSTANTS = frozenset({"since", "until", "expires_at", "completed_at"})


def parse(body: bytes) -> dict[str, Any]:
    """The request's object; an empty body is ``{}``. Numbers beyond a double become infinite."""
    if not body.strip():
        return {}
    try:
        msgspec.json.decode(body, type=msgspec.Raw)  # strict syntax: NaN and the like are refused here
        parsed = json.loads(body, parse_int=_whole, parse_float=_number)
    except (ValueError, RecursionError) as error:
        raise refusal(error, None, dict) from None
    if not isinstance(parsed, dict):
        raise InvalidRequest(
            f"the body must be a JSON object, got {'a list' if isinstance(parsed, list) else 'a value'}",
            details={"field": "body"},
        )
    return parsed


def _whole(text: str) -> int | float:
    return int(text) if len(text) <= _DIGITS_MAX else float(text)


def _number(text: str) -> int | float:
    # 10.0 is the integer 10, as in JSON Schema; what a double cannot tell apart stays a double
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def with_aliases(fields: dict[str, Any], aliases: dict[str, str], prefix: str = "") -> dict[str, Any]:
    """``fields`` under their canonical names. An alias beside its name must say the same."""
    for alias, name in aliases.items():
        if alias not in fields:
            continue
        fields = dict(fields)
        value = fields.pop(alias)
        if value is None and name != "payload":
            continue
        if name not in fields or (fields[name] is None and name != "payload"):
            fields[name] = value
        elif fields[name] != value:
            raise InvalidRequest(
                f"{prefix}{alias} is another name of {name}, and they differ",
                hint=f"Send {name} only.",
                details={"field": prefix + alias},
            )
    return fields


def with_path(fields: dict[str, Any], params: dict[str, str]) -> dict[str, Any]:
    """``fields`` with the path's parameters, which a field of the same name must not contradict."""
    for name, value in params.items():
        given = fields.get(name)
        if given is not None and given != value:
            raise InvalidRequest(
                f"{name} is {value[:100]!r} in the path and another in the body", details={"field": name}
            )
    return {**fields, **params}


def read(
    fields: dict[str, Any], shape: type[Any], *, lax: bool = False, prefix: str = ""
) -> tuple[Any, list[str]]:
    """``fields`` as ``shape``, and the dotted paths of what the shape does not know.

    ``lax`` reads numbers from text, for query strings. Raises InvalidRequest or LimitExceeded.
    """
    ignored: list[str] = []
    known = _known(fields, shape, prefix, ignored)
    try:
        return msgspec.convert(known, shape, strict=not lax), ignored
    except msgspec.ValidationError as error:
        raise refusal(error, known, shape, prefix) from None


def _known(fields: dict[str, Any], shape: type[Any], prefix: str, ignored: list[str]) -> dict[str, Any]:
    nested: dict[str, type[Any] | None] = struct_fields(shape)  # type: ignore[arg-type]
    known: dict[str, Any] = {}
    for name, value in fields.items():
        if name not in nested:
            if value is not None:
                ignored.append((prefix + name)[:200])
        elif value is not None:
            known[name] = _inside(name, value, nested[name], prefix, ignored)
    return known


def _inside(name: str, value: Any, inner: type[Any] | None, prefix: str, ignored: list[str]) -> Any:
    """A known field's value: structs in it are read the same way, instants become milliseconds."""
    if inner is not None and isinstance(value, dict):
        return _known(value, inner, f"{prefix}{name}.", ignored)
    if inner is not None and isinstance(value, list):
        return [_inside(f"{name}[{n}]", each, inner, prefix, ignored) for n, each in enumerate(value)]
    if name in INSTANTS:
        if not isinstance(value, str):
            raise InvalidRequest(
                f"{prefix}{name} must be an RFC 3339 time as a string", details={"field": prefix + name}
            )
        return instant_ms(value, prefix + name)
    return value


@cache
def struct_fields(shape: type[Any]) -> dict[str, type[Any] | None]:
    """The fields of a struct; a field that is itself a struct, or a list of one, maps to it."""
    hints = get_type_hints(shape)
    return {name: _struct_in(hints[name]) for name in shape.__struct_fields__}


def _struct_in(hint: Any) -> type[Any] | None:
    if get_origin(hint) in (Annotated, list):
        return _struct_in(get_args(hint)[0])
    if get_origin(hint) in (Union, types.UnionType):
        return next(filter(None, map(_struct_in, get_args(hint))), None)
    return hint if isinstance(hint, type) and issubclass(hint, msgspec.Struct) else None
