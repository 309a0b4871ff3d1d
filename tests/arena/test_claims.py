"""The claims: a good night holds them all; each kind of damage makes its own claim fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from redrive.arena.claims import judge
from redrive.arena.cleanup import clean_match
from redrive.arena.evidence import Evidence, Tables, read_tables
from redrive.arena.game import Night
from redrive.arena.night import Options, Outcome
from redrive.arena.outcomes import RetryLater
from redrive.arena.provider import Books, FaultPlan
from redrive.arena.reconcile import Provider, ProviderTimeout, ProviderUnavailable, reconcile_shard
from redrive.arena.records import account_of, cleanup_key, settlement_key
from redrive.arena.report import as_json, table
from redrive.arena.roles import cast, fault_plan
from tests.arena.conftest import DAY, NOW_MS, filled, serving, settlement

Good = tuple[Evidence, Tables]


class _Ledger:
    """What a good night's ledger tells."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence

    def attempts(self, key: str) -> list[Any]:
        roles = self._evidence.roles
        shard = key.rsplit(":", 1)[1]
        ended = {roles.doubled: ["done", "duplicate"], roles.killed: ["done", "duplicate"],
                 roles.invalid: ["reject", "done"]}.get(shard, ["done"])  # fmt: skip
        return [SimpleNamespace(outcome=outcome, ended_at_ms=NOW_MS + 1_000) for outcome in ended]

    def status(self) -> Any:
        done = len(self._evidence.settlements) + len(self._evidence.cleanups)
        return SimpleNamespace(planned=0, accepted=0, completed=done, isolated=0, cancelled=0)


@pytest.fixture(scope="module")
def played(night: Night, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Good]:
    """A night played without queue or processes: real handlers, a real provider, a real database."""
    failing = [
        s for s, found in night.answers.items() if any(a["to_state"] == "payout_failed" for a in found)
    ]
    roles = cast(7, list(night.answers), with_payout=failing, today=list(night.answers))
    evidence = Evidence(night, roles)
    evidence.settlements = {shard: settlement_key(DAY, shard) for shard in roles.shards}
    path: Path = tmp_path_factory.mktemp("claims") / "game.db"
    with filled(f"sqlite:///{path}", night) as game, serving(Books(night.entries)) as server:
        plan = fault_plan(roles)
        server.faults.replace(FaultPlan.from_wire({**plan, "rates": {}, "timeout_seconds": 20}))
        client = Provider(server.address, timeout_seconds=0.3)
        for shard in roles.shards:
            for _ in range(4):
                try:
                    reconcile_shard(settlement(shard), game.connection, client)
                    game.connection.commit()
                    break
                except (ProviderTimeout, ProviderUnavailable, RetryLater):
                    game.connection.rollback()
        due = [m for m in night.matches if m.state == "open" and m.expires_at_ms <= NOW_MS]
        evidence.cleanups = [cleanup_key(m.match_id, m.version) for m in due]
        game.write("match_finish", match_id=due[0].match_id)
        evidence.outdated = 1
        for match, key in zip(due, evidence.cleanups, strict=True):
            job = SimpleNamespace(
                key=key, payload={"match_id": match.match_id, "expected_version": match.version}
            )
            clean_match(job, game.connection, now_ms=NOW_MS)
        tables = read_tables(game, _Ledger(evidence), evidence, {
            "calls": server.books.counts(), "payouts": server.books.payouts(), "faults": {"outage": 3},
        })  # fmt: skip
        client.close()
    _stage(evidence, tables)
    return lambda: _copy(evidence, tables)


def _stage(evidence: Evidence, tables: Tables) -> None:
    """Lay the moments of a good night over the rows, whose clock ran through in one go."""
    roles = evidence.roles
    evidence.moments = {"killed": NOW_MS, "delayed_due": NOW_MS + 8_000, "outage_off": NOW_MS + 2_000,
                        "stopped": NOW_MS + 4_000, "started": NOW_MS + 6_000}  # fmt: skip
    times = {
        **dict.fromkeys(roles.outage, 3_000),
        **dict.fromkeys(roles.stopped, 7_000),
        roles.delayed: 8_500,
    }
    for row in tables.audit:
        row["written_at_ms"] = NOW_MS + times.get(row["shard"], 1_000)
    for row in tables.cleanups:
        row["written_at_ms"] = NOW_MS + 7_500
    evidence.oversized_code, evidence.committed_before_kill = "PAYLOAD_TOO_LARGE", 1
    key = evidence.settlements[roles.invalid]
    evidence.isolated, evidence.redriven = [{"job_key": key, "reason": "rejected"}], [key]
    evidence.views = {name: {"ready": 1} for name in ("outage", "stopped", "isolated")}


def _copy(evidence: Evidence, tables: Tables) -> Good:
    from copy import copy, deepcopy

    mine = copy(evidence)
    for name in ("cleanups", "moments", "views", "isolated", "redriven"):
        setattr(mine, name, deepcopy(getattr(evidence, name)))
    return mine, deepcopy(tables)


def _failed(good: Good) -> set[str]:
    return {claim.name for claim in judge(*good) if not claim.holds}


def test_a_good_night_holds_every_claim(played: Callable[[], Good]) -> None:
    """Nothing fails, and every scene has its claim."""
    claims = judge(*played())
    assert [claim.name for claim in claims if not claim.holds] == []
    assert len(claims) == 17


def _twice(e: Evidence, t: Tables) -> None:
    t.effects[e.settlements[e.roles.killed]] = 2


