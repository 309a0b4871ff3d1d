"""Secrets that sign calls, and their replacement: for a day both sign, so that no receiver misses a call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

#: How long a replaced secret signs beside the new one.
ROTATION_MS: Final = 24 * 3_600_000


@dataclass(frozen=True, slots=True)
class SigningSecrets:
    """The secret in use, and the one it replaced at ``replaced_at_ms``. Neither is in its ``repr``."""

    current: str = field(repr=False)
    previous: str | None = field(default=None, repr=False)
    replaced_at_ms: int = 0

    def rotated(self, secret: str, now_ms: int) -> SigningSecrets:
        """``secret`` takes over; the same one again changes nothing, so that a repetition ends no rotation.

        Of two rotations within a day the first one's old secret ends with the second.
        """
        return self if secret == self.current else SigningSecrets(secret, self.current, now_ms)

    def signing(self, now_ms: int) -> tuple[str, ...]:
        """Those that sign at ``now_ms``, the one in use first."""
        if self.previous is None or now_ms - self.replaced_at_ms >= ROTATION_MS:
            return (self.current,)
        return (self.current, self.previous)
