"""From what the decoder refused to a refusal that names the field, the limit and what came."""

from __future__ import annotations

import json
import re
import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from redrive.domain import limits
from redrive.domain.errors import InvalidRequest, LimitExceeded, RedriveError

_PATH = re.compile(r" - at `\$?([^`]*)`$")
_TOKEN = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_BOUND = re.compile(r"Expected `(\w+)`( of length)? (>=|<=|>|<) (\S+)")
_TYPE = re.compile(r"Expected `([^`]+)`, got `([^`]+)`")
_FIELD = re.compile(r"Object (?:missing required|contains unknown) field `([^`]*)`")
_WANTED = {
    "int": "an integer", "float": "a number", "str": "a string", "bool": "true or false",
    "object": "an object", "array": "a list", "null": "null",
}  # fmt: skip
_QUEUE_NAME = re.compile(limits.QUEUE_NAME_PATTERN)
_DERIVED_NAME = re.compile(limits.DERIVED_QUEUE_NAME_PATTERN)


def refusal(error: Exception, document: Any, shape: type, prefix: str = "") -> RedriveError:
    """The refusal for msgspec's ``error`` about ``document`` (the parsed request), read as ``shape``.

    ``prefix`` stands before the field's name (``messages[3].``). A bound of section 2 is LimitExceeded,
    everything else InvalidRequest.
    """
    if isinstance(error, RecursionError) or not isinstance(error, msgspec.ValidationError):
        return InvalidRequest(f"the body is not valid JSON: {str(error)[:200]}", details={"field": "body"})
    text = str(error)
    path = _PATH.search(text)
    tokens = [name or index for name, index in _TOKEN.findall(path[1])] if path else []
    member = bool(tokens) and tokens[-1] == "..."
    if member:
        tokens.pop()
    reason = text[: path.start()] if path else text
    if found := _FIELD.match(reason):
        name = prefix + _dotted([*tokens, found[1]])
        return InvalidRequest(f"{name} is required", details={"field": name})
    name = (prefix + _dotted(tokens)) or "the body"
    name = name.removesuffix(".")
    actual = _at(document, tokens)
    if found := _BOUND.match(reason):
        return _bound_refusal(name, found, actual)
    if reason.startswith("Invalid enum value"):
        allowed = ", ".join(repr(value) for value in _allowed(shape, tokens))
        return _wrong(name, f"one of {allowed}", actual)
    if found := _TYPE.match(reason):
        wanted = [_WANTED.get(part.strip(), part) for part in found[1].split("|")]
        if member:
            return InvalidRequest(
                f"every value of {name} must be {wanted[0]}", details={"field": name, "expected": wanted[0]}
            )
        return _wrong(name, " or ".join(part for part in wanted if part != "null"), actual)
    if reason.lower().endswith("out of range"):
        return _wrong(name, "a number that a double can hold", actual)
    if reason.startswith("Expected `str` matching regex"):
        return _wrong(name, "text of letters, digits, '.', '_' and '-'", actual)
    return InvalidRequest(f"{name}: {reason[:200].lower()}", details={"field": name})


def check_queue_name(name: str, field: str, *, derived: bool = True) -> None:
    """Raise unless ``name`` is a queue's name; LimitExceeded when only its length is wrong."""
    pattern = _DERIVED_NAME if derived else _QUEUE_NAME
    if pattern.fullmatch(name):
        return
    limit = limits.QUEUE_NAME_CHARS_MAX
    if derived and name.endswith(".dlq"):
        limit = limits.DERIVED_QUEUE_NAME_CHARS_MAX
    if len(name) > limit and re.fullmatch(r"[A-Za-z0-9._-]+", name):
        raise exceeded(field, "at most", limit, len(name), " characters")
    raise _wrong(field, f"a name of 1 to {limit} letters, digits, '.', '_' and '-'", name)


def exceeded(field: str, bound: str, limit: float, actual: float, unit: str = "") -> LimitExceeded:
    """LimitExceeded: "``field`` must be at most 9, got 10"."""
    return LimitExceeded(
        f"{field} must be {bound} {_number(limit)}{unit}, got {_number(actual)}",
        details={"field": field, "limit": _exact(limit), "actual": _exact(actual)},
    )


def shown(value: Any) -> str:
    """What came, short enough for a message."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= 80 else text[:80] + "…"


def _wrong(name: str, wanted: str, actual: Any) -> InvalidRequest:
    came = shown(actual)
    return InvalidRequest(
        f"{name} must be {wanted}, got {came}", details={"field": name, "expected": wanted, "actual": came}
    )


def _bound_refusal(name: str, found: re.Match[str], actual: Any) -> RedriveError:
    kind, of_length, sign, limit = found[1], found[2], found[3], float(found[4])
    unit = ""
    if of_length:
        unit = {"str": " characters", "array": " entries", "object": " entries"}.get(kind, "")
        if sign == ">=" and limit == 1:
            return InvalidRequest(f"{name} must not be empty", details={"field": name})
        actual = len(actual) if isinstance(actual, str | list | dict) else 0
    number = _read_number(actual) if isinstance(actual, str) else actual  # a query's numbers are text
    return exceeded(name, "at least" if sign == ">=" else "at most", limit, number, unit)


def _read_number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _exact(value: float) -> int | float | str:
    if abs(value) >= 2**53:
        return str(value)[:80]  # a program that reads doubles would get another number
    return int(value) if value == int(value) else value


def _number(value: float) -> str:
    return str(_exact(value))


def _dotted(tokens: list[str]) -> str:
    text = ""
    for token in tokens:
        text += f"[{token}]" if token.isdigit() else f".{token}" if text else token
    return text


def _at(document: Any, tokens: list[str]) -> Any:
    for token in tokens:
        try:
            document = document[int(token)] if isinstance(document, list) else document[token]
        except (KeyError, IndexError, ValueError, TypeError):
            return None
    return document


def _allowed(shape: Any, tokens: list[str]) -> tuple[Any, ...]:
    for token in tokens:
        shape = _bare(shape)
        if get_origin(shape) is list:
            shape = get_args(shape)[0]
        else:
            hints = get_type_hints(shape)
            shape = hints.get(token)
    shape = _bare(shape)
    return get_args(shape) if get_origin(shape) is Literal else ()


def _bare(shape: Any) -> Any:
    while True:
        if get_origin(shape) is Annotated:
            shape = get_args(shape)[0]
        elif get_origin(shape) in (Union, types.UnionType):
            shape = next(part for part in get_args(shape) if part is not type(None))
        else:
            return shape
