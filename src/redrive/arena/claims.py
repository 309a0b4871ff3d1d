"""The claims of a night: for each, what was expected and what the business tables show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from redrive.arena.evidence import Evidence, Tables

RECOVERY_SECONDS_MAX: Final = 15.0


@dataclass(frozen=True, slots=True)
class Claim:
    """One line of the final table; ``holds`` decides the exit code."""

    name: str
    expected: str
    shown: str
    holds: bool


def judge(evidence: Evidence, tables: Tables) -> list[Claim]:
    """Every claim that this night staged, in the order of the story."""
    return [claim for make in _CLAIMS if (claim := make(evidence, tables)) is not None]


def _effects(evidence: Evidence, tables: Tables) -> Claim:
    keys = [*evidence.settlements.values(), *evidence.cleanups]
    counts = Counter(tables.effects.get(key, 0) for key in keys)
    strange = set(tables.effects) - set(keys)
    more = sum(times for effects, times in counts.items() if effects > 1)
    shown = f"once {counts[1]}, more than once {more}, unknown keys {len(strange)}"
    return Claim(
        "effects per job key",
        f"{counted(len(keys), 'key')}, once each",
        shown,
        counts[1] == len(keys) and not strange,
    )


def _lost(evidence: Evidence, tables: Tables) -> Claim:
    keys = [*evidence.settlements.values(), *evidence.cleanups]
    lost = [key for key in keys if not tables.effects.get(key)]
    names = f" ({', '.join(lost[:3])}{' …' if len(lost) > 3 else ''})" if lost else ""
    return Claim("jobs lost", "0", f"{len(lost)}{names}", not lost)


def _ledger(evidence: Evidence, tables: Tables) -> Claim:
    wanted = len(evidence.settlements) + len(evidence.cleanups)
    status = tables.status
    left = status.planned + status.accepted + status.isolated + status.cancelled
    shown = f"{status.completed} completed, {left} not"
    return Claim("the ledger", f"{wanted} completed, 0 not", shown, status.completed == wanted and not left)


def _money(evidence: Evidence, tables: Tables) -> Claim:
    owed = evidence.night.totals()
    wrong = [code for code in sorted({*owed, *tables.posted}) if owed.get(code) != tables.posted.get(code)]
    shown = f"{counted(len(owed) - len(wrong), 'currency', 'currencies')} equal"
    if wrong:
        code = wrong[0]
        excess = tables.posted.get(code, (0, 0, 0))[2] - owed.get(code, (0, 0, 0))[2]
        shown += f", {len(wrong)} wrong ({code} net {excess:+d})"
    return Claim(
        "money posted = the provider's books",
        f"{counted(len(owed), 'currency', 'currencies')} equal",
        shown,
        not wrong,
    )


def _answers(evidence: Evidence, tables: Tables) -> Claim:
    known: Counter[tuple[str, str, str, str]] = Counter()
    for shard, answers in evidence.night.answers.items():
        known.update((evidence.settlements[shard], a["find"], a["subject"], a["to_state"]) for a in answers)
    got = Counter(
        (row["job_key"], "correction", row["payment_id"], row["to_state"]) for row in tables.corrections
    )
    got.update(
        (row["job_key"], row["kind"], row["payment_id"] or row["provider_ref"], "")
        for row in tables.exceptions
    )
    missed, extra = sum((known - got).values()), sum((got - known).values())
    expected = counted(sum(known.values()), "known difference")
    shown = f"{sum((known & got).values())} found, {missed} missed, {extra} too many"
    return Claim("differences found", expected, shown, not missed and not extra)


def _doubled(evidence: Evidence, tables: Tables) -> Claim | None:
    if not evidence.roles.doubled:
        return None
    return _refused("published twice", evidence.roles.doubled, evidence, tables)


def _killed(evidence: Evidence, tables: Tables) -> Claim | None:
    if not evidence.roles.killed:
        return None
    claim = _refused("worker killed after commit, before ack", evidence.roles.killed, evidence, tables)
    before, killed = evidence.committed_before_kill, evidence.moments.get("killed", 0)
    again = [a.ended_at_ms for a in tables.attempts[evidence.settlements[evidence.roles.killed]]]
    took = (max(again, default=killed) - killed) / 1000
    shown = f"committed {before}; {claim.shown}, {took:.1f} s after the kill"
    holds = claim.holds and before == 1 and took <= RECOVERY_SECONDS_MAX
    return Claim(claim.name, f"committed 1; {claim.expected}", shown, holds)


def _refused(name: str, shard: str, evidence: Evidence, tables: Tables) -> Claim:
    key = evidence.settlements[shard]
    refused = sum(1 for attempt in tables.attempts[key] if attempt.outcome == "duplicate")
    effects = tables.effects.get(key, 0)
    shown = f"{counted(effects, 'effect')}, duplicate refused {refused}"
    return Claim(name, "1 effect, duplicate refused at least 1", shown, effects == 1 and refused >= 1)


def _isolated(evidence: Evidence, _: Tables) -> Claim | None:
    if not evidence.roles.invalid:
        return None
    key = evidence.settlements[evidence.roles.invalid]
    found = [f"{item['job_key']} ({item['reason']})" for item in evidence.isolated]
    return Claim(
        "isolated", f"{key} (rejected)", ", ".join(found) or "nothing", found == [f"{key} (rejected)"]
    )


def _redriven(evidence: Evidence, tables: Tables) -> Claim | None:
    if not evidence.roles.invalid:
        return None
    key = evidence.settlements[evidence.roles.invalid]
    ended = [attempt.outcome for attempt in tables.attempts[key]]
    effects, count = tables.effects.get(key, 0), len(evidence.redriven)
    shown = f"{count} redriven, {counted(effects, 'effect')}, attempts {', '.join(ended)}"
    holds = (count, effects, ended.count("reject"), ended[-1:]) == (1, 1, 1, ["done"])
    return Claim(
        "corrected and redriven, only that one",
        "1 redriven, 1 effect, attempts …, reject, done",
        shown,
        holds,
    )


def _outage(evidence: Evidence, tables: Tables) -> Claim | None:
    keys = [evidence.settlements[shard] for shard in evidence.roles.outage]
    if not keys:
        return None
    off = evidence.moments.get("outage_off", 0)
    ends = [row["written_at_ms"] for row in tables.audit if row["job_key"] in keys]
    met = int(tables.counts["faults"].get("outage", 0))
    took = (max(ends, default=off) - off) / 1000
    settled = {row["job_key"] for row in tables.audit} & set(keys)
    holds = len(settled) == len(keys) and took <= RECOVERY_SECONDS_MAX
    return Claim(
        "provider outage", f"{counted(len(keys), 'shard')} settled ≤ {RECOVERY_SECONDS_MAX:.0f} s after it",
        f"{counted(met, 'call')} failed, {len(ends)} settled, last after {took:.1f} s",
        holds and met > 0 and min(ends, default=0) >= off,
    )  # fmt: skip


def _stopped(evidence: Evidence, tables: Tables) -> Claim | None:
    keys = {evidence.settlements[shard] for shard in evidence.roles.stopped}
    if not keys:
        return None
    stopped, started = evidence.moments.get("stopped", 0), evidence.moments.get("started", 0)
    times = [row["written_at_ms"] for row in tables.audit if row["job_key"] in keys]
    times += [row["written_at_ms"] for row in tables.cleanups]
    idle = sum(1 for at in times if stopped <= at < started)
    took = (max(times, default=started) - started) / 1000
    done = len({row["job_key"] for row in tables.audit} & keys)
    return Claim(
        "consumers stopped", f"nothing runs meanwhile, all {len(keys) + len(evidence.cleanups)} done after",
        f"{idle} ran meanwhile, {done + len(tables.cleanups)} done, last after {took:.1f} s",
        idle == 0 and done == len(keys) and took <= RECOVERY_SECONDS_MAX,
    )  # fmt: skip


def _order(_: Evidence, tables: Tables) -> Claim:
    last: dict[str, int] = {}
    wrong = 0
    for row in tables.cleanups:
        wrong += row["position"] < last.get(row["shard"], 0)
        last[row["shard"]] = max(row["position"], last.get(row["shard"], 0))
    shown = f"{wrong} out of order in {counted(len(last), 'group')}"
    return Claim("order of cleanups in each shard", "0 out of order", shown, wrong == 0 and bool(last))


def _outdated(evidence: Evidence, tables: Tables) -> Claim:
    done = sum(1 for row in tables.cleanups if row["outcome"] == "already_finished")
    return Claim(
        "matches played on meanwhile",
        f"{evidence.outdated} left alone",
        f"{done} left alone",
        done == evidence.outdated,
    )


def _delayed(evidence: Evidence, tables: Tables) -> Claim | None:
    shard = evidence.roles.delayed
    if not shard:
        return None
    key, due = evidence.settlements[shard], evidence.moments["delayed_due"]
    at = [row["written_at_ms"] for row in tables.audit if row["job_key"] == key]
    held = {evidence.roles.delayed, evidence.roles.invalid, evidence.roles.killed}
    others = {evidence.settlements[each] for each in evidence.roles.first_wave if each not in held}
    before = {
        row["job_key"] for row in tables.audit if row["job_key"] in others and row["written_at_ms"] < due
    }
    shown = f"{'after' if at and min(at) >= due else 'not after'} its delay, {len(before)} others before it"
    return Claim(
        "one partition delayed", f"after its delay, {len(others)} others before it", shown,
        bool(at) and min(at) >= due and before == others,
    )  # fmt: skip


def _oversized(evidence: Evidence, _: Tables) -> Claim:
    code = evidence.oversized_code or "accepted"
    return Claim("body above the limit", "PAYLOAD_TOO_LARGE", code, code == "PAYLOAD_TOO_LARGE")


def _payouts(evidence: Evidence, tables: Tables) -> Claim:
    wanted = sum(a["to_state"] == "payout_failed" for found in evidence.night.answers.values() for a in found)
    calls = [row["calls"] for row in tables.counts["calls"] if row["endpoint"] == "POST /v1/payouts"]
    repeated = sum(calls) - len(calls)
    made = len(tables.counts["payouts"])
    staged = 1 if evidence.roles.timed_out else 0
    return Claim(
        "payouts sent again at the provider", f"{wanted} made; repeats answered by key, at least {staged}",
        f"{made} made; {counted(repeated, 'repeated call')}", made == wanted and repeated >= staged,
    )  # fmt: skip


def _operator(evidence: Evidence, _: Tables) -> Claim:
    wanted = [name for name, needed in _VIEWS.items() if needed(evidence)]
    seen = [name for name in wanted if evidence.views.get(name)]
    details = "; ".join(f"{name}: {_words(evidence.views[name])}" for name in seen)
    return Claim("an operator could see", ", ".join(wanted), details or "nothing", seen == wanted)


def counted(number: int, one: str, many: str = "") -> str:
    """``1 effect``, ``2 effects``."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def _words(view: dict[str, object]) -> str:
    shown = {name: round(value, 1) if isinstance(value, float) else value for name, value in view.items()}
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in shown.items())


_VIEWS: Final[dict[str, Callable[[Evidence], bool]]] = {
    "outage": lambda evidence: bool(evidence.roles.outage),
    "stopped": lambda evidence: bool(evidence.roles.stopped),
    "isolated": lambda evidence: bool(evidence.roles.invalid),
}

_CLAIMS: Final[tuple[Callable[[Evidence, Tables], Claim | None], ...]] = (
    _effects, _lost, _ledger, _money, _answers, _doubled, _killed, _oversized, _delayed, _outage,
    _stopped, _order, _outdated, _isolated, _redriven, _payouts, _operator,
)  # fmt: skip
