"""Keys, the audit log and the backup (section 10 of the contract)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from redrive.contract.shapes.bounds import Answer, Cursor, Instant, ListLimit, QueueName, Reason, Request

Scope = Literal["publish", "consume", "operate", "admin", "metrics"]
SCOPES: tuple[str, ...] = ("publish", "consume", "operate", "admin", "metrics")
KeyName = Annotated[str, Meta(min_length=1, max_length=80)]
QueuePattern = Annotated[
    str,
    Meta(min_length=1, max_length=84, description="A queue name in which `*` stands for any characters."),
]
KeyId = Annotated[str, Meta(min_length=1, max_length=80)]


class KeyCreate(Request, kw_only=True):
    """Make a key. Absent ``scopes``: publish and consume; absent ``queues``: every queue."""

    name: KeyName
    scopes: Annotated[list[Scope], Meta(min_length=1, max_length=5)] | None = None
    queues: Annotated[list[QueuePattern], Meta(max_length=100)] | None = None
    expires_at: Instant | None = None


class KeyList(Request, kw_only=True):
    """Page through the keys."""

    limit: ListLimit | None = None
    cursor: Cursor | None = None


class KeyRotate(Request, kw_only=True):
    """Give a key a second secret; both live until the old one is revoked."""

    id: KeyId


class KeyRevoke(Request, kw_only=True):
    """End a key (or, given the id of a rotated-out secret, that secret)."""

    id: KeyId
    reason: Reason | None = None


class KeyRecord(Answer, kw_only=True):
    """A key without its secret."""

    id: str
    name: str
    scopes: list[str]
    queues: list[str]
    created_at: str
    expires_at: str | None = None
    revoked_at: str | None = None
    last_used_at: str | None = None


class KeyCreated(KeyRecord, kw_only=True):
    """A new key; ``secret`` is shown only here."""

    secret: str


class KeyPage(Answer, kw_only=True):
    """A page of keys."""

    items: list[KeyRecord]
    next_cursor: str | None = None


class AuditList(Request, kw_only=True):
    """Page through the audit log, newest first."""

    action: Annotated[str, Meta(min_length=1, max_length=80)] | None = None
    queue: QueueName | None = None
    since: Instant | None = None
    until: Instant | None = None
    limit: ListLimit | None = None
    cursor: Cursor | None = None


class AuditRecord(Answer, kw_only=True):
    """Who, when, what, why, over what, and what came of it.

    ``actor`` is the key's name, ``on_behalf_of`` who used it by their own word. ``outcome`` is `done`,
    `begun` (a purge of many slices, whose end is another row) or `stopped`. ``hash`` chains the row to the
    one before.
    """

    id: str
    at: str
    actor: str
    action: str
    queue: str | None
    reason: str | None
    selection_sha256: str | None
    outcome: str
    details: dict[str, Any] | None = None
    on_behalf_of: str | None = None
    hash: str | None = None


class AuditVerify(Request, kw_only=True):
    """Verify the chain of the audit log, oldest row first, as far as one answer goes."""

    cursor: Cursor | None = None
    noted: (
        Annotated[
            str,
            Meta(
                description="A row's number and hash as noted before, `12:9f…`: a chain made anew lacks it."
            ),
        ]
        | None
    ) = None


class AuditBreak(Answer, kw_only=True):
    """The first row that is not as it was written, and what is wrong with it."""

    id: str
    problem: str


class AuditVerified(Answer, kw_only=True):
    """``rows`` were found good by this answer, ``unchained`` more are older than the chain; the last good one
    is row ``last_id`` with ``last_hash``. ``next_cursor`` null: the end is reached, or ``broken`` says where
    the chain is broken.
    """

    rows: int
    unchained: int
    last_id: str | None
    last_hash: str | None
    broken: AuditBreak | None = None
    next_cursor: str | None = None


class AuditPage(Answer, kw_only=True):
    """A page of the audit log."""

    items: list[AuditRecord]
    next_cursor: str | None = None


class Backup(Request, kw_only=True):
    """Make a consistent copy in the server's backup directory; never overwrites."""

    name: Annotated[str, Meta(min_length=1, max_length=80, pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]*$")]


class BackupDone(Answer, kw_only=True):
    """The finished copy: its file name, its size in bytes."""

    name: str
    bytes: int
    finished_at: str
