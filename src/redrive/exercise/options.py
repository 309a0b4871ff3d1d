"""What an exercise can be told, and the names that it uses: all of them its own, by one random word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Unsafe = Literal["no-ledger"]

SURGE_MAX: Final = 10_000
SECONDS_MAX: Final = 3_600.0
PREFIX: Final = "redrive-exercise"


@dataclass(frozen=True, slots=True)
class Options:
    """Lengths in seconds; ValueError for a value out of its bounds.

    ``surge`` jobs make the backlog, each of which takes ``job_seconds``. ``objective_seconds`` is the age
    that the oldest ready message may have. ``wait_seconds`` bounds every wait. ``lease_seconds`` is how long
    the messages of a killed consumer stay hidden. ``unsafe`` takes a safety away, to see the damage.
    """

    surge: int = 200
    job_seconds: float = 0.02
    objective_seconds: float = 5.0
    wait_seconds: float = 60.0
    lease_seconds: int = 5
    consumers: int = 2
    unsafe: Unsafe | None = None

    def __post_init__(self) -> None:
        _within("surge", self.surge, 1, SURGE_MAX)
        _within("job_seconds", self.job_seconds, 0, SECONDS_MAX)
        _within("objective_seconds", self.objective_seconds, 0.5, SECONDS_MAX)
        _within("wait_seconds", self.wait_seconds, 1, SECONDS_MAX)
        _within("lease_seconds", self.lease_seconds, 1, SECONDS_MAX)
        _within("consumers", self.consumers, 1, 16)


def _within(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise ValueError(f"{name} must be {low:g} to {high:g}, got {value:g}")


@dataclass(frozen=True, slots=True)
class Names:
    """Everything that the exercise ``run`` (letters and digits) makes, by name."""

    run: str

    @property
    def queue(self) -> str:
        """The queue."""
        return f"{PREFIX}-{self.run}"

    @property
    def dead_letters(self) -> str:
        """The queue of its dead letters."""
        return f"{self.queue}.dlq"

    @property
    def source(self) -> str:
        """The table of source records."""
        return f"redrive_exercise_{self.run}_source"

    @property
    def effects(self) -> str:
        """The table of effects."""
        return f"redrive_exercise_{self.run}_effects"

    def key(self, job: str) -> str:
        """The key of a job."""
        return f"exercise:{self.run}:{job}"

    def surge_keys(self, count: int) -> list[str]:
        """The keys of the surge's jobs."""
        return [self.key(f"surge-{number:05d}") for number in range(1, count + 1)]


VALID: Final = "valid"
TWICE: Final = "twice"
INVALID: Final = "invalid"
SURGE: Final = "surge"
JOBS: Final = (VALID, TWICE, INVALID)
