"""One plan in one container: hello, the cases in order, bye."""

from __future__ import annotations

import os

from .execution import Executor
from .jsontext import json_flag
from .link import Fatal
from .marks import Marks
from .processes import hold
from .report import Reporter
from .scratch import Scratch
from .snapshot import Snapshot
from .spawn import CaseUser, Spawner
from .workspace import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .link import Link


def run_leg(link: Link, plan: dict[str, Any]) -> None:
    """Run the whole plan."""
    user = CaseUser(plan["uid"], plan["gid"])
    spawner = Spawner(user, plan["env_names"])
    reporter = Reporter(link, spawner, plan)
    marks = Marks(plan["marks"])
    cases = Cases(link, plan, spawner, marks)
    marks.enter(b"start")
    link.frame(b'"t":"hello","r":%s' % reporter.hello())
    link.push()
    reason, done = cases.run()
    body = b'"t":"bye","w":"%s","ctx":%s,"hks":%s,"env":%s,"n":%d'
    digests = (reporter.root_digest(), reporter.hooks_digest(), reporter.env_digests())
    marks.enter(b"stop")
    link.frame(body % (reason.encode(), *digests, done))
    link.flush()
    if reason == "done" and plan["hold_seconds"]:
        hold(plan["hold_seconds"])


class Cases:
    """The cases of the plan, as far as one container serves them."""

    def __init__(self, link: Link, plan: dict[str, Any], spawner: Spawner, marks: Marks) -> None:
        limits = plan["limits"]
        self._link = link
        self._plan = plan
        self._user = spawner.user
        self._marks = marks
        self._executor = Executor(link, spawner)
        self._stream_limit = limits["stream_bytes"]
        self._hook_limit = limits["hook_bytes"]
        self._snapshot = Snapshot(
            link, file_bytes=limits["file_bytes"], hash_bytes=limits["hash_bytes"]
        )

    def run(self) -> tuple[str, int]:
        """Run cases until all are done or the next one needs a fresh container.

        Returns:
            (`done`, or why a fresh container is needed; number of cases done).
        """
        plan = self._plan
        scratch = Scratch(self._link, self._user, plan["scratch"])
        if not scratch.empty():
            raise Fatal("scratch_not_clean", "scratch cannot be emptied before the first case")
        workspace = Workspace(self._user, plan["upper"], shared=plan["share_workspace"])
        cases, done = plan["cases"], 0
        for case in cases:
            done += 1
            why = self._one(case, scratch, workspace, last=done == len(cases))
            if why is not None and done < len(cases):
                return why, done
        return "done", done

    def _one(
        self, case: dict[str, Any], scratch: Scratch, workspace: Workspace, *, last: bool
    ) -> str | None:
        """Run one case; returns why the next one needs a fresh container, or None."""
        link, index = self._link, case["index"]
        command = case["command"]
        hooks, before = self._plan["hooks"], self._plan["hooks_before"]
        enter = self._marks.enter
        link.frame(b'"t":"start","c":%d' % index)
        facts = b"null"
        if command is not None:
            if before:
                enter(b"before")
            for number, hook in enumerate(hooks[:before]):
                self._hook(case, number, hook)
            enter(b"case")
            facts = self._execute(case, 0, command)
        enter(b"look")
        usage = self._look(case)
        if case["probes"]:
            enter(b"probe")
        for number, probe in enumerate(case["probes"], 1):
            found = self._execute(case, number, probe)
            link.frame(b'"t":"exec","c":%d,"x":%d,"e":%s' % (index, number, found))
        if command is not None:
            # Last, so that they cannot change what the case is judged by.
            if before < len(hooks):
                enter(b"after")
            for number, hook in enumerate(hooks[before:], before):
                self._hook(case, number, hook)
        enter(b"end")
        ran = command is not None or bool(case["probes"])
        wrote = workspace.written() if ran else False
        clean = True
        if ran and not (last and self._plan["hold_seconds"]):
            os.chdir("/")
            clean = scratch.empty()
        body = b'"t":"end","c":%d,"e":%s,"u":%s,"w":%s'
        link.frame(body % (index, facts, usage, json_flag(wrote)))
        link.pace()
        shared = self._plan["share_workspace"]
        if wrote is not False and not shared:
            return "dirty"
        if ran and scratch.ipc_hidden and not shared:
            return "leftover"
        return None if clean else "leftover"

    def _execute(self, case: dict[str, Any], number: int, command: dict[str, Any]) -> bytes:
        """Run the case's own command (0) or one of its probes; returns its facts as JSON."""
        head = b'"t":"out","c":%d,"x":%d' % (case["index"], number)
        return self._executor.execute(head, command, case["timeout_seconds"], self._stream_limit)

    def _hook(self, case: dict[str, Any], number: int, hook: dict[str, Any]) -> None:
        """Run one hook with the environment of the case, and report what came of it."""
        command = {**hook, "env": {**(case["command"].get("env") or {}), **hook["env"]}}
        place = (case["index"], number)
        found = self._executor.execute(
            b'"t":"hout","c":%d,"h":%d' % place, command, hook["timeout_seconds"], self._hook_limit
        )
        self._link.frame(b'"t":"hook","c":%d,"h":%d,"e":%s' % (*place, found))

    def _look(self, case: dict[str, Any]) -> bytes:
        """Report the files that the case's expectations name; returns its usage as JSON."""
        with self._user:
            for number, path in enumerate(case["files"]):
                self._snapshot.report(case["index"], number, path)
            if case["command"] is None or self._plan["usage_file"] is None:
                return b"null"
            return self._snapshot.usage(self._plan["usage_file"])
