"""The table of capabilities: the one declaration of the wire (sections 3-6 and 10 of the contract)."""

from __future__ import annotations

from redrive.contract import shapes
from redrive.contract.capability import Capability
from redrive.contract.examples import EXAMPLES
from redrive.domain.errors import (
    ConfirmationRequired,
    Conflict,
    IdempotencyKeyReused,
    MessageNotFound,
    NotFound,
    PlanNotFound,
    QueueExists,
    QueueNotFound,
    StaleReceipt,
)

_RECEIPT = {"receipt": "receipt_handle"}
_PAYLOAD = {"body": "payload"}
_SETTLE = (QueueNotFound, MessageNotFound, StaleReceipt)

_QUEUES = (
    Capability(
        id="queue.create", method="POST", path="/v1/queue/create", scope="admin",
        summary="Make a queue, or confirm that it exists with these settings.",
        request=shapes.QueueCreate, answer=shapes.QueueRecord, idempotent=True, records_key=True,
        errors=(QueueExists, QueueNotFound, IdempotencyKeyReused), field_aliases={"queue": "name"},
    ),
    Capability(
        id="queue.update", method="POST", path="/v1/queue/update", scope="admin",
        summary="Change the policy of a queue.",
        request=shapes.QueueUpdate, answer=shapes.QueueRecord, idempotent=True,
        errors=(QueueNotFound, Conflict), field_aliases={"queue": "name"},
    ),
    Capability(
        id="queue.list", method="GET", path="/v1/queue/list", scope="any",
        summary="List the queues that the key may see.",
        request=shapes.QueueList, answer=shapes.QueuePage, idempotent=True,
    ),
    Capability(
        id="queue.get", method="GET", path="/v1/queue/get/{queue}", scope="any",
        summary="Read a queue's record.",
        request=shapes.QueueGet, answer=shapes.QueueRecord, idempotent=True, errors=(QueueNotFound,),
    ),
    Capability(
        id="queue.delete", method="DELETE", path="/v1/queue/delete/{queue}", scope="admin",
        summary="Delete a queue and its messages; its dead letters stay.",
        request=shapes.QueueDelete, answer=shapes.QueueDeleted, errors=(QueueNotFound, Conflict),
    ),
    Capability(
        id="queue.pause", method="POST", path="/v1/queue/pause/{queue}", scope="operate",
        summary="Stop delivery; publishing goes on.",
        request=shapes.QueuePause, answer=shapes.QueueRecord, idempotent=True, errors=(QueueNotFound,),
    ),
    Capability(
        id="queue.resume", method="POST", path="/v1/queue/resume/{queue}", scope="operate",
        summary="Start delivery again.",
        request=shapes.QueueResume, answer=shapes.QueueRecord, idempotent=True, errors=(QueueNotFound,),
    ),
    Capability(
        id="queue.purge", method="POST", path="/v1/queue/purge/{queue}", scope="operate",
        summary="Delete all messages of a queue; without the token it answers 428 with the token and counts.",
        request=shapes.QueuePurge, answer=shapes.QueuePurged, errors=(QueueNotFound, ConfirmationRequired),
    ),
    Capability(
        id="queue.stats", method="GET", path="/v1/queue/stats/{queue}", scope="any",
        summary="The numbers of a queue, at most 5 s old.",
        request=shapes.QueueStatsGet, answer=shapes.QueueStats, idempotent=True, errors=(QueueNotFound,),
    ),
    Capability(
        id="queue.messages", method="GET", path="/v1/queue/messages/{queue}", scope="operate",
        summary="Look at the messages of a queue; changes nothing.",
        request=shapes.MessageList, answer=shapes.MessagePage, idempotent=True, errors=(QueueNotFound,),
    ),
    Capability(
        id="queue.message", method="GET", path="/v1/queue/message/{message_id}", scope="operate",
        summary="Look at one message with its attempts and lineage; changes nothing.",
        request=shapes.MessageGet, answer=shapes.MessageRecord, idempotent=True, errors=(MessageNotFound,),
    ),
)  # fmt: skip

