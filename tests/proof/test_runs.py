"""The proofs' own machine: it resumes, adds up, and says when a control proves nothing."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.proof import __main__
from tests.proof.report import page
from tests.proof.runs import Found, Proof, Result, load, run


def round_of_three(seed: int) -> Found:
    """Three cases; the worst figure grows with the seed."""
    found = Found()
    found.count("cases", 3)
    found.at_worst("seconds", float(seed))
    return found


def broken(seed: int) -> Found:
    """A round that finds something in every case."""
    found = round_of_three(seed)
    found.expect(False, "lost message 7")
    return found


PROOF = Proof("example", "Nothing is lost.", "cases", 9, round_of_three, {"safety off": broken})


def test_a_proof_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """Two runs are as one: rounds have their own seeds, counts add up, the worst stays."""
    assert run(PROOF, until=4, folder=tmp_path).reached == 6
    assert run(PROOF, until=9, folder=tmp_path).rounds == 3
    result = load(PROOF, tmp_path)
    assert (result.reached, result.worst["seconds"], result.holds) == (9, 2.0, True)


def test_a_violation_is_kept_with_its_round(tmp_path: Path) -> None:
    """A proof that once failed does not hold, however long it goes on."""
    proof = dataclasses.replace(PROOF, round=broken)
    run(proof, until=3, folder=tmp_path)
    result = run(proof, until=6, folder=tmp_path)
    assert result.violations == ["round 0: lost message 7", "round 1: lost message 7"]
    assert not result.holds


def test_a_control_that_finds_nothing_fails_the_proof(tmp_path: Path) -> None:
    """The control: with a harmless control, the proof does not hold."""
    proof = dataclasses.replace(PROOF, controls={"safety off": round_of_three})
    assert not run(proof, until=3, folder=tmp_path).holds


def test_another_claim_begins_anew(tmp_path: Path) -> None:
    """Figures of an old claim are not counted for a new one."""
    run(PROOF, until=3, folder=tmp_path)
    assert load(dataclasses.replace(PROOF, claim="Something else."), tmp_path).reached == 0


def test_a_round_that_tries_nothing_is_an_error(tmp_path: Path) -> None:
    """It would go on for ever."""
    proof = dataclasses.replace(PROOF, round=lambda _: Found())
    with pytest.raises(RuntimeError, match="tried no cases"):
        run(proof, until=3, folder=tmp_path)


def test_a_proof_that_cannot_be_tried_is_skipped_by_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is no success: the reason is told, and the run fails."""
    unable = dataclasses.replace(PROOF, missing=lambda: "no such disk")
    monkeypatch.setattr(__main__, "proofs", lambda: {"example": unable})
    assert __main__.main(["example"]) == 1
    assert "example: SKIPPED: no such disk" in capsys.readouterr().err


def test_the_page_says_what_was_tried_and_what_was_found() -> None:
    """A row for each result; a control that found nothing and a violation stand out."""
    result = Result(
        "example", "Nothing is lost.", "cases", 9, 3, 7.2, {"cases": 6}, {"seconds": 2.0},
        ["round 1: lost"], {"safety off": 0}, ["abc"], "2 cores", "make proof-foundation ARGS=example",
    )  # fmt: skip
    text = page([dataclasses.asdict(result)])
    row = "| **example**: Nothing is lost. | 6 of 9 cases | 1 | safety off: NO | seconds 2 |"
    assert row in text.splitlines()
    assert "- round 1: lost" in text.splitlines()
