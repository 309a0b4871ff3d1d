"""Who may do what: every capability × every way a key can be wrong, generated from the table."""

from __future__ import annotations

import pytest

from redrive.contract import CAPABILITIES, Capability
from redrive.contract.shapes.keys import SCOPES
from redrive.contract.snippets import placed
from redrive.domain.errors import Conflict
from tests.api.stand import KEY, StandService, caller
from tests.api.wire import Caller, Reply

EACH = pytest.mark.parametrize("capability", CAPABILITIES, ids=lambda capability: capability.id)
REACHED = Conflict("reached the service")


@pytest.fixture(scope="module")
def stand() -> StandService:
    """One stand-in with a key of each scope, which answers everything with REACHED."""
    service = StandService(answers={capability.id: REACHED for capability in CAPABILITIES})
    for scope in SCOPES:
        service.access.callers[f"key-{scope}"] = caller(f"k-{scope}", scope)
    return service


@pytest.fixture(scope="module")
def url(stand: StandService) -> object:
    """One server for the whole matrix."""
    from tests.api.conftest import running

    with running(stand) as server:
        yield server.url


def _send(url: str, key: str | None, capability: Capability) -> Reply:
    target, body = placed(capability)
    return Caller(url, key)(capability.method, target, body if capability.method == "POST" else None)


@EACH
@pytest.mark.parametrize("key", [None, "wrong", KEY[:-1], KEY.upper()], ids=["none", "wrong", "cut", "upper"])
def test_without_a_valid_key_nothing_is_reached(url: str, capability: Capability, key: str | None) -> None:
    """401 before anything else is looked at."""
    assert _send(url, key, capability).status == 401


@EACH
@pytest.mark.parametrize("scope", SCOPES)
def test_scopes(url: str, capability: Capability, scope: str) -> None:
    """A key reaches what its scope allows and is 403 elsewhere; admin reaches everything."""
    reply = _send(url, f"key-{scope}", capability)
    if scope in ("admin", capability.scope) or capability.scope == "any":
        assert reply.error["message"] == "reached the service"
    else:
        assert (reply.status, reply.error["code"]) == (403, "FORBIDDEN")
