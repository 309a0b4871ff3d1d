"""``module:worker`` on the command line."""

from __future__ import annotations

import pytest
from tests.worker import handlers

from redrive.worker import load


def test_a_worker_is_found_by_its_name() -> None:
    """``module:attribute`` answers that very object."""
    assert load("tests.worker.handlers:hanging") is handlers.hanging


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("tests.worker.handlers", "it has steps, asynchronous, hanging, worn"),
        ("tests.worker.handlers:step", "is not a redrive Worker"),
        ("no_such_module_here:worker", "no module 'no_such_module_here'"),
        (":worker", "must be module:worker"),
    ],
)
def test_a_wrong_name_says_what_to_write(reference: str, said: str) -> None:
    """The error names what was looked for, and what is there instead."""
    with pytest.raises(ValueError, match=said):
        load(reference)
