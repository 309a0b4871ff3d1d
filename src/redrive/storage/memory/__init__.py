"""The engine in memory: the oracle of the conformance suite, and the fast double for users' own tests."""

from redrive.storage.memory.engine import MemoryEngine

__all__ = ["MemoryEngine"]
