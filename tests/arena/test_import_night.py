"""A night from two files: days, accounts, and what the settlement must find."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from redrive.arena.files import FileProblem, night_from, write_pair
from redrive.arena.game import cases
from tests.arena.conftest import DAY, NOW_MS, expected

OURS = "payment_id,shard,game_id,provider_ref,amount,currency,state,version,updated_at\n"
REST = ",5,usd,charged,1,2026-10-23 00:00:00\n"
THEIRS = (
    "balance_transaction_id,created_utc,currency,gross,fee,net,reporting_category,source_id,charge_id,"
    "payment_intent_id,description\n"
)


def test_a_written_night_reads_back_as_the_same_answers(tmp_path: Path) -> None:
    """Each shard's answers are those of the cases that were told in it; strangers lie in the first shard."""
    ours, theirs, _ = write_pair(tmp_path, Random(4), 3_000, day=DAY, now_ms=NOW_MS)
    night = night_from(ours, theirs)
    told = list(cases(Random(4), 3_000, day=DAY, now_ms=NOW_MS))
    assert night.day == DAY
    assert len(night.payments) == 3_000
    everything = [answer for answers in night.answers.values() for answer in answers]
    assert expected(everything) == expected([answer for case in told for answer in case.answers])
    for case in told:
        for answer in case.answers:
            shard = case.shard if answer["find"] != "not_ours" else min(night.answers)
            assert answer["subject"] in [each["subject"] for each in night.answers[shard]]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("", "no payments in it"),
        ("p1,a,g,ch_1,5,usd,charged,1,2026-10-23 00:00:00\n" * 2, "must be unique, repeated: p1"),
        (
            f"p1,a,g,ch_1{REST}p2,a,h,ch_2{REST}",
            "more than one: a",
        ),
        ("p1,a b,g,ch_1,5,usd,charged,1,2026-10-23 00:00:00\n", "line 2: shard 'a b'"),
    ],
)
def test_files_that_make_no_night_are_refused_by_name(tmp_path: Path, rows: str, words: str) -> None:
    """One clear sentence with the file's name."""
    (tmp_path / "ours.csv").write_text(OURS + rows)
    (tmp_path / "theirs.csv").write_text(THEIRS)
    with pytest.raises(FileProblem, match=r"ours\.csv: ") as caught:
        night_from(tmp_path / "ours.csv", tmp_path / "theirs.csv")
    assert words in str(caught.value)
