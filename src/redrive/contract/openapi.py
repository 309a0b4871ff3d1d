"""OpenAPI 3.1 of the contract, derived from the table."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from redrive.contract.capabilities import CAPABILITIES
from redrive.contract.capability import Capability, parameter_of
from redrive.contract.schemas import components, reference, wire_of
from redrive.contract.shapes import ErrorBody
from redrive.domain import limits
from redrive.domain.errors import RedriveError

_METADATA = {
    "type": "object",
    "required": ["request_id", "latency_ms", "vendor", "cost_usd", "cache_hit"],
    "properties": {
        "request_id": {"type": "string", "format": "uuid"},
        "latency_ms": {"type": "integer"},
        "vendor": {"const": "redrive"},
        "cost_usd": {"const": 0},
        "cache_hit": {"type": "boolean", "description": "True on an idempotent replay."},
        "ignored_fields": {"type": "array", "items": {"type": "string"}},
    },
}


@cache
def openapi() -> bytes:
    """The document as JSON."""
    paths: dict[str, dict[str, Any]] = {}
    for capability in CAPABILITIES:
        for n, (method, path) in enumerate(capability.routes):
            paths.setdefault(path, {})[method.lower()] = _operation(capability, path, n)
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "Redrive",
            "version": "1",
            "description": "A durable at-least-once queue, and the proof that a failed job finished once.",
        },
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "servers": [{"url": "/"}],
        "security": [{"key": []}],
        "tags": [{"name": name} for name in dict.fromkeys(c.namespace for c in CAPABILITIES)],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": {**components(), "Metadata": _METADATA, "Failure": _failure_schema()},
        },
    }
    return msgspec.json.encode(document)


def _operation(capability: Capability, path: str, n: int) -> dict[str, Any]:
    path_name = parameter_of(path)
    operation: dict[str, Any] = {
        "operationId": capability.id if n == 0 else f"{capability.id}.{n}",
        "summary": capability.summary,
        "tags": [capability.namespace],
        "x-scope": capability.scope,
        "x-idempotent": capability.idempotent,
        "parameters": _parameters(capability, path_name),
        "responses": {"200": _success(capability), **_failures(capability)},
    }
    if capability.method == "POST":
        operation["requestBody"] = {
            "required": False,
            "content": {"application/json": {"schema": _body(capability, path_name)}},
        }
    return operation


def _parameters(capability: Capability, path_name: str | None) -> list[dict[str, Any]]:
    parameters: list[dict[str, Any]] = []
    properties = components()[wire_of(capability).__name__].get("properties", {})
    if path_name is not None:
        schema = properties.get(path_name, {"type": "string"})
        parameters.append({"name": path_name, "in": "path", "required": True, "schema": schema})
    actor = {
        "name": "X-Redrive-Actor",
        "in": "header",
        "schema": {"type": "string", "maxLength": limits.ACTOR_CHARS_MAX},
    }
    if capability.method != "GET" and capability.scope in ("operate", "admin"):
        parameters.append(actor)
    if capability.method != "POST":
        for name, schema in properties.items():
            if name not in (path_name, "idempotency_key"):
                parameters.append({"name": name, "in": "query", "schema": schema})
        return parameters
    key = {"name": "Idempotency-Key", "in": "header", "schema": {"type": "string", "maxLength": 200}}
    prefer = {"name": "Prefer", "in": "header", "schema": {"type": "string", "enum": ["handling=strict"]}}
    return [*parameters, key, prefer]


def _body(capability: Capability, path_name: str | None) -> dict[str, Any]:
    schema = components()[wire_of(capability).__name__]
    if path_name is None:
        return reference(wire_of(capability))
    left = {name: value for name, value in schema.get("properties", {}).items() if name != path_name}
    required = [name for name in schema.get("required", []) if name != path_name]
    return {"type": "object", "properties": left, **({"required": required} if required else {})}


def _success(capability: Capability) -> dict[str, Any]:
    schema = {
        "type": "object",
        "required": ["ok", "data", "metadata"],
        "properties": {
            "ok": {"const": True},
            "data": reference(capability.answer),
            "metadata": {"$ref": "#/components/schemas/Metadata"},
        },
    }
    return {"description": "Done.", "content": {"application/json": {"schema": schema}}}


def _failures(capability: Capability) -> dict[str, Any]:
    by_status: dict[int, list[type[RedriveError]]] = {}
    for error in capability.all_errors:
        by_status.setdefault(error.http_status, []).append(error)
    return {
        str(status): {
            "description": " ".join(f"{error.code}: {(error.__doc__ or '').strip()}" for error in errors),
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Failure"}}},
        }
        for status, errors in by_status.items()
    }


def _failure_schema() -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["ok", "data", "error", "metadata"],
        "properties": {
            "ok": {"const": False},
            "data": {"type": "null"},
            "error": reference(ErrorBody),
            "metadata": {"$ref": "#/components/schemas/Metadata"},
        },
    }
