"""With the application's ledger at hand: what is already completed is found, and resolved without sending."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from redrive.cli.output import Column, note, progress
from redrive.cli.session import Session

PAGE: Final = 1_000
_WITH_PAYLOADS: Final = 100  # of a page whose items carry bodies
NAMED_MAX: Final = 20
RESOLVED: Final[tuple[Column, ...]] = ("message_id", "job_key", "completed_at")


@dataclass(slots=True)
class Receipts:
    """``looked_at`` members; ``completed`` of them are in the ledger, ``resolved`` were closed; ``left``
    counts the others by why; ``named`` are the first of those that were closed."""

    looked_at: int = 0
    completed: int = 0
    resolved: int = 0
    left: dict[str, int] = field(default_factory=dict)
    named: list[dict[str, Any]] = field(default_factory=list)

    @property
    def open(self) -> int:
        """Completed jobs whose members could not be closed, though no outcome has closed them either."""
        return sum(count for why, count in self.left.items() if why not in ("already_completed", "completed"))


def check(ledger: Any) -> None:
    """Raise LedgerNotInstalled, or that it cannot be reached, before anything is made or promised."""
    ledger.completed(("any job",))


def resolve(session: Session, ledger: Any, plan_id: str, total: int, actor: str | None) -> Receipts:
    """Close every pending member whose job the ledger knows as completed, page by page."""
    from redrive.contract.instants import rfc3339

    found = Receipts()
    request = {"plan_id": plan_id, "outcome": "pending"}
    with progress("comparing with the ledger", total) as advance:
        for page in session.client.pages("redrive.plan.items", request, size_max=PAGE):
            members = [msgspec.json.decode(item) for item in page.items]
            done = ledger.completed(member["job_key"] for member in members)
            evident = [member for member in members if member["job_key"] in done]
            found.looked_at += len(members)
            found.completed += len(evident)
            advance(len(members))
            if not evident:
                continue
            told = [
                {
                    "message_id": member["message_id"],
                    "job_key": member["job_key"],
                    "completed_at": rfc3339(done[member["job_key"]].completed_at_ms),
                    "result_hash": done[member["job_key"]].result_sha256,
                }
                for member in evident
            ]
            _close(session, plan_id, told, actor, found)
    return found


def _close(
    session: Session, plan_id: str, told: list[dict[str, Any]], actor: str | None, found: Receipts
) -> None:
    items = [
        {
            "message_id": each["message_id"],
            "evidence": {name: each[name] for name in ("job_key", "completed_at", "result_hash")},
        }
        for each in told
    ]
    answer = session.client.call("redrive.plan.resolve", {"plan_id": plan_id, "items": items, "actor": actor})
    found.resolved += answer["resolved"]
    for why in answer["left"].values():
        found.left[why] = found.left.get(why, 0) + 1
    closed = [each for each in told if each["message_id"] not in answer["left"]]
    found.named += closed[: NAMED_MAX - len(found.named)]


def count(session: Session, ledger: Any, queue: str, select: Mapping[str, Any]) -> Receipts:
    """How many of the selected dead letters the ledger knows as completed; changes nothing."""
    found = Receipts()
    with progress("comparing with the ledger", None) as advance:
        for keys in _selected_keys(session, queue, select):
            found.looked_at += len(keys)
            done = ledger.completed(keys)
            found.completed += sum(key in done for key in keys)
            advance(len(keys))
    return found


def _selected_keys(session: Session, queue: str, select: Mapping[str, Any]) -> Iterator[list[str]]:
    from redrive.domain.errors import MessageNotFound

    filters = dict(select)
    ids, most = filters.pop("message_ids", None), filters.pop("max_messages", None)
    if ids is None:
        request = {"queue": queue, **filters}
        for page in session.client.pages("queue.dlq.list", request, most, size_max=_WITH_PAYLOADS):
            yield [msgspec.json.decode(item, type=_Keyed).job_key for item in page.items]
        return
    keys = []
    for message_id in ids:
        try:
            found = session.client.call("queue.message", {"message_id": message_id})
        except MessageNotFound:
            continue
        if found["state"] == "dead":
            keys.append(found["job_key"])
    yield keys


class _Keyed(msgspec.Struct):
    job_key: str


def tell(session: Session, found: Receipts) -> None:
    """What was resolved, for a person."""
    session.out.line(
        f"{found.completed} of {found.looked_at} members are completed in the ledger: "
        f"{found.resolved} resolved without sending"
    )
    if found.named:
        session.out.table(found.named, RESOLVED, empty="")
    if found.resolved > len(found.named):
        note(f"the first {len(found.named)} are shown; plan items --outcome already_completed shows all")
    for why, number in sorted(found.left.items()):
        note(f"{number} could not be resolved: {why}")


def as_fields(found: Receipts) -> dict[str, Any]:
    """What was resolved, for a program."""
    return {
        "looked_at": found.looked_at, "completed": found.completed, "resolved": found.resolved,
        "left": found.left,
    }  # fmt: skip
