"""What one capability of the contract is, and which scope of a key it needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from redrive.contract.shapes import Answer, Request
from redrive.domain import errors
from redrive.domain.errors import RedriveError

Method = Literal["GET", "POST", "DELETE"]
ScopeName = Literal["publish", "consume", "operate", "admin", "metrics", "any"]

# refusals that every route may give; a capability lists only its own
EVERYWHERE: tuple[type[RedriveError], ...] = (
    errors.InvalidRequest, errors.Unauthenticated, errors.Forbidden, errors.RequestTimeout,
    errors.PayloadTooLarge, errors.LimitExceeded, errors.HeadersTooLarge, errors.RateLimited, errors.Internal,
    errors.Overloaded,
)  # fmt: skip


def parameter_of(path: str) -> str | None:
    """The name of the parameter in a route's path, which has one at most; None when it has none."""
    return next((piece[1:-1] for piece in path.split("/") if piece.startswith("{")), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """One route of the contract. Routing, validation, discovery, OpenAPI and the docs read it.

    ``scope`` is what the key needs ("any": every valid key). ``idempotent`` says that repeating the same call
    (with the same idempotency key where ``records_key``) does no more than the first. ``wire`` is the request
    as sent where it differs from ``request``; ``request`` is what ``decode`` returns. ``errors`` are the
    refusals besides :data:`EVERYWHERE`. ``example`` is a runnable request, ``answer_example`` its ``data``.
    """

    id: str
    method: Method
    path: str
    summary: str
    scope: ScopeName
    request: type[Request]
    answer: type[Answer]
    errors: tuple[type[RedriveError], ...] = ()
    idempotent: bool = False
    records_key: bool = False
    aliases: tuple[tuple[Method, str], ...] = ()
    field_aliases: dict[str, str] = field(default_factory=dict)
    wire: type[Request] | None = None
    example: dict[str, Any] = field(default_factory=dict)
    answer_example: dict[str, Any] = field(default_factory=dict)

    @property
    def routes(self) -> tuple[tuple[Method, str], ...]:
        """Every (method, path) under which it is reached, the canonical one first."""
        return ((self.method, self.path), *self.aliases)

    @property
    def namespace(self) -> str:
        """ "queue" of "queue.publish"; "dlq" belongs to it."""
        return self.id.split(".")[0] if not self.id.startswith("account.") else "keys"

    @property
    def module(self) -> str:
        """The module under which discovery lists it."""
        return "scheduling" if self.id.startswith("queue.") else "account"

    @property
    def all_errors(self) -> tuple[type[RedriveError], ...]:
        """Every refusal that it may give, ordered by HTTP status."""
        found = {*self.errors, *EVERYWHERE}
        if self.method != "GET":
            found |= {errors.ReadOnly, errors.StorageFull}
        return tuple(sorted(found, key=lambda error: (error.http_status, error.code)))

    @property
    def long_poll(self) -> bool:
        """Whether the answer may be waited for."""
        return "wait_seconds" in self.request.__struct_fields__
