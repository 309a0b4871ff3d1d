"""JSON Schemas 2020-12 of requests and answers, from the same structs that decode and encode."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from redrive.contract.capability import Capability
from redrive.contract.shapes import ErrorBody

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REF = "#/components/schemas/{name}"


@cache
def _components() -> tuple[dict[type, dict[str, Any]], dict[str, Any]]:
    from redrive.contract.capabilities import CAPABILITIES

    shapes: dict[type, None] = {ErrorBody: None}
    for capability in CAPABILITIES:
        shapes[wire_of(capability)] = None
        shapes[capability.answer] = None
    schemas, components = msgspec.json.schema_components(list(shapes), ref_template=_REF)
    return dict(zip(shapes, schemas, strict=True)), {k: _tidy(v) for k, v in components.items()}


def wire_of(capability: Capability) -> type[Any]:
    """The request as it is sent."""
    return capability.wire or capability.request


def components() -> dict[str, Any]:
    """Every shape by name, for OpenAPI; references point to ``#/components/schemas/``."""
    found = _components()[1]
    return {
        **found,
        "Deliveries": _deliveries(found["Deliveries"]),
        "PublishBatchWire": _with_bare_values(found["PublishBatchWire"]),
    }


def params_schema(capability: Capability) -> dict[str, Any]:
    """The request of ``capability`` as a schema that stands alone, with its aliases described."""
    schema = _alone(wire_of(capability).__name__)
    for alias, name in capability.field_aliases.items():
        if name in schema.get("properties", {}):
            schema["properties"][alias] = {"description": f"Another name of `{name}`."}
    return schema


def response_schema(capability: Capability) -> dict[str, Any]:
    """The answer's ``data`` as a schema that stands alone."""
    return _alone(capability.answer.__name__)


def reference(shape: type[Any]) -> dict[str, str]:
    """A reference to ``shape`` among the components."""
    return {"$ref": _REF.format(name=shape.__name__)}


def _alone(name: str) -> dict[str, Any]:
    found = components()
    wanted: dict[str, Any] = {}
    _collect(found[name], found, wanted)
    schema = {"$schema": DIALECT, **_relocated(found[name])}
    if wanted:
        schema["$defs"] = {key: _relocated(value) for key, value in wanted.items()}
    return schema


def _collect(node: Any, found: dict[str, Any], wanted: dict[str, Any]) -> None:
    if isinstance(node, dict):
        name = str(node.get("$ref", "")).rpartition("/")[2]
        if name and name not in wanted:
            wanted[name] = found[name]
            _collect(found[name], found, wanted)
        for value in node.values():
            _collect(value, found, wanted)
    elif isinstance(node, list):
        for value in node:
            _collect(value, found, wanted)


def _relocated(node: Any) -> Any:
    if isinstance(node, dict):
        return {
            key: value.replace("#/components/schemas/", "#/$defs/") if key == "$ref" else _relocated(value)
            for key, value in node.items()
        }
    return [_relocated(value) for value in node] if isinstance(node, list) else node


def _tidy(node: Any) -> Any:
    # unknown fields are ignored and listed; an absent field has no default of null; instants are text
    if isinstance(node, list):
        return [_tidy(value) for value in node]
    if not isinstance(node, dict):
        return node
    tidied = {key: _tidy(value) for key, value in node.items()}
    tidied.pop("additionalProperties", None) if tidied.get("additionalProperties") is False else None
    if tidied.get("format") == "date-time":
        tidied["type"] = "string"
    if "default" in tidied and tidied["default"] is None:
        tidied.pop("default")
    if "description" in tidied:
        tidied["description"] = " ".join(str(tidied["description"]).replace("``", "`").split())
    return tidied


def _deliveries(schema: dict[str, Any]) -> dict[str, Any]:
    items = {**schema["properties"]["messages"], "description": "The same list again."}
    required = [name for name in schema["required"] if name != "messages"]  # `view` leaves one of the two out
    return {**schema, "properties": {**schema["properties"], "items": items}, "required": required}


def _with_bare_values(schema: dict[str, Any]) -> dict[str, Any]:
    messages = schema["properties"]["messages"]
    bare = {"description": "A bare value with neither `payload` nor `body`, which is then the payload."}
    widened = {**messages, "items": {"anyOf": [messages["items"], bare]}}
    return {**schema, "properties": {**schema["properties"], "messages": widened}}
