"""Ids and handles: of the right form, ordered by time, never twice."""

from __future__ import annotations

import subprocess
import sys
import uuid

from redrive import seams

NOW = 1_790_000_000_123


def test_message_ids_are_uuids_of_version_7() -> None:
    """Version, variant and time stand where RFC 9562 puts them."""
    for text in seams.message_ids(NOW, 500):
        read = uuid.UUID(text)
        assert str(read) == text
        assert (read.version, read.variant) == (7, uuid.RFC_4122)
        assert read.int >> 80 == NOW


def test_ids_and_handles_come_once() -> None:
    """A batch has as many as were asked for, and no two are equal."""
    assert len(set(seams.message_ids(NOW, 5_000))) == 5_000
    assert len(set(seams.receipt_handles(5_000))) == 5_000
    assert seams.message_ids(NOW, 0) == seams.receipt_handles(0) == []
    assert {len(one) for one in seams.receipt_handles(50)} == {24}


def test_later_ids_sort_behind_earlier_ones() -> None:
    """Across milliseconds the text's order is the order of time."""
    drawn = [seams.message_ids(NOW + step, 1)[0] for step in range(300)]
    assert drawn == sorted(drawn)


FORKED = """
import os
from redrive import seams
read, write = os.pipe()
if os.fork() == 0:
    os.write(write, seams.message_ids(7, 1)[0].encode())
    os._exit(0)
print(os.read(read, 36).decode(), seams.message_ids(7, 1)[0])
"""


def test_a_forked_child_does_not_repeat_its_parent() -> None:
    """Both draw after the fork, from one state if the child is not seeded again."""
    command = [sys.executable, "-c", FORKED]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    theirs, ours = ran.stdout.split()
    assert len(theirs) == len(ours) == 36
    assert theirs != ours
