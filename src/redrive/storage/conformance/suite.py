"""Every scenario in one class: subclass it, and give ``rig`` as a pytest fixture."""

from __future__ import annotations

from redrive.storage.conformance.budget import BudgetScenarios
from redrive.storage.conformance.dead_letters import DeadLettersScenarios
from redrive.storage.conformance.delivery import DeliveryScenarios
from redrive.storage.conformance.evidence import EvidenceScenarios
from redrive.storage.conformance.fifo import FifoScenarios
from redrive.storage.conformance.hostile import HostileScenarios
from redrive.storage.conformance.plans import PlanScenarios
from redrive.storage.conformance.queues import QueuesScenarios
from redrive.storage.conformance.receipts import ReceiptsScenarios
from redrive.storage.conformance.transitions import TransitionScenarios


class EngineConformance(
    DeliveryScenarios,
    ReceiptsScenarios,
    BudgetScenarios,
    DeadLettersScenarios,
    FifoScenarios,
    PlanScenarios,
    QueuesScenarios,
    EvidenceScenarios,
    HostileScenarios,
    TransitionScenarios,
):
    """What every engine must do, told as scenarios."""
