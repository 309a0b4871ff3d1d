"""No evidence is lost: dead letters are told of ahead, archived before they go, and leave a tombstone."""

from __future__ import annotations

import errno
import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from redrive.api.metrics import render
from redrive.contract import shapes
from redrive.domain import limits
from redrive.domain.errors import InvalidRequest, MessageNotFound
from redrive.service import Service, ServiceSettings
from redrive.service.access import SYSTEM, Caller
from redrive.service.batching import SLICE
from redrive.storage import commands as c
from redrive.storage.conformance import Clock, damage_memory
from redrive.storage.memory import MemoryEngine

DAY = 86_400


class Stand:
    """A service whose clock and duties move when told."""

    def __init__(self, **settings: Any) -> None:
        self.clock = Clock()
        self.engine = MemoryEngine(self.clock)
        self.service = Service(self.engine, ServiceSettings(**settings))
        self.service.committer.start()
        self.service.call("queue.create", shapes.QueueCreate(name="jobs", redact=["card"]))

    def die(
        self, count: int = 1, payload: bytes = b'{"card":"4111","n":1}', queue: str = "jobs"
    ) -> list[str]:
        """Dead letters; their ids."""
        made = shapes.Publish(queue=queue, payload=msgspec.Raw(payload))
        for _ in range(count):
            self.service.call("queue.publish", made)
        held = self.service.call("queue.consume", shapes.Consume(queue=queue, max_messages=count)).messages
        for message in held:
            error = shapes.Nack(message_id=message.message_id, permanent=True)
            self.service.call("queue.nack", error)
        return [message.message_id for message in held]

    def pass_days(self, days: float) -> None:
        """Let time go on, as an outage does."""
        self.clock.pass_seconds(days * DAY)

    def age(self) -> None:
        """The duty, once."""
        self.service._duties.age()

    def warn(self) -> None:
        """The duty, once."""
        self.service.retention.warn()

    def dead(self) -> int:
        """How many dead letters are there."""
        return len(self.engine.tables.numbers)

    def metrics(self, caller: Caller = SYSTEM) -> str:
        """The exposition text."""
        from collections import Counter

        return render(self.service, Counter(), caller).decode()


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Where dead letters go."""
    return tmp_path / "archive"


@pytest.fixture
def stand(archive: Path) -> Iterator[Stand]:
    """With an archive."""
    made = Stand(dead_letter_archive=archive)
    yield made
    made.service.close()


@pytest.fixture
def bare() -> Iterator[Stand]:
    """Without."""
    made = Stand()
    yield made
    made.service.close()


def lines(archive: Path) -> list[dict[str, Any]]:
    """Every archived letter."""
    found = [path for path in sorted(archive.rglob("*")) if path.is_file()]
    return [json.loads(line) for path in found for line in path.read_text().splitlines()]


def gone(stand: Stand, message_id: str) -> Any:
    """What is left of a letter."""
    found = stand.engine.read(lambda reader: reader.tombstone(message_id))
    assert found is not None
    return found


def test_the_end_is_told_ahead(bare: Stand, caplog: pytest.LogCaptureFixture) -> None:
    """Three days before, by source, with counts; again when they become more, and after an hour."""
    bare.die(2)
    bare.pass_days(limits.DEAD_RETENTION_SECONDS / DAY - 3.01)
    bare.warn()
    assert (caplog.messages, "dead_ending{" in bare.metrics()) == ([], False)
    bare.pass_days(0.02)
    for seconds, said in ((0, 1), (60, 1), (3_600, 2)):
        bare.clock.pass_seconds(seconds)
        bare.warn()
        assert len([m for m in caplog.messages if "2 dead letters of jobs end within 259200 s" in m]) == said
    assert 'redrive_queue_dead_ending{queue="jobs"} 2.0' in bare.metrics()
    assert "dead_ending{" not in bare.metrics(Caller("narrow", "n", ("admin",), ("other*",)))


def test_redriven_in_time_nothing_is_told(bare: Stand, caplog: pytest.LogCaptureFixture) -> None:
    """The control of the warning: what is no dead letter any more does not end."""
    bare.die()
    bare.pass_days(28)
    bare.service.call("queue.dlq.redrive", shapes.DeadLetterRedrive(queue="jobs"))
    caplog.clear()
    bare.warn()
    assert [m for m in caplog.messages if "end within" in m] == []


def test_without_an_archive_a_tombstone_stays(bare: Stand, caplog: pytest.LogCaptureFixture) -> None:
    """Id, job key, reason, fingerprint, times and checksum; counted and told."""
    [message_id] = bare.die()
    stored = bare.engine.read(lambda reader: reader.message(message_id))
    assert stored is not None
    assert stored.record is not None
    bare.pass_days(31)
    bare.age()
    left = gone(bare, message_id)
    assert (left.queue, left.job_key, left.cause, left.reason) == ("jobs", message_id, "expired", "rejected")
    assert (left.fingerprint, left.body_hash) == (stored.record.fingerprint, stored.facts.body_hash)
    times = (stored.facts.enqueued_ms, stored.record.first_failed_ms, stored.record.dead_ms, bare.clock())
    assert (left.enqueued_ms, left.first_failed_ms, left.dead_ms, left.removed_ms) == times
    assert left.archive is None
    with pytest.raises(MessageNotFound, match=r"was removed from jobs \(expired\)") as refused:
        bare.service.call("queue.message", shapes.MessageGet(message_id=message_id))
    assert (refused.value.details or {})["checksum"] == left.body_hash.hex()
    narrow = Caller("narrow", "n", ("admin",), ("other*",))
    with pytest.raises(MessageNotFound, match="gone or never existed"):
        bare.service.call("queue.message", shapes.MessageGet(message_id=message_id), caller=narrow)
    assert "retention removed 1 dead letters of jobs; their tombstones stay" in caplog.messages
    assert 'redrive_queue_dead_removed_total{queue="jobs"} 1.0' in bare.metrics()


def test_bodies_are_archived_before_they_go(stand: Stand, archive: Path) -> None:
    """Several slices, one file; each row's tombstone names it. Redacted fields are not in it."""
    ids = stand.die(SLICE * 2 + 1)
    stand.pass_days(31)
    stand.age()
    assert stand.dead() == 0
    found = lines(archive)
    assert sorted(line["message_id"] for line in found) == sorted(ids)
    assert {json.dumps(line["payload"]) for line in found} == {'{"card": "***", "n": 1}'}
    [file] = [path for path in archive.rglob("*") if path.is_file()]
    assert {gone(stand, i).archive for i in ids} == {str(file.relative_to(archive))}
    assert file.stat().st_mode & 0o777 == 0o600
    assert f"redrive_dead_letters_archived_total {float(len(ids))}" in stand.metrics()
    first = found[0]
    assert (first["queue"], first["dead_letter_queue"], first["reason"]) == ("jobs", "jobs.dlq", "rejected")
    assert first["checksum"] == gone(stand, first["message_id"]).body_hash.hex()


