"""The cost of the controls, where nothing differs and so two more legs are all they need."""

from __future__ import annotations

from tests.bench import subject

CASES = 50


def pair() -> tuple[float, float]:
    """Seconds with the standard controls and with none."""
    none = subject.run(CASES)[0]
    return subject.run(CASES, controls="standard")[0], none
