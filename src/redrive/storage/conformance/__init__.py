"""The suite that every engine must pass; importable, so that a third party's engine can prove itself.

``EngineConformance`` holds the named scenarios; ``machine`` drives an engine beside the memory model with
random commands; both observe transitions, and what they see must equal ``domain.states.TRANSITIONS``.
"""

from redrive.storage.conformance.rig import Clock, Repeatable, Rig, Transition, damage_memory, table
from redrive.storage.conformance.suite import EngineConformance

__all__ = ["Clock", "EngineConformance", "Repeatable", "Rig", "Transition", "damage_memory", "table"]
