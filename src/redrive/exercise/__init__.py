"""The staging exercise: three jobs, one repair and one surge against a configured server and database."""

from __future__ import annotations

from redrive.exercise.options import Options
from redrive.exercise.run import Outcome, Place, run

__all__ = ["Options", "Outcome", "Place", "run"]
