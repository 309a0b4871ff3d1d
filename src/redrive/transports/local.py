"""The contract inside this process: no server, the same rules, through the same decoder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from redrive.contract import decode
from redrive.contract.capabilities import CAPABILITIES
from redrive.contract.idempotency import Idempotency, request_hash
from redrive.transports.contract_transport import ContractTransport
from redrive.transports.routing import cut, route_of

_CAPABILITIES = {capability.id: capability for capability in CAPABILITIES}


class LocalService(Protocol):
    """What compose hands over: the service behind ``call``, for the owner of the store."""

    def call(
        self, capability_id: str, request: Any, *, idempotency: Idempotency | None, actor: str | None
    ) -> Any:
        """Do it and wait for the answer (a struct of the contract); raises RedriveError. ``actor``: who does
        it, for the audit log."""

    def close(self) -> None:
        """Stop the loops, write what is accepted, give the store back."""


class LocalCarrier:
    """Carries requests to a :class:`LocalService`; nothing is lost on the way, so nothing is repeated."""

    def __init__(self, service: LocalService, actor: str | None = None) -> None:
        self._service, self._actor = service, actor

    def __repr__(self) -> str:
        return "LocalCarrier()"

    def call(
        self,
        capability_id: str,
        request: Mapping[str, Any],
        *,
        deadline_seconds: float | None = None,  # noqa: ARG002 - the carrier's seam has it; nothing can hang here
    ) -> bytes:
        """The answer's data as JSON; raises RedriveError. The committer bounds the time it takes."""
        route = route_of(capability_id)
        capability = _CAPABILITIES[capability_id]
        fields = dict(request)
        key = fields.pop("idempotency_key", None)
        parts = cut(route, fields)
        decoded = decode(capability, parts.path_params, parts.query, parts.body, strict=True)
        idempotency = None
        if key is not None and capability.records_key:
            idempotency = Idempotency(key, request_hash(parts.body, parts.path_params), capability_id)
        answer = self._service.call(
            capability_id, decoded.request, idempotency=idempotency, actor=self._actor
        )
        return msgspec.json.encode(answer)

    def close(self) -> None:
        """Close the service."""
        self._service.close()


def open_local(service: LocalService) -> ContractTransport:
    """A transport into ``service``; closing it closes the service."""
    return ContractTransport(LocalCarrier(service))
