"""Who may do what: API keys, their scopes and their queue patterns.

Keys are kept as SHA-256 of their secret and looked up by it, so that neither the store nor the time of an
answer tells anything about a secret. A key that may not see a queue is told that it does not exist.
"""

from __future__ import annotations

import fnmatch
import hashlib
import hmac
import threading
from collections.abc import Callable, Sequence

import msgspec

from redrive import seams
from redrive.domain.errors import Forbidden, NotFound, Unauthenticated
from redrive.domain.patterns import EVERY_QUEUE, may_see
from redrive.storage import commands as c
from redrive.storage.port import Engine
from redrive.storage.values import AuditRow, KeyRow

SCOPES = ("publish", "consume", "operate", "admin", "metrics")
_PREFIX = "rdk_"
_ROOT_ID = "env"


class Caller(msgspec.Struct, frozen=True):
    """Whose key it is, and what it allows. ``on_behalf_of``: who uses it this time, by their own word."""

    name: str
    key_id: str
    scopes: tuple[str, ...]
    patterns: tuple[str, ...] = EVERY_QUEUE
    on_behalf_of: str | None = None

    def acting_for(self, actor: str | None) -> Caller:
        """The same key, used by ``actor``."""
        return self if actor is None else msgspec.structs.replace(self, on_behalf_of=actor)

    @property
    def who(self) -> str:
        """The key's name, and who uses it."""
        return self.name if self.on_behalf_of is None else f"{self.name} ({self.on_behalf_of})"

    def require(self, scope: str) -> None:
        """Raise ``Forbidden`` unless the key has ``scope`` (admin has all)."""
        if scope not in self.scopes and "admin" not in self.scopes:
            raise Forbidden(
                f"the key {self.name!r} lacks the scope {scope}; it has {', '.join(self.scopes) or 'none'}",
                hint="an admin can create a key with that scope",
            )

    def may_see(self, queue: str) -> bool:
        """Whether the key's patterns hold this queue; a dead-letter queue goes with its source."""
        return may_see(self.patterns, queue)

    def may_grant(self, patterns: Sequence[str]) -> bool:
        """Whether every queue of these patterns may be seen: a limited key cannot make a wider one."""
        # `*` is the only sign of a pattern, and only `*` matches it: what matches it as text holds all of it
        return all(any(fnmatch.fnmatchcase(given, own) for own in self.patterns) for given in patterns)

    @property
    def visible(self) -> Callable[[str], bool] | None:
        """``may_see`` for the store's commands; None when every queue may be seen."""
        return None if self.patterns == EVERY_QUEUE else self.may_see


SYSTEM = Caller("system", "system", ("admin",))


def secret_hash(secret: str) -> str:
    """What is kept of a secret. A key has 192 random bits, so that a plain hash cannot be searched."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


_INDEX_CHARS = 32  # of a hash: how its row is found; the whole is compared in constant time
_NOBODY = ("", KeyRow("", "", (), (), 0), SYSTEM)


class Access:
    """The keys of a store, held in memory and read again when they change."""

    system = SYSTEM

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._rows: dict[str, KeyRow] = {}
        self._by_secret: dict[str, tuple[str, KeyRow, Caller]] = {}

    def reload(self) -> None:
        """Read the keys from the store."""
        rows = self._engine.read(lambda reader: reader.keys())
        with self._lock:
            self._rows = {row.key_id: row for row in rows}
            self._by_secret = {
                digest[:_INDEX_CHARS]: (digest, row, Caller(row.name, row.key_id, row.scopes, row.queues))
                for row in rows
                for digest in row.secrets
            }

    def authenticate(self, secret: str | None) -> Caller:
        """The caller of a secret; ``Unauthenticated`` for none, an unknown, an expired or a revoked one."""
        if not secret:
            raise Unauthenticated("an API key is needed", hint="send the header Authorization: Bearer <key>")
        digest = secret_hash(secret)
        kept, row, caller = self._by_secret.get(digest[:_INDEX_CHARS], _NOBODY)
        if not hmac.compare_digest(kept, digest):
            raise Unauthenticated("the API key is not known")
        if row.revoked_ms is not None:
            raise Unauthenticated(f"the API key {row.name!r} was revoked")
        if row.expires_ms is not None and row.expires_ms <= seams.wall_ms():
            raise Unauthenticated(f"the API key {row.name!r} has expired")
        return caller

    def rows(self) -> list[KeyRow]:
        """Every key, oldest first; secrets are hashes."""
        with self._lock:
            return sorted(self._rows.values(), key=lambda row: (row.created_ms, row.key_id))

    def row(self, key_id: str) -> KeyRow:
        """One key; ``NotFound``."""
        with self._lock:
            row = self._rows.get(key_id)
        if row is None:
            raise NotFound(f"key {key_id} is not found")
        return row

    def new_key(
        self, name: str, scopes: tuple[str, ...], queues: tuple[str, ...], expires_ms: int | None
    ) -> tuple[KeyRow, str]:
        """A key row to be stored, and its secret, which is never seen again."""
        now_ms = seams.wall_ms()
        secret = new_secret()
        key_id = f"key_{seams.random_bits(64):016x}"
        row = KeyRow(key_id, name, scopes, queues, now_ms, expires_ms, secrets={secret_hash(secret): now_ms})
        return row, secret

    def install_root(self, secret: str) -> c.PutKey | None:
        """The command that makes ``REDRIVE_API_KEY`` the one admin key of that name; None if it is so."""
        digest = secret_hash(secret)
        known = self._rows.get(_ROOT_ID)
        if known is not None and set(known.secrets) == {digest} and known.revoked_ms is None:
            return None
        now_ms = seams.wall_ms()
        row = KeyRow(_ROOT_ID, "REDRIVE_API_KEY", ("admin",), EVERY_QUEUE, now_ms, secrets={digest: now_ms})
        return c.PutKey(row, AuditRow(0, "system", "key.install", _ROOT_ID, None, None, "done"))


def new_secret() -> str:
    """A fresh secret: 24 random bytes behind a prefix that scanners can find."""
    return _PREFIX + seams.token(24)
