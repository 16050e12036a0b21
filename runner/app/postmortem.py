"""Why a leg's stream ended before its last frame, as far as the engine can tell."""

from __future__ import annotations

from runner.app.session import Session
from runner.core.degrade import insufficient, runtime_unavailable
from runner.errors import ProtocolViolation
from runner.logs import log
from runner.model.leg import Degradation

_GRACE_SECONDS = 5.0


def post_mortem(
    session: Session, container_id: str, error: ProtocolViolation, diagnostics: bytes
) -> Degradation:
    """Look at the container whose stream is not believed; unknown stays a protocol violation.

    Args:
        session: The run.
        container_id: The container.
        error: What is wrong with its stream.
        diagnostics: What the agent wrote to its standard error.

    Raises:
        EngineFailure: The engine does not tell.
    """
    text = diagnostics.decode("utf-8", "replace").strip()
    log.warning("the leg's stream is not believed", error=error.line(), agent=text[:500])
    if session.cancelled.is_set():
        return insufficient("interrupted")
    try:
        state = session.engine.wait(container_id, _GRACE_SECONDS)
    except TimeoutError:
        return insufficient("protocol_violation")
    if state.oom_killed:
        return insufficient("oom")
    if state.error:
        return runtime_unavailable("start_failed")
    return insufficient("protocol_violation" if state.exit_code == 0 else "agent_died")
