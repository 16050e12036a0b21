"""What is different when a leg's kernel is gVisor's, and what may be concluded all the same.

gVisor is one process to the host. Limits of a container are limits of that process: a case that
goes beyond them ends the kernel and with it the container, where Linux would end the case alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from runner.model.leg import CasePlan, Degradation

_ENDS_OF_CONTAINERS = frozenset({"oom", "agent_died"})


def warnings(*, shared: bool) -> tuple[str, ...]:
    """What a scorecard has to say of its legs' runtime.

    Args:
        shared: All cases of a leg run in one workspace, so in one container as far as possible.
    """
    limits = "gVisor: a case that exceeds a limit of memory or processes ends its whole container"
    looks = "gVisor: what a case only looked at by name may be told as opened"
    if shared:
        hidden = "a case may find System V objects and message queues of an earlier one"
        return (f"{limits}; then the whole leg is degraded", f"gVisor: {hidden}", looks)
    alone = f"{limits}; that case is then degraded (oom, or agent_died), the others are not"
    return (alone, looks)


def to_blame(
    end: Degradation, *, begun: CasePlan | None, ended: Iterable[CasePlan]
) -> CasePlan | None:
    """The one case that can have ended a container, or None when that is not known.

    Args:
        end: How the container ended before its last frame.
        begun: The case that had begun and not ended.
        ended: Cases that ended in the same container.

    A container without a case cannot have been ended by one, and where more than one ran, an
    earlier one may have left what ended it.
    """
    if end.detail not in _ENDS_OF_CONTAINERS or begun is None or not _runs(begun):
        return None
    return None if any(map(_runs, ended)) else begun


def _runs(case: CasePlan) -> bool:
    return case.command is not None or bool(case.probes)
