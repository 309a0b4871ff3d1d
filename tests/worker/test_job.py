"""What a handler receives."""

from __future__ import annotations

import logging

import msgspec
import pytest

from redrive.transports.port import Delivery, Redriven
from redrive.worker import Job
from redrive.worker.execution import Execution
from redrive.worker.job import generation_of


def job(**fields: object) -> Job:
    """A job."""
    values = {"key": "s:1", "payload": {"card": "4242"}, "message_id": "m", "attempt": 1, "delivery": 2}
    return Job(**(values | {"queue": "work"} | fields))  # type: ignore[arg-type]


def test_a_logged_job_shows_no_payload() -> None:
    """Payloads may hold personal data."""
    assert "4242" not in repr(job())
    assert "s:1" in repr(job())


def test_its_log_carries_what_identifies_it(caplog: pytest.LogCaptureFixture) -> None:
    """Every line of ``job.log`` has key, message id and delivery."""
    with caplog.at_level(logging.INFO):
        job().log.info("corrected")
    (record,) = caplog.records
    assert (record.__dict__["job_key"], record.__dict__["message_id"]) == ("s:1", "m")
    assert record.__dict__["delivery"] == 2


@pytest.mark.parametrize(("text", "count"), [("3", 3), ("0", 0), ("x", 0), ("-1", 0), ("²", 0), (None, 0)])
def test_the_generation_comes_from_the_reserved_header(text: str | None, count: int) -> None:
    """Nonsense in the header is as if absent."""
    assert generation_of({"redrive-generation": text} if text is not None else None) == count


def test_a_redriven_job_names_its_plan() -> None:
    """As the delivery says; one that never was a dead letter has none."""
    execution = Execution(handler=print, queue="work", consumer_id="w")
    fields = {"message_id": "m", "receipt_handle": "h", "payload": msgspec.Raw(b"1"), "job_key": "k"}
    first = Delivery(**fields, attempt=1, delivery=1)  # type: ignore[arg-type]
    again = msgspec.structs.replace(first, redrive=Redriven("plan-1", 1))
    assert (execution.job(first).plan_id, execution.job(again).plan_id) == (None, "plan-1")


def test_a_long_handler_can_ask_for_its_lease() -> None:
    """``still_leased`` answers what the worker can prove."""
    assert job().still_leased()
    assert not job(proof=lambda: False).still_leased()
