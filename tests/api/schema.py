"""Values of a JSON Schema, and whether a value is one: the keywords that the contract's documents use."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import strategies as st

_SILENT = {"title", "description", "default", "format", "$schema", "$defs"}
_KNOWN = {
    "type", "anyOf", "enum", "const", "$ref", "properties", "required", "items", "additionalProperties",
    "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "maxProperties", "pattern",
}  # fmt: skip
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "integer": (int,), "number": (int, float),
    "boolean": (bool,), "null": (type(None),),
}  # fmt: skip
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)


class Schemas:
    """The components of one OpenAPI document."""

    def __init__(self, components: dict[str, Any]) -> None:
        self._components = components

    def _found(self, schema: dict[str, Any]) -> dict[str, Any]:
        unknown = schema.keys() - _SILENT - _KNOWN
        assert not unknown, f"keywords that are not checked: {sorted(unknown)}"
        name = schema.get("$ref")
        if name is None:
            return schema
        found: dict[str, Any] = self._components[name.rpartition("/")[2]]
        return found

    def complaints(self, value: Any, schema: dict[str, Any], at: str = "$") -> list[str]:
        """Why ``value`` is not one of ``schema``; empty when it is."""
        schema = self._found(schema)
        found: list[str] = []
        if "anyOf" in schema:
            each = [self.complaints(value, part, at) for part in schema["anyOf"]]
            if all(each):
                found += min(each, key=len)
        if "enum" in schema and value not in schema["enum"]:
            found.append(f"{at} is none of the enum: {value!r}")
        if "const" in schema and value != schema["const"]:
            found.append(f"{at} is not {schema['const']!r}: {value!r}")
        if "type" in schema:
            fits = isinstance(value, _TYPES[schema["type"]])
            if isinstance(value, bool) and schema["type"] != "boolean":
                fits = False
            if not fits:
                return [*found, f"{at} is no {schema['type']}: {value!r}"]
        return [*found, *_bounds(value, schema, at), *self._inside(value, schema, at)]

    def _inside(self, value: Any, schema: dict[str, Any], at: str) -> list[str]:
        found: list[str] = []
        if isinstance(value, list):
            for number, item in enumerate(value):
                found += self.complaints(item, schema.get("items", {}), f"{at}[{number}]")
        if isinstance(value, dict):
            properties = schema.get("properties", {})
            found += [f"{at}.{name} is missing" for name in schema.get("required", []) if name not in value]
            for name, inner in value.items():
                rest = schema.get("additionalProperties", {})
                found += self.complaints(inner, properties.get(name, rest or {}), f"{at}.{name}")
        return found

    def values(self, schema: dict[str, Any], known: dict[str, st.SearchStrategy[Any]]) -> Any:
        """A strategy for values of ``schema``, some of them near its edges; ``known`` are fields by name."""
        schema = self._found(schema)
        if "anyOf" in schema:
            return st.one_of([self.values(part, known) for part in schema["anyOf"]])
        if "enum" in schema:
            return st.sampled_from(schema["enum"])
        if "const" in schema:
            return st.just(schema["const"])
        kind = schema.get("type")
        if kind == "object":
            return self._objects(schema, known)
        if kind == "array":
            return st.lists(
                self.values(schema.get("items", {}), known), min_size=schema.get("minItems", 0), max_size=3
            )
        return _plain(kind, schema)

    def _objects(self, schema: dict[str, Any], known: dict[str, st.SearchStrategy[Any]]) -> Any:
        required = schema.get("required", [])
        fields = {
            name: known[name] if name in known else self.values(inner, known)
            for name, inner in schema.get("properties", {}).items()
        }
        if not fields:
            rest = schema.get("additionalProperties")
            return st.dictionaries(TEXT, self.values(rest, known) if rest else ANYTHING, max_size=3)
        optional = {name: value for name, value in fields.items() if name not in required}
        return st.fixed_dictionaries({name: fields[name] for name in required}, optional=optional)


def _bounds(value: Any, schema: dict[str, Any], at: str) -> list[str]:
    found: list[str] = []
    number = value if isinstance(value, int | float) else 0
    if not schema.get("minimum", number) <= number <= schema.get("maximum", number):
        found.append(f"{at} is out of bounds: {value!r}")
    sizes = {str: ("minLength", "maxLength"), list: ("minItems", "maxItems"), dict: ("", "maxProperties")}
    low, high = sizes.get(type(value), ("", ""))
    if low or high:
        size = len(value)
        if size < schema.get(low, size) or size > schema.get(high, size):
            found.append(f"{at} has a length of {size}")
    if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
        found.append(f"{at} does not match {schema['pattern']}")
    return found


def _plain(kind: str | None, schema: dict[str, Any]) -> Any:
    low, high = schema.get("minimum"), schema.get("maximum")
    edges = st.sampled_from([edge for edge in (low, high) if edge is not None] or [0])
    if kind == "integer":
        return edges | st.integers(low, high)
    if kind == "number":
        return edges | st.floats(low, high, allow_nan=False, allow_infinity=False)
    if kind == "boolean":
        return st.booleans()
    if kind == "null":
        return st.none()
    if kind == "string" and schema.get("format") == "date-time":
        return st.datetimes().map(lambda at: at.isoformat(timespec="milliseconds") + "Z")
    if kind == "string" and "pattern" in schema:
        return st.from_regex(schema["pattern"], fullmatch=True)
    if kind == "string":
        longest = schema.get("maxLength", 20)
        characters = st.characters(exclude_categories=["Cs"])
        return st.text(characters, min_size=schema.get("minLength", 0), max_size=min(20, longest))
    return ANYTHING
