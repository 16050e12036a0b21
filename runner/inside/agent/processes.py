"""The processes of the container: noticing their end, reaping, killing."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` costs 8 ms of enums
import os
import time

from .link import Fatal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .link import Link

SIGKILL = 9
SWEEP_SECONDS = 30.0


def pidfd_open(pid: int) -> int:
    """A descriptor that is readable when the process ends; -1 where the kernel has none."""
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):
        return -1


def reap(leader: int) -> int | None:
    """Reap every zombie; returns the leader's wait status if it was among them."""
    status = None
    try:
        while True:
            pid, found = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return status
            if pid == leader:
                status = found
    except ChildProcessError:
        return status


def sweep(link: Link, leader: int, status: int | None) -> tuple[int, int]:
    """Kill and reap every process of the container but the agent.

    Args:
        link: Watched meanwhile.
        leader: Process whose wait status is wanted.
        status: That status, if it was reaped already.

    Returns:
        (wait status of the leader, rounds after its end that still found something alive).
    """
    rounds = 0
    give_up = 0.0
    while True:
        found = reap(leader)  # first: kill(-1) counts zombies as processes
        status = found if status is None else status
        try:
            os.kill(-1, SIGKILL)
        except ProcessLookupError:
            return status or 0, rounds
        if status is not None:
            rounds += 1
        if not give_up:
            give_up = time.monotonic() + SWEEP_SECONDS
        elif time.monotonic() > give_up:
            raise Fatal("unkillable", "processes of a case survive SIGKILL")
        link.check()
        time.sleep(0.0002)


def hold(seconds: int) -> None:
    """Stay for a user who wants to look around: reap, kill nothing, mind nobody."""
    _signal.setitimer(_signal.ITIMER_REAL, 0)  # this has a limit of its own
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        reap(0)
        time.sleep(0.2)
