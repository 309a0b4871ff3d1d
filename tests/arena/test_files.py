"""Both sides from CSV files: exactly the known differences, and errors that say which line."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from random import Random

import pytest

from redrive.arena.files import FileProblem, compare_files, read_entries, read_payments, write_pair
from redrive.arena.files.__main__ import main
from tests.arena.conftest import DAY, NOW_MS, expected, found

OURS = "payment_id,shard,game_id,provider_ref,amount,currency,state,version,updated_at\n"
THEIRS = (
    "balance_transaction_id,created_utc,currency,gross,fee,net,reporting_category,source_id,charge_id,"
    "payment_intent_id,description\n"
)


def _differences(ours: Path, theirs: Path, parts: int | None = None) -> list[tuple[str, str, str]]:
    answer: list[tuple[str, str, str]] = []
    for comparison in compare_files(ours, theirs, parts=parts):
        answer += found(comparison.corrections, comparison.findings)
    return sorted(answer)


def _key(path: Path) -> list[tuple[str, str, str]]:
    return expected([json.loads(line) for line in path.read_text().splitlines()])


def test_exactly_the_known_differences_in_100000_rows(tmp_path: Path) -> None:
    """Nothing missed, nothing invented, every kind present."""
    ours, theirs, key = write_pair(tmp_path, Random(23), 100_000, day=DAY, now_ms=NOW_MS)
    answers = _key(key)
    assert _differences(ours, theirs) == answers
    assert len({kind for kind, _, _ in answers}) == 8
    assert len(answers) > 5_000


def test_one_changed_line_is_one_more_difference(tmp_path: Path) -> None:
    """The control: the check sees a single amount that moves by one."""
    ours, theirs, key = write_pair(tmp_path, Random(5), 500, day=DAY, now_ms=NOW_MS)
    lines = ours.read_text().splitlines()
    answers = _key(key)
    place = next(
        number for number, line in enumerate(lines)
        if ",charged," in line and not any(line.split(",")[0] == subject for _, subject, _ in answers)
    )  # fmt: skip
    fields = lines[place].split(",")
    fields[4] = str(int(fields[4]) + 1)
    ours.write_text("\n".join([*lines[:place], ",".join(fields), *lines[place + 1 :]]))
    assert _differences(ours, theirs) == sorted([*answers, ("amount_difference", fields[0], "")])


def test_the_findings_do_not_depend_on_the_number_of_parts(tmp_path: Path) -> None:
    """One part or many, the same differences."""
    ours, theirs, key = write_pair(tmp_path, Random(3), 2_000, day=DAY, now_ms=NOW_MS)
    for parts in (1, 7, 64):
        assert _differences(ours, theirs, parts) == _key(key)


def test_memory_follows_the_part_not_the_file(tmp_path: Path) -> None:
    """Sixteen parts need far less memory at once than one."""
    ours, theirs, _ = write_pair(tmp_path, Random(3), 6_000, day=DAY, now_ms=NOW_MS)

    def peak(parts: int) -> int:
        tracemalloc.start()
        for _ in compare_files(ours, theirs, parts=parts):
            pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert peak(16) < peak(1) / 3


def test_the_same_seed_writes_the_same_files(tmp_path: Path) -> None:
    """A night can be repeated by its seed, and another seed is another night."""
    texts = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        (tmp_path / name).mkdir()
        paths = write_pair(tmp_path / name, Random(seed), 300, day=DAY, now_ms=NOW_MS)
        texts.append([path.read_bytes() for path in paths])
    assert texts[0] == texts[1]
    assert texts[0] != texts[2]


def test_other_columns_and_other_orders_are_fine(tmp_path: Path) -> None:
    """Only the named columns count; a byte-order mark and more columns do not disturb."""
    path = tmp_path / "ours.csv"
    path.write_text(
        "\ufeffnote,version,updated_at,state,currency,amount,provider_ref,game_id,shard,payment_id,more\n"
        "x,2,2026-10-23T01:02:03Z,charged,USD,1200,ch_1,g,eu-west,p1,y\n"
    )
    (payment,) = read_payments(path)
    assert (payment.payment_id, payment.amount, payment.currency, payment.version) == ("p1", 1200, "usd", 2)
    assert payment.refunded is None


def test_major_units_are_read_by_their_currency(tmp_path: Path) -> None:
    """JPY has no decimals, KWD three; net is gross less fee."""
    path = tmp_path / "theirs.csv"
    path.write_text(
        THEIRS
        + "txn_1,2026-10-23 01:02:03,jpy,500,15,485,charge,ch_1,ch_1,pi_1,a\n"
        + "txn_2,2026-10-23 01:02:03,kwd,-1.234,0,-1.234,refund,re_1,ch_1,pi_1,b\n"
    )
    amounts = [(entry.amount, entry.fee, entry.net, entry.ref) for entry in read_entries(path)]
    assert amounts == [(500, 15, 485, "ch_1"), (-1234, 0, -1234, "ch_1")]


def test_missing_columns_are_named(tmp_path: Path) -> None:
    """The error says which columns of which file are missing, and what is there."""
    path = tmp_path / "report.csv"
    path.write_text("balance_transaction_id,created_utc,currency,gross,fee\n")
    with pytest.raises(FileProblem, match=r"report\.csv: line 1: missing columns: net, reporting_category"):
        list(read_entries(path))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("txn_2,2026-10-23 01:02:03,usd,1.005,0,1.00,charge,ch,ch,pi,x", "line 3: gross: .*more decimals"),
        ("txn_2,2026-10-23 01:02:03,usd,1.00,0,0.99,charge,ch,ch,pi,x", "line 3: net 0.99 is not gross"),
        ("txn_2,yesterday,usd,1.00,0,1.00,charge,ch,ch,pi,x", "line 3: 'yesterday' is not a time"),
        ("txn_2,2026-10-23 01:02:03,US$,1.00,0,1.00,charge,ch,ch,pi,x", "line 3: currency 'US\\$'"),
        ("txn_2,2026-10-23 01:02:03", "line 3: 2 fields, at least 11"),
        (",2026-10-23 01:02:03,usd,1.00,0,1.00,charge,ch,ch,pi,x", "line 3: balance_transaction_id"),
    ],
)
def test_a_malformed_line_is_named_by_its_number(tmp_path: Path, line: str, words: str) -> None:
    """Line numbers are those of the file, and the comparison does not start."""
    ours, theirs = tmp_path / "ours.csv", tmp_path / "theirs.csv"
    ours.write_text(OURS)
    theirs.write_text(THEIRS + "txn_1,2026-10-23 01:02:03,usd,1.00,0,1.00,charge,ch,ch,pi,x\n" + line + "\n")
    with pytest.raises(FileProblem, match=words):
        next(compare_files(ours, theirs))


def test_many_malformed_lines_are_named_together_up_to_a_bound(tmp_path: Path) -> None:
    """Twenty lines at most, then reading stops."""
    path = tmp_path / "ours.csv"
    path.write_text(OURS + "p,eu-west,g,ch,-5,usd,charged,1,2026-10-23 00:00:00\n" * 50)
    with pytest.raises(FileProblem, match=r"line 2: amount '-5'.*line 21:.*stopped at 20") as caught:
        list(read_payments(path))
    assert "line 22" not in str(caught.value)


def test_bytes_that_are_no_text_are_a_clear_error(tmp_path: Path) -> None:
    """A file in another encoding is refused by name, not with a traceback of codecs."""
    path = tmp_path / "ours.csv"
    path.write_bytes(OURS.encode() + b"p\xff,eu-west\n")
    with pytest.raises(FileProblem, match=r"ours\.csv: .*cannot be read"):
        list(read_payments(path))
    with pytest.raises(FileProblem, match=r"gone\.csv: No such file"):
        list(read_payments(tmp_path / "gone.csv"))


def test_the_command_writes_a_pair_and_finds_its_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 0 with exactly the known differences, 1 with another key, 2 with an unusable file."""
    assert main(["write", str(tmp_path), "--payments", "400", "--seed", "9"]) == 0
    ours, theirs, key = (str(tmp_path / name) for name in ("ours.csv", "provider.csv", "answers.jsonl"))
    capsys.readouterr()
    assert main(["compare", ours, theirs, "--answers", key]) == 0
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == len(Path(key).read_text().splitlines())
    assert "0 missed, 0 too many" in printed.err
    Path(key).write_text("".join(Path(key).read_text().splitlines(keepends=True)[1:]))
    assert main(["compare", ours, theirs, "--answers", key]) == 1
    assert main(["compare", theirs, ours]) == 2
    assert "missing columns: payment_id" in capsys.readouterr().err
