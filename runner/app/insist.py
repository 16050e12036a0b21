"""Removal that does not give up at the first refusal."""

from __future__ import annotations

from collections.abc import Callable

import tenacity

from runner.errors import EngineFailure


@tenacity.retry(
    retry=tenacity.retry_if_exception_type(EngineFailure),
    stop=tenacity.stop_after_attempt(4),
    wait=tenacity.wait_exponential(multiplier=0.1, max=1.0),
    reraise=True,
)
def insist(action: Callable[[str], None], target: str) -> None:
    """Removal is idempotent, so it may be tried again; nothing that a case does ever is.

    Raises:
        EngineFailure: The last attempt failed, too.
    """
    action(target)
