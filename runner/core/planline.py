"""What the agent is told: a leg plan becomes the one line that it reads.

docs/adr/0003-agent-protocol.md has the fields; `runner.core.wire` reads what comes back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from runner.core.confine import WORKSPACE
from runner.core.frames import Limits
from runner.core.hooksfile import SUBJECT
from runner.errors import InputError, InternalError
from runner.model.hooks import Hook, HookEvent
from runner.model.leg import CasePlan, Command, LegPlan

VERSION: Final = 1
MAX_PLAN: Final = 64 << 20
"""Bytes of an encoded plan."""
MARKER_ENV: Final = {"AO_AGENT_CONTAINER": "1"}
"""Environment of the container (never of a case) without which the agent refuses to run."""
AGENT_TARGET: Final = "/ao"
CONTEXT_TARGET: Final = "/context/agents"
HOOKS_TARGET: Final = "/hooks"
UPPER_TARGET: Final = "/ao-upper"
MARKS_TARGET: Final = "/ao-marks"
SCRATCH: Final = ("/tmp", "/home/case", "/dev/shm")
HOOK_ENV: Final = {"CLAUDE_PLUGIN_ROOT": HOOKS_TARGET, "CLAUDE_PROJECT_DIR": WORKSPACE}
"""What hooks find beside the environment of their case: the host's folders are not there."""

_NONCE = re.compile(r"[0-9a-f]{32,128}")
_SUBJECT_NAME = {HookEvent.SESSION_START: "source", HookEvent.SESSION_END: "reason"}


def runnable(plan: LegPlan) -> tuple[CasePlan, ...]:
    """The cases that a container is asked to run: all but those degraded beforehand."""
    return tuple(case for case in plan.cases if case.degraded is None)


def encode_plan(
    plan: LegPlan,
    *,
    nonce: str,
    uid: int,
    gid: int,
    upper: str | None,
    share_workspace: bool,
    leg_seconds: int,
    limits: Limits | None = None,
    scratch: Sequence[str] = SCRATCH,
    hold_seconds: int = 0,
    marks: str | None = None,
    root_at_start: bool = True,
) -> bytes:
    """The line that the agent reads from its standard input.

    The environment travels by name only: the values are those of the created container, so that
    what cases start with is what the engine was asked for.

    Args:
        plan: The leg; of its cases the `runnable` ones are sent.
        nonce: 32 to 128 hexadecimal digits, fresh for every container, secret from the cases.
        uid: Case user, not 0.
        gid: Case group, not 0.
        upper: Where the workspace's upper layer is mounted; None when there is none to look at.
        share_workspace: Keep running after a case wrote to the workspace.
        leg_seconds: After so many the agent ends by itself; more than its orchestrator waits.
        limits: Capture bounds; None: the defaults.
        scratch: Folders to empty between cases, absolute.
        hold_seconds: Stay up to this long after the last case, for inspection.
        marks: Where the marks of a read trace are mounted; None when there is no trace.
        root_at_start: Compute the root's digest before the first case too; False where that would
            hide from a trace what the case opens.

    Returns:
        One line of JSON, at most `MAX_PLAN` bytes.

    Raises:
        InputError: The plan is too large.
        InternalError: The nonce or the user is not what it must be.
    """
    limits = limits or Limits()
    if not _NONCE.fullmatch(nonce) or uid <= 0 or gid <= 0:
        raise InternalError("the agent's nonce must be hexadecimal and its case user not root")
    document = {
        "v": VERSION,
        "nonce": nonce,
        "uid": uid,
        "gid": gid,
        "env_names": sorted(plan.env),
        "limits": {
            "stream_bytes": limits.stream_bytes,
            "file_bytes": limits.file_bytes,
            "hash_bytes": limits.hash_bytes,
            "hook_bytes": limits.hook_bytes,
        },
        "context_root": None if plan.root is None else CONTEXT_TARGET,
        "hooks_directory": None if plan.hooks is None else HOOKS_TARGET,
        "hooks": [_encode_hook(hook) for hook in plan.hooks.hooks] if plan.hooks else [],
        "hooks_before": plan.hooks.before if plan.hooks else 0,
        "root_at_start": root_at_start,
        "marks": marks,
        "upper": upper,
        "share_workspace": share_workspace,
        "leg_seconds": leg_seconds,
        "scratch": list(scratch),
        "usage_file": plan.env.get("AO_USAGE_FILE"),
        "hold_seconds": hold_seconds,
        "cases": [_encode_case(case) for case in runnable(plan)],
    }
    line = json.dumps(document, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"
    if len(line) > MAX_PLAN:
        raise InputError(
            f"the plan of leg {plan.leg} has {len(line)} bytes, more than {MAX_PLAN}",
            remedy="split the suite",
        )
    return line


def _encode_case(case: CasePlan) -> dict[str, Any]:
    command = None if case.command is None else case.command.model_dump()
    return {
        "index": case.index,
        "command": command,
        "timeout_seconds": case.timeout_seconds,
        "files": list(case.files),
        "probes": [probe.command.model_dump() for probe in case.probes],
    }


def _encode_hook(hook: Hook) -> dict[str, Any]:
    """A hook as a command that starts in the workspace and reads its event from standard input."""
    told = {
        "cwd": WORKSPACE,
        "hook_event_name": hook.event,
        _SUBJECT_NAME[hook.event]: SUBJECT[hook.event],
    }
    command = Command(
        argv=("sh", "-c", hook.command), cwd=WORKSPACE, stdin=json.dumps(told), env=HOOK_ENV
    )
    return {**command.model_dump(), "timeout_seconds": hook.timeout_seconds}