_MESSAGES = (
    Capability(
        id="queue.publish", method="POST", path="/v1/queue/publish", scope="publish",
        aliases=(("POST", "/v1/queue/publish/{queue}"),), field_aliases=_PAYLOAD,
        summary="Store one message; answered when it is on disk.",
        request=shapes.Publish, answer=shapes.PublishDone, idempotent=True, records_key=True,
        errors=(QueueNotFound, IdempotencyKeyReused),
    ),
    Capability(
        id="queue.publish_batch", method="POST", path="/v1/queue/publish_batch", scope="publish",
        summary="Store many messages; valid entries are stored even when others fail.",
        request=shapes.PublishBatch, wire=shapes.PublishBatchWire, answer=shapes.PublishBatchDone,
        field_aliases=_PAYLOAD, idempotent=True, records_key=True,
        errors=(QueueNotFound, IdempotencyKeyReused),
    ),
    Capability(
        id="queue.consume", method="POST", path="/v1/queue/consume", scope="consume",
        aliases=(("POST", "/v1/queue/consume/{queue}"),),
        summary="Lease messages, waiting for a first one if asked to.",
        request=shapes.Consume, answer=shapes.Deliveries, errors=(QueueNotFound,),
    ),
    Capability(
        id="queue.ack", method="POST", path="/v1/queue/ack", scope="consume",
        aliases=(("POST", "/v1/queue/ack/{queue}"),), field_aliases=_RECEIPT,
        summary="The message is done: delete it.",
        request=shapes.Ack, answer=shapes.AckDone, idempotent=True, errors=(QueueNotFound, StaleReceipt),
    ),
    Capability(
        id="queue.ack_batch", method="POST", path="/v1/queue/ack_batch", scope="consume",
        field_aliases=_RECEIPT, summary="Acknowledge many messages.",
        request=shapes.AckBatch, wire=shapes.AckBatchWire, answer=shapes.AckBatchDone, idempotent=True,
        errors=(QueueNotFound,),
    ),
    Capability(
        id="queue.nack", method="POST", path="/v1/queue/nack", scope="consume", field_aliases=_RECEIPT,
        summary="The delivery failed: retry later, or a dead letter when the budget is spent or permanent.",
        request=shapes.Nack, answer=shapes.NackDone, idempotent=True, errors=_SETTLE,
    ),
    Capability(
        id="queue.extend", method="POST", path="/v1/queue/extend", scope="consume", field_aliases=_RECEIPT,
        summary="Prolong a lease.",
        request=shapes.Extend, answer=shapes.ExtendDone, errors=(*_SETTLE, Conflict),
    ),
    Capability(
        id="queue.release", method="POST", path="/v1/queue/release", scope="consume", field_aliases=_RECEIPT,
        summary="Give a lease back at once; spends no attempt.",
        request=shapes.Release, answer=shapes.ReleaseDone, idempotent=True, errors=_SETTLE,
    ),
    Capability(
        id="queue.dead_letter", method="POST", path="/v1/queue/dead_letter", scope="consume",
        field_aliases=_RECEIPT, summary="Move a leased message to the dead letters at once.",
        request=shapes.DeadLetter, answer=shapes.DeadLetterDone, idempotent=True, errors=_SETTLE,
    ),
    Capability(
        id="queue.cancel", method="POST", path="/v1/queue/cancel", scope="operate",
        summary="Cancel a message: at once, or when its lease ends without an ack.",
        request=shapes.Cancel, answer=shapes.CancelDone, idempotent=True,
        errors=(QueueNotFound, MessageNotFound),
    ),
)  # fmt: skip