def test_a_payload_is_archived_exactly(stand: Stand, archive: Path) -> None:
    """Where nothing is redacted, but for raw line breaks between its tokens."""
    payload = b'{"n":12345678901234567890.10,\n "n":1e400,"s":"a\\n\\u0000"}'
    stand.die(payload=payload, queue="other")
    stand.pass_days(31)
    stand.age()
    [file] = [path for path in archive.rglob("*") if path.is_file()]
    assert payload.replace(b"\n", b" ") in file.read_bytes()


@pytest.mark.parametrize(("queue", "kept"), [("jobs", False), ("other", True)])
def test_a_damaged_body_is_archived_as_it_is(stand: Stand, archive: Path, queue: str, kept: bool) -> None:
    """As base64; where fields of it are redacted, without."""
    [message_id] = stand.die(payload=b'"xy"', queue=queue)
    damage_memory(stand.engine)(message_id)
    stand.pass_days(31)
    stand.age()
    [line] = lines(archive)
    assert line["damaged"] is True
    assert (line["body_base64"] is not None) is kept
    assert stand.dead() == 0


@pytest.mark.parametrize("call", ["write", "fsync", "open"])
def test_what_cannot_be_archived_stays(
    stand: Stand, archive: Path, call: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whichever call of the disk fails; the error names the file and the cause, once. Later it goes on."""
    [message_id] = stand.die()
    stand.service.call("queue.publish", shapes.Publish(queue="jobs", payload=msgspec.Raw(b"1")))
    stand.pass_days(31)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        stand.age()
        stand.age()
    assert stand.engine.read(lambda reader: reader.tombstone(message_id)) is None
    assert stand.dead() == 2
    said = [m for m in caplog.messages if "cannot be archived" in m]
    assert len(said) == 1
    assert str(archive) in said[0]
    assert "No space left" in said[0]
    text = stand.metrics()
    assert "redrive_dead_letter_archive_failing 1.0" in text
    assert "redrive_dead_letter_archive_failures_total 2.0" in text
    live = stand.engine.read(lambda reader: reader.counts(reader.queue("jobs")))
    assert live.dead == 2  # the live message has become a dead letter meanwhile
    stand.age()
    assert [line["message_id"] for line in lines(archive)] == [message_id]
    assert gone(stand, message_id).archive is not None
    assert "redrive_dead_letter_archive_failing 0.0" in stand.metrics()


def test_the_file_is_synced_before_the_row_goes(
    stand: Stand, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sync of the file and of its directories, then the transaction."""
    stand.die()
    stand.pass_days(31)
    order: list[str] = []
    sync, call = os.fsync, stand.service.committer.call
    monkeypatch.setattr(os, "fsync", lambda handle: order.append("sync") or sync(handle))

    def seen(command: c.Command) -> object:
        order.append(type(command).__name__)
        return call(command)

    monkeypatch.setattr(stand.service._duties._committer, "call", seen)
    stand.age()
    assert [step for step in order if step != "Tick"] == ["Age", "sync", "sync", "sync", "Forget"]
    assert len(lines(archive)) == 1


def test_what_changed_since_it_was_archived_stays(stand: Stand) -> None:
    """Another checksum, redriven meanwhile, or not over age."""
    first, second, third = stand.die(3)
    marks = {i: gone_hash(stand, i) for i in (first, second, third)}
    assert stand.service.committer.call(c.Forget(marks, "file")) == 0
    stand.pass_days(31)
    stand.service.call("queue.dlq.redrive", shapes.DeadLetterRedrive(queue="jobs", message_ids=[second]))
    assert stand.service.committer.call(c.Forget(marks | {third: b"another!"}, "file")) == 1
    assert gone(stand, first).archive == "file"
    assert stand.dead() == 2


def gone_hash(stand: Stand, message_id: str) -> bytes:
    """The checksum of a letter that is still there."""
    stored = stand.engine.read(lambda reader: reader.message(message_id))
    assert stored is not None
    return stored.facts.body_hash


def test_an_unusable_archive_is_told_at_the_start(tmp_path: Path) -> None:
    """Before anything is served."""
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(InvalidRequest, match="dead_letter_archive"):
        Service(MemoryEngine(), ServiceSettings(dead_letter_archive=file / "below"))


def test_a_warning_can_be_turned_off(caplog: pytest.LogCaptureFixture) -> None:
    """With 0 seconds."""
    caplog.set_level(logging.WARNING)
    made = Stand(dead_letter_warning_seconds=0)
    made.die()
    made.pass_days(31)
    made.warn()
    assert [m for m in caplog.messages if "end within" in m] == []
    made.service.close()
