"""What the agent saw from inside, held against what was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from runner.core.confine import AGENT_CAPABILITIES, SCRATCH, WORKSPACE
from runner.core.degrade import hooks_disabled
from runner.core.hookenv import digest
from runner.model.hooks import HooksDirectory
from runner.model.leg import ContextRoot, Degradation, DegradedReason
from runner.model.observation import InsideEnd, InsideReport

_BITS = {"KILL": 5, "SETGID": 6, "SETUID": 7}
_SECCOMP_FILTER = 2
_WRITABLE = frozenset({*SCRATCH, WORKSPACE, "/dev/mqueue"})
# Loopback, and what a kernel with tunnel modules puts into every network namespace: down, without
# an address, and of no use without a route.
_INTERFACES = frozenset(
    (
        "lo",
        "erspan0",
        "gre0",
        "gretap0",
        "ip6_vti0",
        "ip6gre0",
        "ip6tnl0",
        "ip_vti0",
        "sit0",
        "tunl0",
    )
)


def sandbox_problems(
    report: InsideReport, *, case_user: tuple[int, int], agent_sha256: str, gvisor: bool
) -> tuple[str, ...]:
    """Ways in which the inside is not as confined as it must be, one line each.

    Args:
        report: The agent's report.
        case_user: Uid and gid that cases must have.
        agent_sha256: Digest of the agent that was staged.
        gvisor: True under runsc, whose kernel shows no seccomp mode.
    """
    return tuple(_problems(report, case_user, agent_sha256, gvisor=gvisor))


def _problems(
    report: InsideReport, case_user: tuple[int, int], agent_sha256: str, *, gvisor: bool
) -> Iterator[str]:
    wanted = sum(1 << _BITS[name] for name in AGENT_CAPABILITIES)
    if report.agent_sha256 != agent_sha256:
        yield "the agent inside is not the one that was staged"
    if _bits(report.capabilities) != wanted:
        yield f"the agent has capabilities {report.capabilities}, asked for {wanted:016x}"
    if _bits(report.case_capabilities) != 0:
        yield f"cases have capabilities {report.case_capabilities}"
    if not report.no_new_privs:
        yield "no-new-privileges is not set"
    if report.seccomp != _SECCOMP_FILTER and not gvisor:
        yield f"no seccomp filter is in force (mode {report.seccomp})"
    if report.uid != 0 or report.case_uid != case_user[0]:
        yield f"agent runs as {report.uid}, cases as {report.case_uid}"
    if report.routes:
        yield f"{report.routes} network routes are visible inside"
    unexpected = sorted(set(report.interfaces) - _INTERFACES)
    if unexpected:
        yield f"unexpected network interfaces: {', '.join(unexpected)}"
    beyond = sorted(set(report.writable) - _WRITABLE)
    if beyond:
        yield f"the case user can write to {', '.join(beyond)}"


def _bits(hexadecimal: str) -> int | None:
    """Capability bits; None, which equals no set, for anything but digits."""
    try:
        return int(hexadecimal, 16)
    except ValueError:
        return None


def root_degradation(
    root: ContextRoot | None, seen: InsideReport | InsideEnd, *, at_start: bool = True
) -> Degradation | None:
    """`digest_mismatch` when the context root inside is not the one that was staged.

    Args:
        root: What was staged.
        seen: What the agent found at start or at end.
        at_start: False: it was told to look at the end only, so its first report names none.
    """
    staged = root.sha256 if root is not None else None
    if not at_start and isinstance(seen, InsideReport):
        staged = None
    if seen.context_root_sha256 == staged:
        return None
    return Degradation(reason=DegradedReason.CONTEXT_ROOT_UNAVAILABLE, detail="digest_mismatch")


def environment_degradation(
    environment: Mapping[str, str], seen: InsideReport | InsideEnd
) -> Degradation | None:
    """`environment_differs` when cases do not start with the environment that was planned."""
    planned = {name: digest(value) for name, value in environment.items()}
    return None if seen.environment_sha256 == planned else hooks_disabled("environment_differs")


def hooks_degradation(
    hooks: HooksDirectory | None, seen: InsideReport | InsideEnd
) -> Degradation | None:
    """`directory_differs` when the hooks directory inside is not the one that was staged."""
    staged = hooks.sha256 if hooks is not None else None
    return None if seen.hooks_directory_sha256 == staged else hooks_disabled("directory_differs")
