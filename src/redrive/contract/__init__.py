"""The wire, as data: routes, shapes, limits and codes, declared once.

Routing, validation, discovery, OpenAPI, the reference page and the clients derive from
:data:`redrive.contract.capabilities.CAPABILITIES` and :mod:`redrive.contract.shapes`.
"""

from __future__ import annotations

from redrive.contract.capabilities import BY_ID, CAPABILITIES
from redrive.contract.capability import Capability
from redrive.contract.decode import Decoded, decode
from redrive.contract.idempotency import Idempotency, request_hash

__all__ = [
    "CAPABILITIES",
    "Capability",
    "Decoded",
    "Idempotency",
    "capability_by_id",
    "decode",
    "request_hash",
]


def capability_by_id(capability_id: str) -> Capability:
    """The capability with this id ("queue.publish"); KeyError when there is none."""
    return BY_ID[capability_id]
