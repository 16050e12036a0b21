"""Where the agent begins, refuses, and ends."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` costs 8 ms of enums
import os
import time

from .jsontext import parse_json, quote
from .leg import run_leg
from .link import EXIT_FATAL, EXIT_ORPHANED, EXIT_REFUSED, Fatal, Link
from .procfs import mounts

MARKER = "AO_AGENT_CONTAINER"
AGENT_TARGET = b"/ao"
SIGINT = 2


def contained() -> bool:
    """Whether `kill(-1)` reaches the processes of a leg container and nothing else.

    PID 1, the marker of the container's configuration, a read-only root and the agent's folder
    as a read-only mount of its own: no host's init, no `docker exec`, no shell has all four.
    """
    if os.getpid() != 1 or os.environ.get(MARKER) != "1":
        return False
    top = {target: read_only for target, _, read_only in mounts()}  # the last mount wins
    return top.get(b"/", False) and top.get(AGENT_TARGET, False)


def end_after(seconds: int) -> None:
    """End the leg at its time limit even if nobody is left to do it.

    An engine that is killed leaves standard input open: its shim holds both ends.
    """
    until = time.monotonic() + seconds

    def late(*_: object) -> None:
        # A case may send the signal, too, in the moment of its spawn.
        if time.monotonic() >= until:
            os._exit(EXIT_ORPHANED)

    _signal.signal(_signal.SIGALRM, late)
    _signal.setitimer(_signal.ITIMER_REAL, seconds, 1.0)


def run(link: Link) -> None:
    """Read the plan and carry it out."""
    plan = parse_json(link.read_plan())
    if plan["v"] != 1:
        raise Fatal("version", "the plan is of another protocol version")
    link.nonce = plan["nonce"].encode("ascii")
    if os.getuid() != 0 or plan["uid"] == 0 or plan["gid"] == 0:
        raise Fatal("credentials", "the agent must be root and its cases must not")
    end_after(plan["leg_seconds"])
    os.umask(0o022)
    os.setgroups([])
    run_leg(link, plan)


def main() -> int:
    """Run as PID 1 of a leg container, or refuse; returns the exit code."""
    if not contained():
        os.write(2, b"agent: refused: this is not PID 1 of a leg container\n")
        return EXIT_REFUSED
    _signal.signal(SIGINT, _signal.SIG_IGN)
    link = Link()
    try:
        run(link)
        return 0
    except Exception as error:  # noqa: BLE001  # PID 1 must say why it ends
        token = error.args[0] if isinstance(error, Fatal) else "internal"
        text = error.args[1] if isinstance(error, Fatal) else repr(error)[:2000]
        os.write(2, b"agent: %s: %s\n" % (token.encode(), text.encode("utf-8", "replace")))
        if link.nonce:
            link.frame(b'"t":"fatal","w":"%s","m":%s' % (token.encode(), quote(text)))
            link.flush()
        return EXIT_FATAL


def start() -> None:
    """Where the container's command enters: no clean-up of an interpreter, the process ends."""
    os._exit(main())
