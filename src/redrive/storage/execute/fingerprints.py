"""Fingerprint policies: set by an operator, asked for at each failure and each redrive."""

from __future__ import annotations

import msgspec

from redrive.domain import limits
from redrive.domain.decide import cause
from redrive.domain.errors import Conflict, LimitExceeded, QueueNotFound
from redrive.domain.facts import Facts
from redrive.domain.fingerprint import ErrorInfo
from redrive.domain.policy import FingerprintPolicy
from redrive.domain.states import Event
from redrive.storage.commands import SetFingerprintPolicy
from redrive.storage.execute.workspace import Workspace
from redrive.storage.values import FingerprintRule, Queue


def set_policy(work: Workspace, command: SetFingerprintPolicy) -> FingerprintRule:
    """Set the policy of one fingerprint; ``retry`` takes it back. The row is what holds from now on."""
    queue = work.by_name.get(command.name)
    if queue is None or queue.state == "deleting":
        raise QueueNotFound(f"queue {command.name} is not found")
    if queue.holds_dead:
        raise Conflict(
            f"queue {queue.name} is a dead-letter queue: what failed, failed in another queue",
            hint="name the source; dlq/list shows it as origin",
        )
    rules = work.fingerprint_rules(queue)
    before = rules.get(command.fingerprint)
    rule = FingerprintRule(
        command.fingerprint, command.policy, command.reason, command.audit.actor, work.now_ms
    )
    if command.policy == "retry":
        rules.pop(command.fingerprint, None)
        work.tx.drop_fingerprint_policy(queue.id, command.fingerprint)
    else:
        limit = limits.FINGERPRINT_POLICIES_MAX
        if before is None and len(rules) >= limit:
            raise LimitExceeded(
                f"queue {queue.name} must have at most {limit} fingerprint policies, got one more",
                hint="take back those that are no longer needed: policy retry",
                details={"field": "fingerprint", "limit": limit, "actual": len(rules) + 1},
            )
        rules[command.fingerprint] = rule
        work.tx.put_fingerprint_policy(queue.id, rule)
    if queue.policy_count != len(rules):
        queue.policy_count = len(rules)
        work.tx.update_queue(queue)
    was = "retry" if before is None else before.policy
    said = {"fingerprint": command.fingerprint, "before": was, "after": command.policy}
    audit = msgspec.structs.replace(command.audit, at_ms=work.now_ms, detail=msgspec.json.encode(said))
    work.tx.insert_audit([audit])
    return rule


def policy_of_failure(
    work: Workspace, event: Event, facts: Facts, error: ErrorInfo | None = None
) -> FingerprintPolicy:
    """What the queue of this message does with such a failure."""
    queue = work.queue_of(facts)
    if not queue.policy_count:
        return "retry"
    return policy_of(work, queue, cause(event, error))


def policy_of(work: Workspace, queue: Queue, fingerprint: str | None) -> FingerprintPolicy:
    """The queue's policy for a fingerprint."""
    rule = work.fingerprint_rules(queue).get(fingerprint or "")
    return "retry" if rule is None else rule.policy
