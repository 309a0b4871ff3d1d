"""What an event does to a message: every fact, every event."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.domain import limits
from redrive.domain.backoff import RetryPolicy
from redrive.domain.decide import Case, admit, cause, decide, repeats
from redrive.domain.errors import Conflict, InvalidRequest, RedriveError, StaleReceipt
from redrive.domain.facts import Change, Ended, Facts, Slot
from redrive.domain.fingerprint import error_info, fingerprint
from redrive.domain.policy import FingerprintPolicy, QueuePolicy
from redrive.domain.states import TRANSITIONS, Event, IllegalTransition, State

NOW = 1_800_000_000_000
SETTLES = [Event.ACK, Event.NACK, Event.REJECT, Event.RELEASE, Event.EXTEND]


def facts(**fields: object) -> Facts:
    """A message that was leased once, and still is."""
    known: dict[str, object] = {
        "id": 1, "message_id": "m", "queue_id": 1, "slot": Slot.LEASED, "priority": 0, "due_ms": NOW - 9_000,
        "expires_ms": NOW + 99_000, "attempt": 1, "releases": 0, "delivery": 1, "handle": "h",
        "leased_ms": NOW - 5_000, "lease_until_ms": NOW + 5_000, "ended": Ended.NEVER, "cancelled": False,
        "dead": False, "group_id": None, "position": 0, "job_key": "m", "enqueued_ms": NOW - 9_000,
        "consumer_id": None, "first_failed_ms": 0, "redriven": 0, "body_hash": b"",
    }  # fmt: skip
    return Facts(**{**known, **fields})  # type: ignore[arg-type]


@st.composite
def any_facts(draw: st.DrawFn) -> Facts:
    """Any message that can be stored."""
    group = draw(st.sampled_from([None, 7]))
    dead = draw(st.booleans())
    rest = Slot.READY if group is None else Slot.IN_GROUP
    slot = draw(st.sampled_from([rest, Slot.LEASED, *([Slot.HELD] if dead else [])]))
    attempt = draw(st.integers(0, limits.MAX_RETRIES_MAX + 1))
    return facts(
        slot=slot,
        dead=dead,
        group_id=group,
        attempt=max(attempt, 1) if slot == Slot.LEASED else attempt,
        releases=draw(st.sampled_from([0, 1, limits.RELEASES_MAX - 1, limits.RELEASES_MAX])),
        delivery=draw(st.integers(1 if slot == Slot.LEASED else 0, 10**9)),
        leased_ms=NOW - draw(st.integers(0, 50_000_000)),
        ended=draw(st.sampled_from(list(Ended))),
        cancelled=draw(st.booleans()),
    )


policies = st.builds(
    QueuePolicy,
    max_retries=st.integers(0, limits.MAX_RETRIES_MAX),
    max_lease_seconds=st.integers(1, limits.VISIBILITY_SECONDS_MAX),
    retry_policy=st.builds(
        RetryPolicy,
        base_seconds=st.floats(0, 900),
        factor=st.floats(1, 100),
        max_seconds=st.floats(0, 86_400),
    ),
)
cases = st.builds(
    Case,
    event=st.sampled_from([event for event in Event if event not in (Event.PUBLISH, Event.LEASE)]),
    facts=any_facts(),
    policy=policies,
    now_ms=st.just(NOW),
    draw=st.floats(0, 1, exclude_max=True),
    delay_ms=st.none() | st.integers(0, limits.DELAY_SECONDS_MAX * 1000),
    visibility_ms=st.integers(1, limits.VISIBILITY_SECONDS_MAX * 1000),
    grouped=st.booleans(),
)


@given(cases)
def test_only_what_the_table_holds(case: Case) -> None:
    """Any event on any message is a row of the table, or a refusal; nothing else comes out."""
    before = repr(case.facts)
    try:
        decision = decide(case)
    except (RedriveError, IllegalTransition):
        decision = None
    assert repr(case.facts) == before, "deciding changes nothing"
    row = TRANSITIONS.get((case.facts.state, case.event))
    if decision is not None:
        assert row is not None
        assert decision.to in row
    elif row is not None:  # the one refusal of an event that the table knows: extend
        assert case.event is Event.EXTEND


@given(cases)
def test_the_budget_is_never_exceeded(case: Case) -> None:
    """A live message goes back only with budget left, and only a release lowers the count."""
    try:
        decision = decide(case)
    except (RedriveError, IllegalTransition):
        return
    live = not case.facts.dead and case.event is not Event.REDRIVE
    if live and decision.change is Change.RESCHEDULE:
        spent = decision.attempt
        assert spent <= case.policy.max_retries or case.event is Event.RELEASE
        assert spent in (case.facts.attempt, case.facts.attempt - 1)
        if spent < case.facts.attempt:
            assert case.event is Event.RELEASE
            assert decision.releases == case.facts.releases + 1 <= limits.RELEASES_MAX
    assert not hasattr(decision, "delivery"), "no decision can touch the fencing number"


@given(cases)
def test_nothing_is_due_before_now(case: Case) -> None:
    """What goes back to rest is due now or later, by at most the backoff's ceiling or the delay asked for."""
    try:
        decision = decide(case)
    except (RedriveError, IllegalTransition):
        return
    if decision.change in (Change.RESCHEDULE, Change.TRANSFER):
        longest = max(case.policy.retry_policy.max_seconds * 1000, case.delay_ms or 0)
        assert NOW <= decision.due_ms <= NOW + longest


