"""A survey of dead letters ends with what it has when its time is over."""

from __future__ import annotations

import pytest

from redrive.contract import shapes
from redrive.service import Service, survey
from tests.service.test_plans import create
from tests.service.test_redrive import dead


def test_what_takes_too_long_is_told_as_at_least(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dry run and an estimate of two pages within no time: a page, and no hash; a plan takes all."""
    dead(service, 200)
    whole = create(service, dry_run=True)
    assert (whole.members, whole.complete, whole.members_sha256 is not None) == (200, True, True)
    monkeypatch.setattr(survey, "SECONDS", 0.0)
    cut = create(service, dry_run=True)
    assert (cut.members, cut.complete, cut.members_sha256) == (100, False, None)
    asked = shapes.EstimateGet(queue="jobs", select=shapes.Selection())
    told = service.call("redrive.estimate", asked)
    assert (told.count, told.complete) == (100, False)
    assert create(service, select={"max_messages": 200}).members == 200