_DEAD_LETTERS = (
    Capability(
        id="queue.dlq.list", method="GET", path="/v1/queue/dlq/list/{queue}", scope="operate",
        summary="List dead letters with why, oldest first.",
        request=shapes.DeadLetterList, answer=shapes.DeadLetterPage, idempotent=True, errors=(QueueNotFound,),
    ),
    Capability(
        id="queue.dlq.groups", method="GET", path="/v1/queue/dlq/groups/{queue}", scope="operate",
        summary="Group dead letters by the fingerprint of their error.",
        request=shapes.DeadLetterGroups, answer=shapes.GroupList, idempotent=True, errors=(QueueNotFound,),
    ),
    Capability(
        id="queue.dlq.redrive", method="POST", path="/v1/queue/dlq/redrive/{queue}", scope="operate",
        summary="Send dead letters back to their source with a fresh attempt budget.",
        request=shapes.DeadLetterRedrive, answer=shapes.Redriven, idempotent=True, records_key=True,
        errors=(QueueNotFound, IdempotencyKeyReused, Conflict),
    ),
    Capability(
        id="queue.dlq.policies", method="GET", path="/v1/queue/dlq/policy/{queue}", scope="operate",
        summary="List what a queue does with failures of certain fingerprints.",
        request=shapes.FingerprintPolicyList, answer=shapes.FingerprintPolicyPage, idempotent=True,
        errors=(QueueNotFound,),
    ),
    Capability(
        id="queue.dlq.policy", method="POST", path="/v1/queue/dlq/policy/{queue}", scope="operate",
        summary="Say what becomes of failures of one fingerprint: retry, reject or hold.",
        request=shapes.FingerprintPolicySet, answer=shapes.FingerprintPolicyRecord, idempotent=True,
        errors=(QueueNotFound, Conflict),
    ),
)  # fmt: skip

_PLANS = (
    Capability(
        id="redrive.plan.create", method="POST", path="/v1/redrive/plan", scope="operate",
        summary="Freeze selected dead letters into a plan, or with dry_run only say what it would be.",
        request=shapes.PlanCreate, answer=shapes.PlanRecord, idempotent=True, records_key=True,
        errors=(QueueNotFound, IdempotencyKeyReused),
    ),
    Capability(
        id="redrive.plan.list", method="GET", path="/v1/redrive/plans", scope="operate",
        summary="List plans, newest first.",
        request=shapes.PlanList, answer=shapes.PlanPage, idempotent=True,
    ),
    Capability(
        id="redrive.plan.get", method="GET", path="/v1/redrive/plan/{plan_id}", scope="operate",
        summary="Read a plan with its progress.",
        request=shapes.PlanGet, answer=shapes.PlanRecord, idempotent=True, errors=(PlanNotFound,),
    ),
    Capability(
        id="redrive.plan.items", method="GET", path="/v1/redrive/plan/{plan_id}/items", scope="operate",
        summary="List a plan's members and what became of each.",
        request=shapes.PlanItems, answer=shapes.PlanItemPage, idempotent=True, errors=(PlanNotFound,),
    ),
    Capability(
        id="redrive.plan.start", method="POST", path="/v1/redrive/plan/{plan_id}/start", scope="operate",
        summary="Let a plan run; during freezing: when it is frozen.",
        request=shapes.PlanChange, answer=shapes.PlanRecord, idempotent=True, errors=(PlanNotFound, Conflict),
    ),
    Capability(
        id="redrive.plan.pause", method="POST", path="/v1/redrive/plan/{plan_id}/pause", scope="operate",
        summary="Send no more members for now.",
        request=shapes.PlanChange, answer=shapes.PlanRecord, idempotent=True, errors=(PlanNotFound, Conflict),
    ),
    Capability(
        id="redrive.plan.resume", method="POST", path="/v1/redrive/plan/{plan_id}/resume", scope="operate",
        summary="Go on; after a rule has paused the plan a reason is needed.",
        request=shapes.PlanChange, answer=shapes.PlanRecord, idempotent=True, errors=(PlanNotFound, Conflict),
    ),
    Capability(
        id="redrive.plan.abort", method="POST", path="/v1/redrive/plan/{plan_id}/abort", scope="operate",
        summary="Send no more members, ever; what was sent goes its way.",
        request=shapes.PlanChange, answer=shapes.PlanRecord, idempotent=True, errors=(PlanNotFound, Conflict),
    ),
    Capability(
        id="redrive.plan.resolve", method="POST", path="/v1/redrive/plan/{plan_id}/resolve", scope="operate",
        summary="Close unsent members whose jobs are completed, on the word of this key.",
        request=shapes.PlanResolve, answer=shapes.PlanResolved, idempotent=True,
        errors=(PlanNotFound, Conflict),
    ),
    Capability(
        id="redrive.estimate", method="POST", path="/v1/redrive/estimate", scope="operate",
        summary="How long a redrive would take, and how fast it may go; changes nothing.",
        request=shapes.EstimateGet, answer=shapes.EstimateRecord, idempotent=True, errors=(QueueNotFound,),
    ),
)  # fmt: skip

