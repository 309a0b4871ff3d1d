"""Decoding as tests write it: a capability's id and its fields, placed where the wire wants them."""

from __future__ import annotations

import json
from typing import Any

from redrive.contract import Capability, Decoded, capability_by_id, decode
from redrive.contract.capability import parameter_of


def read(capability_id: str, fields: dict[str, Any] | bytes, **options: Any) -> Decoded:
    """Decode ``fields`` (bytes are a raw body) as a request of the capability."""
    capability = capability_by_id(capability_id)
    if isinstance(fields, bytes):
        return decode(capability, {}, {}, fields, **options)
    params, left = place(capability, fields)
    if capability.method == "POST":
        return decode(capability, params, {}, json.dumps(left).encode(), **options)
    return decode(capability, params, {name: str(value) for name, value in left.items()}, b"", **options)


def place(capability: Capability, fields: dict[str, Any]) -> tuple[dict[str, str], dict[str, Any]]:
    """The path parameters among ``fields``, and the rest."""
    left = dict(fields)
    name = parameter_of(capability.path)
    return ({} if name is None else {name: str(left.pop(name))}), left