def _none(e: Evidence, t: Tables) -> None:
    del t.effects[e.cleanups[3]]


def _stranger(e: Evidence, t: Tables) -> None:
    t.effects["settlement:x"] = 1


def _overpaid(e: Evidence, t: Tables) -> None:
    gross, fee, net = t.posted["usd"]
    t.posted["usd"] = (gross, fee, net + 1)


def _missed(e: Evidence, t: Tables) -> None:
    t.exceptions.pop()


def _corrected_twice(e: Evidence, t: Tables) -> None:
    t.corrections.append(dict(t.corrections[0]))


def _not_refused(e: Evidence, t: Tables) -> None:
    t.attempts[e.settlements[e.roles.doubled]].pop()


def _killed_early(e: Evidence, t: Tables) -> None:
    e.committed_before_kill = 0


def _accepted(e: Evidence, t: Tables) -> None:
    e.oversized_code = ""


def _early(e: Evidence, t: Tables) -> None:
    e.moments["delayed_due"] += 60_000


def _slow_recovery(e: Evidence, t: Tables) -> None:
    e.moments["outage_off"] -= 60_000


def _ran_meanwhile(e: Evidence, t: Tables) -> None:
    next(row for row in t.cleanups)["written_at_ms"] = e.moments["stopped"] + 1


def _disordered(e: Evidence, t: Tables) -> None:
    t.cleanups.reverse()


def _closed_a_played_match(e: Evidence, t: Tables) -> None:
    e.outdated = 2


def _two_dead(e: Evidence, t: Tables) -> None:
    e.isolated.append({"job_key": "other", "reason": "max_attempts"})


def _redrove_all(e: Evidence, t: Tables) -> None:
    e.redriven.append("other")


def _paid_twice(e: Evidence, t: Tables) -> None:
    t.counts["payouts"].append({"id": "po_again"})


def _blind(e: Evidence, t: Tables) -> None:
    del e.views["outage"]


def _open_job(e: Evidence, t: Tables) -> None:
    t.status.accepted = 1


@pytest.mark.parametrize(
    ("damage", "failed"),
    [
        (_twice, {"effects per job key", "worker killed after commit, before ack"}),
        (_none, {"effects per job key", "jobs lost"}),
        (_stranger, {"effects per job key"}),
        (_overpaid, {"money posted = the provider's books"}),
        (_missed, {"differences found"}),
        (_corrected_twice, {"differences found"}),
        (_not_refused, {"published twice"}),
        (_killed_early, {"worker killed after commit, before ack"}),
        (_accepted, {"body above the limit"}),
        (_early, {"one partition delayed"}),
        (_slow_recovery, {"provider outage"}),
        (_ran_meanwhile, {"consumers stopped"}),
        (_disordered, {"order of cleanups in each shard"}),
        (_closed_a_played_match, {"matches played on meanwhile"}),
        (_two_dead, {"isolated"}),
        (_redrove_all, {"corrected and redriven, only that one"}),
        (_paid_twice, {"payouts sent again at the provider"}),
        (_blind, {"an operator could see"}),
        (_open_job, {"the ledger"}),
    ],
)
def test_each_damage_fails_its_own_claim(
    played: Callable[[], Good], damage: Callable[[Evidence, Tables], None], failed: set[str]
) -> None:
    """The control of every claim: it can fail, and the others do not with it."""
    good = played()
    damage(*good)
    assert _failed(good) == failed


def test_the_report_names_every_claim_and_what_fails(played: Callable[[], Good]) -> None:
    """Table and JSON carry the claims as they were judged."""
    from rich.console import Console

    good = played()
    _overpaid(*good)
    outcome = Outcome(judge(*good), good[0], 12.3, {})
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115 - closed with the test
    console.print(table(outcome, Options(seed=7, unsafe="no-receipts")))
    console.file.close()
    text = console.export_text()
    assert "seed 7, without: no-receipts" in text
    assert text.count("FAILS") == 1
    assert all(claim.name in text for claim in outcome.claims)
    data = as_json(outcome, Options(seed=7))
    assert (data["holds"], len(data["claims"]), data["seconds"]) == (False, 17, 12.3)


@pytest.mark.parametrize("seed", range(5))
def test_the_cast_gives_every_trouble_its_own_shard(night: Night, seed: int) -> None:
    """Twelve shards, every role taken, none twice; the same seed casts the same."""
    shards = list(night.answers)
    roles = cast(seed, shards, with_payout=shards[:3], today=shards)
    taken = [roles.killed, roles.doubled, roles.invalid, roles.delayed, roles.limited, roles.paged,
             roles.timed_out, *roles.outage, *roles.stopped]  # fmt: skip
    assert sorted(taken) == sorted(shards)
    assert len(roles.first_wave) == 7
    assert roles == cast(seed, shards[::-1], with_payout=shards[:3], today=shards)
    assert roles.timed_out in shards[:3]


@pytest.mark.parametrize("count", range(1, 12))
def test_fewer_shards_mean_fewer_troubles_not_an_error(count: int) -> None:
    """A small file of one's own still makes a night."""
    shards = [f"s{number}" for number in range(count)]
    roles = cast(1, shards, with_payout=shards, today=shards[:1])
    taken = [roles.killed, roles.doubled, roles.invalid, roles.delayed, roles.limited, roles.paged,
             roles.timed_out, *roles.outage, *roles.stopped]  # fmt: skip
    named = [shard for shard in taken if shard]
    assert len(named) == len(set(named))
    assert set(named) <= set(shards)
    assert account_of(roles.killed) == f"acct_{roles.killed}"