_LINEAGE = (
    Capability(
        id="redrive.message", method="GET", path="/v1/redrive/message/{message_id}", scope="operate",
        summary="All that happened to a message, also when it is gone; changes nothing.",
        request=shapes.MessageLineageGet, answer=shapes.Lineage, idempotent=True, errors=(MessageNotFound,),
    ),
    Capability(
        id="redrive.job", method="GET", path="/v1/redrive/job/{job_key}", scope="operate",
        summary="All that happened to the messages of a job; changes nothing.",
        request=shapes.JobLineageGet, answer=shapes.JobLineage, idempotent=True, errors=(NotFound,),
    ),
)  # fmt: skip

_ACCOUNT = (
    Capability(
        id="account.keys.create", method="POST", path="/v1/account/keys/create", scope="admin",
        summary="Make a key; its secret is shown only in this answer.",
        request=shapes.KeyCreate, answer=shapes.KeyCreated,
    ),
    Capability(
        id="account.keys.list", method="GET", path="/v1/account/keys/list", scope="admin",
        summary="List the keys, without secrets.",
        request=shapes.KeyList, answer=shapes.KeyPage, idempotent=True,
    ),
    Capability(
        id="account.keys.rotate", method="POST", path="/v1/account/keys/rotate/{id}", scope="admin",
        summary="Give a key a new secret; the old one lives until it is revoked.",
        request=shapes.KeyRotate, answer=shapes.KeyCreated, errors=(NotFound,),
    ),
    Capability(
        id="account.keys.revoke", method="POST", path="/v1/account/keys/revoke/{id}", scope="admin",
        summary="End a key.",
        request=shapes.KeyRevoke, answer=shapes.KeyRecord, idempotent=True, errors=(NotFound,),
    ),
    Capability(
        id="audit.list", method="GET", path="/v1/audit/list", scope="admin",
        summary="Who did what, when and why; newest first.",
        request=shapes.AuditList, answer=shapes.AuditPage, idempotent=True,
    ),
    Capability(
        id="audit.verify", method="GET", path="/v1/audit/verify", scope="admin",
        summary="Whether the audit log is as it was written; names the first row that is not.",
        request=shapes.AuditVerify, answer=shapes.AuditVerified, idempotent=True,
    ),
    Capability(
        id="admin.backup", method="POST", path="/v1/admin/backup", scope="admin",
        summary="Make a consistent copy of the store in the server's backup directory (SQLite).",
        request=shapes.Backup, answer=shapes.BackupDone, errors=(Conflict,),
    ),
)  # fmt: skip

CAPABILITIES: tuple[Capability, ...] = (*_QUEUES, *_MESSAGES, *_DEAD_LETTERS, *_PLANS, *_LINEAGE, *_ACCOUNT)
BY_ID: dict[str, Capability] = {capability.id: capability for capability in CAPABILITIES}

for _capability in CAPABILITIES:
    object.__setattr__(_capability, "example", EXAMPLES[_capability.id][0])
    object.__setattr__(_capability, "answer_example", EXAMPLES[_capability.id][1])
