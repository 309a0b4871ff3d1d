"""The states of a job in the ledger, as data: what may follow what, and what is final."""

from __future__ import annotations

from enum import IntEnum


class State(IntEnum):
    """How far a job has come; the numbers are what the tables hold and never change their meaning."""

    PLANNED = 0
    ACCEPTED = 1
    COMPLETED = 2
    ISOLATED = 3
    CANCELLED = 4


FINAL = frozenset({State.COMPLETED, State.CANCELLED})
"""Nothing leaves these: the first committed completion wins."""

TRANSITIONS: dict[str, tuple[tuple[State, State], ...]] = {
    "accept": ((State.PLANNED, State.ACCEPTED),),
    "complete": (
        (State.PLANNED, State.COMPLETED),  # the relay published, a worker was faster than its note of it
        (State.ACCEPTED, State.COMPLETED),
        (State.ISOLATED, State.COMPLETED),  # redriven at the server; the ledger learns it here
    ),
    "fail": (
        (State.PLANNED, State.ACCEPTED),
        (State.ACCEPTED, State.ACCEPTED),
        (State.ISOLATED, State.ACCEPTED),  # only by a later delivery: the job was redriven
    ),
    "isolate": (
        (State.PLANNED, State.ISOLATED),
        (State.ACCEPTED, State.ISOLATED),
        (State.ISOLATED, State.ISOLATED),  # a later delivery failed for good again
    ),
    "redrive": ((State.ISOLATED, State.ACCEPTED),),
    "republish": (
        (State.ACCEPTED, State.ACCEPTED),  # a repair: the queue lost it; the generation rises
        (State.ISOLATED, State.ACCEPTED),
    ),
    "requeue": ((State.ACCEPTED, State.ACCEPTED),),  # as republish, of what a reconciliation judged lost
    "note_isolated": ((State.ACCEPTED, State.ISOLATED),),  # the queue holds it as a dead letter
    "cancel": (
        (State.PLANNED, State.CANCELLED),
        (State.ACCEPTED, State.CANCELLED),
        (State.ISOLATED, State.CANCELLED),
    ),
}


class BatchState(IntEnum):
    """How far a batch has come; the numbers are what the tables hold. Complete and cancelled are final."""

    OPEN = 0
    COMPLETE = 1
    CANCELLED = 2


BATCH_TRANSITIONS: dict[str, tuple[tuple[BatchState, BatchState], ...]] = {
    "batch_complete": ((BatchState.OPEN, BatchState.COMPLETE),),  # by its last member, or by a sweeper
    "batch_cancel": ((BatchState.OPEN, BatchState.CANCELLED),),
}
