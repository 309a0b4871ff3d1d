"""From a method and a path to a capability, by the table alone."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

from redrive.contract.capabilities import CAPABILITIES
from redrive.contract.capability import Capability
from redrive.domain.errors import MethodNotAllowed, NotFound

_EXACT: dict[str, dict[str, Capability]] = {}
_PREFIX: dict[str, dict[str, tuple[Capability, str]]] = {}
_AROUND: dict[tuple[str, str], dict[str, tuple[Capability, str]]] = {}  # what stands before and after

for _capability in CAPABILITIES:
    for _method, _path in _capability.routes:
        _head, _, _last = _path.rpartition("/")
        _before, _, _name = _head.rpartition("/")
        if _last.startswith("{"):
            _PREFIX.setdefault(_head, {})[_method] = (_capability, _last[1:-1])
        elif _name.startswith("{"):
            _AROUND.setdefault((_before, _last), {})[_method] = (_capability, _name[1:-1])
        else:
            _EXACT.setdefault(_path, {})[_method] = _capability


def resolve(method: str, raw_path: str) -> tuple[Capability, dict[str, str]]:
    """The capability at ``raw_path`` (still percent-encoded) and its path parameters, decoded once.

    HEAD is answered as GET. Raises NotFound, or MethodNotAllowed with the allowed methods in
    ``details["allow"]``.
    """
    asked = "GET" if method == "HEAD" else method
    path = raw_path.removesuffix("/")
    exact = _EXACT.get(path)
    if exact is not None:
        if asked in exact:
            return exact[asked], {}
        raise _not_allowed(method, path, list(exact))
    head, _, last = path.rpartition("/")
    named, value = _PREFIX.get(head), last
    if named is None:
        before, _, value = head.rpartition("/")
        named = _AROUND.get((before, last))
    if named is None or not value:
        raise NotFound(f"path {raw_path[:200]!r} not found", hint="GET /v1/discovery lists every path.")
    if asked not in named:
        raise _not_allowed(method, path, list(named))
    capability, name = named[asked]
    try:
        return capability, {name: unquote_to_bytes(value).decode("utf-8") if "%" in value else value}
    except UnicodeDecodeError:
        raise NotFound(f"{name} {value[:200]!r} not found: it is not UTF-8 when decoded") from None


def _not_allowed(method: str, path: str, allowed: list[str]) -> MethodNotAllowed:
    return MethodNotAllowed(
        f"method {method[:20]} is not allowed for {path[:200]}",
        hint=f"Use {' or '.join(allowed)}.",
        details={"allow": allowed},
    )
