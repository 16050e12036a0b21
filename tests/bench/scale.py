"""Ten times the cases: cost of a case, and memory of the orchestrator."""

from __future__ import annotations

from tests.bench import subject

FEW, MANY = 1_000, 10_000


def pair() -> tuple[float, float]:
    """Seconds for a case at 10,000 and at 1,000 cases, fixed cost included."""
    few, _ = subject.alone(FEW)
    many, _ = subject.alone(MANY)
    return many / MANY, few / FEW


def memory_pair() -> tuple[float, float]:
    """Peak memory at 10,000 and at 1,000 cases."""
    _, few = subject.alone(FEW)
    _, many = subject.alone(MANY)
    return float(many), float(few)
