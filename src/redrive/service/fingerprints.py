"""What a queue does with failures of certain fingerprints."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from redrive.contract import shapes
from redrive.contract.idempotency import Idempotency
from redrive.contract.instants import rfc3339
from redrive.domain import limits
from redrive.domain.errors import InvalidRequest, RedriveError
from redrive.domain.policy import FingerprintPolicy
from redrive.service.access import Caller
from redrive.service.context import Context, audit, find_queue, see
from redrive.service.work import Commit, Read
from redrive.storage import commands as c
from redrive.storage.port import Reader
from redrive.storage.values import FingerprintRule

_FINGERPRINT = re.compile(rf"[0-9a-f]{{{limits.FINGERPRINT_CHARS}}}")


def set_policy(
    _context: Context, caller: Caller, request: shapes.FingerprintPolicySet, _key: Idempotency | None
) -> Commit:
    """Say what becomes of failures of one fingerprint."""
    see(caller, request.queue)
    if not _FINGERPRINT.fullmatch(request.fingerprint):  # it would never be found
        wanted = f"{limits.FINGERPRINT_CHARS} digits of 0-9 and a-f"
        raise InvalidRequest(
            f"fingerprint must be {wanted}, got {request.fingerprint!a}",
            hint="dlq/groups shows them",
            details={"field": "fingerprint", "expected": wanted, "actual": request.fingerprint},
        )
    row = audit(caller, "dlq.policy", request.queue, request.reason)
    command = c.SetFingerprintPolicy(request.queue, request.fingerprint, request.policy, request.reason, row)

    def finish(result: Any) -> shapes.FingerprintPolicyRecord:
        if isinstance(result, RedriveError):
            raise result
        return _record(request.queue, result)

    return Commit(command, finish)


def listed(
    context: Context, caller: Caller, request: shapes.FingerprintPolicyList, _key: Idempotency | None
) -> Read:
    """A page of the policies other than ``retry``; they are few, so that all are read."""

    def run() -> shapes.FingerprintPolicyPage:
        queue = find_queue(context, caller, request.queue)
        rules = context.engine.read(lambda reader: reader.fingerprint_policies(queue.id))
        limit, after = request.limit or limits.LIST_LIMIT_DEFAULT, request.cursor or ""
        left = [_record(queue.title, rule) for rule in rules if rule.fingerprint > after]
        more = left[limit - 1].fingerprint if len(left) > limit else None
        return shapes.FingerprintPolicyPage(items=left[:limit], next_cursor=more)

    return Read(run)


def policies_of(reader: Reader, queues: Iterable[str]) -> dict[tuple[str, str], FingerprintPolicy]:
    """The policies of these queues, by name and fingerprint."""
    found: dict[tuple[str, str], FingerprintPolicy] = {}
    for name in queues:
        queue = reader.queue(name)
        if queue is not None and queue.policy_count:
            rules = reader.fingerprint_policies(queue.id)
            found.update({(name, rule.fingerprint): rule.policy for rule in rules})
    return found


def _record(queue: str, rule: FingerprintRule) -> shapes.FingerprintPolicyRecord:
    return shapes.FingerprintPolicyRecord(
        queue=queue,
        fingerprint=rule.fingerprint,
        policy=rule.policy,
        reason=rule.reason,
        actor=rule.actor,
        set_at=rfc3339(rule.set_ms),
    )
