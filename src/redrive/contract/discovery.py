"""The discovery documents (section 9 of the contract), which are not enveloped."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from redrive.contract.capabilities import BY_ID, CAPABILITIES
from redrive.contract.capability import Capability
from redrive.contract.instants import rfc3339
from redrive.contract.limits_table import LIMITS, limits_of
from redrive.contract.schemas import params_schema, response_schema
from redrive.contract.snippets import snippets
from redrive.domain.errors import NotFound
from redrive.seams import wall_ms


@cache
def _generated_at() -> str:
    return rfc3339(wall_ms())


def entry(capability: Capability) -> dict[str, Any]:
    """What discovery says of every capability."""
    return {
        "id": capability.id,
        "module": capability.module,
        "namespace": capability.namespace,
        "method": capability.method,
        "path": capability.path,
        "summary": capability.summary,
        "idempotent": capability.idempotent,
        "scope": capability.scope,
        "available": True,
        "billing": {"is_billable": False, "free": True},
    }


@cache
def discovery() -> bytes:
    """``GET /v1/discovery``."""
    document = {
        "version": "v1",
        "generated_at": _generated_at(),
        "capabilities": [entry(capability) for capability in CAPABILITIES],
        "limits": LIMITS,
    }
    return msgspec.json.encode(document)


@cache
def discovery_of(capability_id: str) -> bytes:
    """``GET /v1/discovery/{capability}``; raises NotFound for an unknown id."""
    capability = BY_ID.get(capability_id)
    if capability is None:
        raise NotFound(f"capability {capability_id[:80]!r} not found", hint="GET /v1/discovery lists them.")
    document = {
        "version": "v1",
        "generated_at": _generated_at(),
        **entry(capability),
        "aliases": [{"method": method, "path": path} for method, path in capability.aliases],
        "field_aliases": capability.field_aliases,
        "params": params_schema(capability),
        "response": response_schema(capability),
        "errors": [
            {
                "code": error.code,
                "http_status": error.http_status,
                "retryable": error.retryable,
                "meaning": (error.__doc__ or "").strip(),
            }
            for error in capability.all_errors
        ],
        "limits": limits_of(capability),
        "examples": {
            **snippets(capability),
            "request": capability.example,
            "response": capability.answer_example,
        },
    }
    return msgspec.json.encode(document)