def test_every_end_of_a_spent_budget_is_dead() -> None:
    """nack, reject and expiry all bury, each with its own reason; a cancelled message is gone instead."""
    policy = QueuePolicy(max_retries=2)
    reasons = {Event.NACK: "max_attempts", Event.EXPIRE: "lease_expired", Event.REJECT: "rejected"}
    for event, reason in reasons.items():
        assert decide(Case(event, facts(attempt=3), policy, NOW)).bury == reason
        assert decide(Case(event, facts(attempt=3, cancelled=True), policy, NOW)).to is State.GONE
        assert decide(Case(event, facts(attempt=9, dead=True), policy, NOW)).to is State.DEAD
    assert decide(Case(Event.NACK, facts(attempt=2), policy, NOW)).to is State.AVAILABLE


def test_lease_time_counts_as_backoff() -> None:
    """After an expiry the backoff counts from the lease's start, after a nack from now."""
    policy = QueuePolicy(retry_policy=RetryPolicy(base_seconds=8, jitter=False))
    assert decide(Case(Event.EXPIRE, facts(), policy, NOW)).due_ms == NOW + 3_000
    assert decide(Case(Event.EXPIRE, facts(leased_ms=NOW - 9_000), policy, NOW)).due_ms == NOW
    assert decide(Case(Event.NACK, facts(), policy, NOW)).due_ms == NOW + 8_000


@pytest.mark.parametrize("seconds", [39, 40, 41])
def test_extend_up_to_the_cap(seconds: int) -> None:
    """An extension ends at the cap, and is refused when nothing is left or the message was cancelled."""
    policy = QueuePolicy(max_lease_seconds=45)
    case = Case(Event.EXTEND, facts(), policy, NOW, visibility_ms=seconds * 1000)
    assert decide(case).lease_until_ms == NOW + min(seconds, 40) * 1000
    with pytest.raises(Conflict, match="max_lease_seconds of 5"):
        decide(Case(Event.EXTEND, facts(), QueuePolicy(max_lease_seconds=5), NOW, visibility_ms=1))
    with pytest.raises(Conflict, match="cancelled"):
        decide(Case(Event.EXTEND, facts(cancelled=True), policy, NOW, visibility_ms=1))


@pytest.mark.parametrize("event", SETTLES)
def test_only_the_last_handle_is_admitted(event: Event) -> None:
    """Another handle is stale in every state; the right one is admitted while leased; none may be refused."""
    policy = QueuePolicy()
    for slot in (Slot.READY, Slot.LEASED):
        with pytest.raises(StaleReceipt):
            admit(event, facts(slot=slot, ended=Ended.LOST), "older", policy)
    assert admit(event, facts(), "h", policy) is event
    assert admit(event, facts(), None, policy) is event
    with pytest.raises(InvalidRequest):
        admit(event, facts(), None, QueuePolicy(require_receipt_handle=True))
    with pytest.raises(StaleReceipt):
        admit(event, facts(slot=Slot.READY, delivery=0), None, policy)


@pytest.mark.parametrize("ended", [Ended.LOST, Ended.NACKED, Ended.RELEASED, Ended.REJECTED])
@pytest.mark.parametrize("event", SETTLES)
def test_after_the_end_only_the_same_verb(event: Event, ended: Ended) -> None:
    """After an expiry only ack works late; after nack, release and reject only the same verb, unchanged."""
    same = {Event.NACK: Ended.NACKED, Event.RELEASE: Ended.RELEASED, Event.REJECT: Ended.REJECTED}
    at_rest = facts(slot=Slot.READY, ended=ended)
    if event is Event.ACK and ended is Ended.LOST:
        assert admit(event, at_rest, "h", QueuePolicy()) is Event.LATE_ACK
    elif same.get(event) is ended:
        assert admit(event, at_rest, "h", QueuePolicy()) is event
        assert repeats(event, at_rest)
    else:
        with pytest.raises(StaleReceipt):
            admit(event, at_rest, "h", QueuePolicy())


@pytest.mark.parametrize("policy", ["retry", "reject", "hold"])
@pytest.mark.parametrize("event", [Event.NACK, Event.EXPIRE, Event.REJECT])
def test_a_judged_cause_dies_at_its_first_failure(event: Event, policy: FingerprintPolicy) -> None:
    """As a permanent failure would, but it ended as it ended; with ``retry`` it is tried again (control)."""
    for fields in ({}, {"dead": True}, {"cancelled": True}):
        decision = decide(Case(event, facts(**fields), QueuePolicy(), NOW, cause_policy=policy))
        plain = decide(Case(event, facts(**fields), QueuePolicy(), NOW))
        if fields or event is Event.REJECT or policy == "retry":
            assert decision == plain
        else:
            assert decision.to is State.DEAD
            assert decision.bury == ("lease_expired" if event is Event.EXPIRE else "rejected")
            assert (decision.ended, decision.attempt_end) == (plain.ended, plain.attempt_end)


def test_the_fingerprint_of_a_failure() -> None:
    """That of its error; without one, that of what it would die of; other events have none."""
    error = error_info({"type": "Boom", "message": "payment 7"})
    assert error is not None
    assert cause(Event.NACK, error) == cause(Event.EXPIRE, error) == error.fingerprint
    assert cause(Event.NACK, None) == fingerprint("max_attempts", "")
    assert cause(Event.EXPIRE, None) == fingerprint("lease_expired", "")
    assert {cause(event, error) for event in Event if event not in (Event.NACK, Event.EXPIRE)} == {None}
