"""One night of the game, told against real processes: the demo's run.

Nothing here decides whether the night went well. It breaks things at named places, waits for what must follow
(with a deadline each), and hands the evidence to ``claims``.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final, Literal

from msgspec.structs import asdict

from redrive import seams
from redrive.arena.claims import Claim, judge
from redrive.arena.evidence import Evidence, read_tables
from redrive.arena.files import night_from
from redrive.arena.game import Game, Night, fill, matches, open_game
from redrive.arena.ground import Ground, prepare
from redrive.arena.roles import cast, fault_plan
from redrive.arena.scenes import Scenes
from redrive.arena.stage import Stage
from redrive.ledger import Ledger
from redrive.transports import open_transport

MATCHES: Final = 600
PAYMENTS_MIN: Final = 100  # a few for each shard
PAYMENTS_MAX: Final = 1_000_000
DAY: Final = "2026-10-23"
Safety = Literal["no-receipts", "ack-first"]


@dataclass(frozen=True, slots=True)
class Options:
    """``storage`` None is a fresh embedded database. ``ours`` and ``theirs`` are CSV files, both or neither.

    ``unsafe`` takes one safety away, so that the damage can be seen. ``keep`` leaves the server running.
    """

    seed: int = 1
    payments: int = 12_000
    storage: str | None = None
    ours: Path | None = None
    theirs: Path | None = None
    unsafe: Safety | None = None
    keep: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a night ended. ``late`` names what was waited for in vain.

    ``kept`` (url, api_key, game_url, folder, schemas, pid) tells how to look around when the server was left
    running; ``logs`` is the folder with the processes' logs, kept when a claim failed that should have held.
    """

    claims: list[Claim]
    evidence: Evidence
    seconds: float
    kept: dict[str, str]
    logs: str = ""

    @property
    def holds(self) -> bool:
        """Whether every claim holds."""
        return all(claim.holds for claim in self.claims)


def run(options: Options, tell: Callable[[str], None]) -> Outcome:
    """Run one night. ``tell`` is called with what happens next.

    Raises ``FileProblem`` for unusable files, ``ValueError`` for options, ``StageProblem`` when a process
    does not start.
    """
    if not PAYMENTS_MIN <= options.payments <= PAYMENTS_MAX:
        raise ValueError(f"payments must be {PAYMENTS_MIN} to {PAYMENTS_MAX}, got {options.payments}")
    began = seams.monotonic()
    night = _night(options)
    ground = prepare(options.storage)
    stage = Stage(ground.folder, ground.storage, ground.game_url, seams.token(24))
    keep = failed = False
    try:
        with closing(open_game(ground.game_url)) as connection:
            claims, evidence = _played(options, night, stage, connection, tell)
        keep = options.keep
        failed = options.unsafe is None and not all(claim.holds for claim in claims)
    finally:
        server = stage.processes.get("server")
        stage.close(keep=("server",) if keep else ())
        if not keep:
            ground.clear(folder=not failed)
    kept = _kept(ground, stage, server.pid) if keep and server is not None else {}
    logs = str(ground.folder) if failed else ""
    return Outcome(claims, evidence, seams.monotonic() - began, kept, logs)


def _night(options: Options) -> Night:
    if (options.ours is None) != (options.theirs is None):
        raise ValueError("--payments and --provider go together: our payments and the provider's report")
    if options.ours is not None and options.theirs is not None:
        night = night_from(options.ours, options.theirs)
        night.matches.extend(matches(Random(f"{options.seed}:matches"), MATCHES, now_ms=seams.wall_ms()))
        return night
    return Night.drawn(
        options.seed, payments=options.payments, matches_count=MATCHES, day=DAY, now_ms=seams.wall_ms()
    )


def _played(
    options: Options, night: Night, stage: Stage, connection: Any, tell: Callable[[str], None]
) -> tuple[list[Claim], Evidence]:
    tell(f"{len(night.payments):,} payments of {night.day} into the game's database")
    game = Game(connection)
    game.install()
    fill(game, night)
    connection.commit()
    ledger = Ledger(stage.game_url)
    try:
        return _judged(options, night, stage, game, ledger, tell)
    finally:
        ledger.close()


def _judged(
    options: Options, night: Night, stage: Stage, game: Game, ledger: Ledger, tell: Callable[[str], None]
) -> tuple[list[Claim], Evidence]:
    ledger.install()
    failing = [shard for shard, found in night.answers.items() if "payout_failed" in _ends(found)]
    today = {row.shard for row in night.payments if row.day == night.day}
    roles = cast(options.seed, list(night.answers), with_payout=failing, today=sorted(today))
    evidence = Evidence(night, roles)
    plan = fault_plan(roles)
    tell("the provider and the server start")
    stage.start_provider(
        options.seed, _write_entries(stage.folder / "entries.jsonl", night), json.dumps(plan)
    )
    stage.start_server()
    client: Any = open_transport(stage.url, stage.api_key)
    try:
        scenes = Scenes(stage, evidence, client, game, ledger, options.unsafe, tell)
        scenes.play()
        counts = scenes.provider("GET", "counts")
        stage.stop(*scenes.workers)
        return judge(evidence, read_tables(game, ledger, evidence, counts)), evidence
    finally:
        client.close()


def _ends(answers: list[dict[str, Any]]) -> set[str]:
    return {answer["to_state"] for answer in answers}


def _write_entries(path: Path, night: Night) -> Path:
    with path.open("w", encoding="utf-8") as lines:
        for account, entries in night.entries.items():
            for entry in entries:
                lines.write(json.dumps({"account": account, **asdict(entry)}) + "\n")
    return path


def _kept(ground: Ground, stage: Stage, pid: int) -> dict[str, str]:
    shutil.rmtree(ground.folder / "signals", ignore_errors=True)
    return {
        "url": stage.url,
        "api_key": stage.api_key,
        "game_url": ground.game_url,
        "folder": str(ground.folder),
        "schemas": ", ".join(ground.schemas),
        "pid": str(pid),
    }
