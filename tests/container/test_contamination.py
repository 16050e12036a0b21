"""Nothing of the invoker's side, of live state or of the other leg can be seen in a leg."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.container.hostile.siege import attack, place_attacks
from tests.container.projects import EXIT_0, HELPFUL, PLAIN, Json, Project, Result, case

if TYPE_CHECKING:
    from runner.engine.docker_engine import DockerEngine

pytestmark = [pytest.mark.container, pytest.mark.timeout(400)]

LEGS = {"context_off": "off", "context_on": "on"}
HUNT = case("hunt", attack("hunter"), timeout_seconds=300)
INVENTORY = case("inventory", attack("inventory"), timeout_seconds=300)


def _mark(name: str) -> str:
    return f"MARKER-{name}\n"


def _seed(project: Project) -> Path:
    """Put a marker of its own everywhere; returns the suite."""
    repo, home = project.repo, project.home
    roots = {side: {"learnings/own.md": _mark(f"root-{side}")} for side in ("off", "on")}
    path = project.suite(
        {**HUNT, "objective": _mark("objective")},
        case(
            "expects", "true", EXIT_0,
            {"type": "stdout_contains", "value": _mark("expectation"), "required": False},
        ),
        off={**PLAIN, **roots["off"]},
        on={**HELPFUL, **roots["on"]},
    )  # fmt: skip
    place_attacks(project)
    project.write(
        {
            "src/seen.md": _mark("workspace"),
            ".agents/learnings/live.md": _mark("live"),
            "src/.agents/deep.md": _mark("nested-live"),
            "runs/earlier/scorecard.json": _mark("earlier-run"),
            "ignored/secret.md": _mark("ignored"),
            ".gitignore": "/ignored/\n",
            "evals/fixtures/other/context-on/agents/learnings/x.md": _mark("root-of-another-suite"),
            "evals/fixtures/other/context-on/context.json": _mark("context-of-another-suite"),
            "MARKER-name.md.orig": "",
        }
    )
    for side in ("off", "on"):
        artifact = {"path": "learnings/own.md", "role": "helpful",
                    "tokens": [_mark(f"context-file-{side}").strip()]}  # fmt: skip
        context: Json = {"schema_version": 1, "label": f"label-{side}"}
        (project.root(side).parent / "context.json").write_text(
            json.dumps({**context, "artifacts": [artifact]}), encoding="utf-8"
        )
    project.git("add", "-A", "-f", ":!ignored")
    project.git("commit", "-q", "-m", _mark("history"))
    project.git("tag", "-a", "v1", "-m", _mark("tag"))
    project.git("rm", "-q", "-r", "-f", "--cached", ".agents", "src/.agents", "evals/fixtures")
    (repo / "MARKER-name.md.orig").unlink()  # its name stays in the history
    project.git("add", "-A", ":!.agents", ":!src/.agents")
    project.git("commit", "-q", "-m", _mark("second"))
    for place, name in {
        home / ".agents/learnings/home.md": "home-agents",
        home / ".claude/settings.json": "claude",
        home / ".claude/CLAUDE.md": "claude-memory",
        home / ".codex/auth.json": "codex",
        home / ".netrc": "netrc",
        home / ".gitconfig-more": "gitconfig",
        repo.parent / "CLAUDE.md": "claude-above",
        repo.parent / "AGENTS.md": "agents-above",
        repo.parent / "beside.md": "beside",
    }.items():
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(_mark(name), encoding="utf-8")
    return path


ENVIRONMENT: Mapping[str, str] = {
    "UNRELATED": "MARKER-environment",
    "GITHUB_TOKEN": "MARKER-ci-token",
    "AGENTOPS_API_TOKEN": "MARKER-hook-credential",
    "AGENTOPS_NOTE": "MARKER-hook-environment",
    "SSH_AUTH_SOCK": "/MARKER-socket",
}
SEEN = {"MARKER-workspace", "MARKER-hook-environment", "MARKER-given"}
"""What every leg is given; that it is found shows that the hunter looks."""


@pytest.fixture
def somebody() -> Iterator[None]:
    """A process of the host with a marker in its environment."""
    process = subprocess.Popen(
        ["sleep", "600"],
        env={"PATH": os.environ["PATH"], "MINE": "MARKER-host-environment"},
    )
    yield
    process.kill()
    process.wait()


@pytest.mark.usefixtures("somebody")
@pytest.mark.parametrize("options", [(), ("--with-git",)])
def test_a_leg_sees_the_markers_of_its_own_root_and_workspace_and_no_other(
    project: Project, options: tuple[str, ...]
) -> None:
    path = _seed(project)
    result = project.ao_eval(
        "ab", path, "--env", "GIVEN=MARKER-given", "--run-id", "MARKER-run-id", *options,
        **ENVIRONMENT,
    )  # fmt: skip
    assert result.code == 0, result.stderr
    for leg, side in LEGS.items():
        facts = json.loads(result.output("hunt", leg))
        assert set(facts["found"]) == {*SEEN, f"MARKER-root-{side}"}, facts["found"]
        assert facts["looked"] > 1000
        assert facts["processes"][0] == 1
        assert len(facts["processes"]) <= 4


# ------------------------------------------------------------------------------ leg against leg

PROCESS = re.compile(r"/proc/(1|self)(/task/1)?/")
KERNEL = ("/proc/", "/sys/")
COUNTERS = frozenset(
    {"autogroup", "children", "io", "maps", "mountstats", "netlink", "sched",
     "schedstat", "smaps", "smaps_rollup", "stat", "statm", "status", "syscall"}
)  # fmt: skip
"""Files of a process that hold times, sizes, addresses and numbers of the kernel's."""
CHANGING = frozenset(
    {"/proc/locks", "/proc/vmallocinfo", "/proc/slabinfo", "/proc/pagetypeinfo",
     "/proc/sys/kernel/random/uuid", "/proc/sys/kernel/random/boot_id",
     "/proc/self/auxv", "/proc/1/auxv", "/proc/1/task/1/auxv",
     "/proc/self/numa_maps", "/proc/1/numa_maps", "/proc/1/task/1/numa_maps"}
)  # fmt: skip
"""Random by design (gVisor boots a kernel for each leg), or of as many parts as it happens.

What `numa_maps` says of each mapping depends on who else has the page; `maps` has the mappings.
"""

_RANDOM = (
    # Names that engine and run make anew for each container or stage: ids of containers and
    # layers, staging folders, the workspace volume.
    (re.compile(r"/l/[A-Z0-9]{26}"), "/l/LAYER"),
    (re.compile(r"\b[0-9a-f]{12,64}\b"), "RANDOM"),
    # Numbers that the kernel gives: mounts, devices without a disk, peers, name spaces.
    (re.compile(r"(?m)^\d+ \d+ 0:\d+ "), "MOUNT "),
    (re.compile(r"(?m)^\d+ \d+ (?=\d+:)"), "MOUNT "),
    (re.compile(r"\b(master|shared|propagate_from):\d+"), r"\1:PEER"),
    (re.compile(r":\[\d+\]"), ":[SPACE]"),
    (re.compile(r"\b([rw])fdno=\d+"), r"\1fdno=FD"),
    # This process's number.
    (re.compile(r"/proc/\d+"), "/proc/PID"),
)
_NUMBER = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b|-?\d[0-9a-f]*(\.\d+)?")
_STATE = re.compile(r"^State:.*|(?<=\)) [A-Z] ")


def _normal(path: str, facts: Any) -> object:
    """Facts of a path without what differs between any two containers of one image."""
    if not isinstance(facts, dict) or "mode" not in facts:
        return facts
    kept = {name: value for name, value in facts.items() if name in ("mode", "uid", "gid")}
    if path in ("/proc", "/sys"):
        return kept  # its links count the processes of the machine
    for name in ("text", "target"):
        text = facts.get(name)
        if text is None:
            continue
        process = PROCESS.match(path)
        if path in CHANGING:
            continue
        if path.startswith(KERNEL) and not process and not path.startswith("/sys/fs/cgroup"):
            # The same file of the same kernel in both legs, read at different moments.
            kept[name] = sorted({_shape(line) for line in text.split("\n")})
        elif path.rpartition("/")[2] in COUNTERS or "/net/" in path or "stat" in path:
            kept[name] = sorted({_shape(line) for line in text.split("\n")})
        elif path.startswith("/sys/fs/cgroup"):
            kept[name] = _shape(text) if _counts(path) else text
        elif "mount" in path:
            # The engine mounts what it was given in an order of the moment.
            kept[name] = sorted(_named(text).split("\n"))
        else:
            kept[name] = _named(text)
    rest = {"links", "device", "time", "attributes", "size", "sha256"}
    return {**{name: facts[name] for name in rest if name in facts}, **kept}


def _counts(path: str) -> bool:
    """Files of the control group that count; the limits are compared as they are."""
    words = ("stat", "usage", "current", "pressure", "events", "failcnt", "peak", "procs", "tasks",
             "io_", "threads", "numa", "slabinfo", "acct")  # fmt: skip
    return any(word in path.rpartition("/")[2] for word in words)


def _named(text: str) -> str:
    for pattern, name in _RANDOM:
        text = pattern.sub(name, text)
    return text


def _shape(line: str) -> str:
    return re.sub(r"\s+", " ", _NUMBER.sub("N", _STATE.sub("", line)))


def _seen(result: Result, leg: str) -> dict[str, object]:
    lines = (json.loads(line) for line in result.output("inventory", leg).splitlines())
    return {path: _normal(path, facts) for path, facts in lines}


def _without_variant(seen: dict[str, object], variant: str) -> dict[str, object]:
    """The variable is what makes the legs legs: it is in the environment, and nowhere else."""
    environment = seen["environment"]
    assert isinstance(environment, dict)
    assert environment.pop("AO_CONTEXT_VARIANT") == variant
    for path, facts in seen.items():
        # The agent's is shown by gVisor only.
        if path.endswith("/environ") and isinstance(facts, dict) and facts.get("text"):
            lines = facts["text"].split("\0")
            assert lines.count(f"AO_CONTEXT_VARIANT={variant}") == 1, path
            facts["text"] = sorted(x for x in lines if not x.startswith("AO_CONTEXT_VARIANT="))
    return seen


def _legs(result: Result) -> tuple[dict[str, object], dict[str, object]]:
    assert result.code == 0, result.stderr
    off, on = (_without_variant(_seen(result, leg), leg) for leg in LEGS)
    assert len(on) > 2000
    assert {"/proc/1/mountinfo", "/proc/self/mountinfo", "/etc/hostname", "/proc/version"} <= set(
        on
    )
    assert "/context/agents/learnings/other.md" in on
    return off, on


def _differing(off: dict[str, object], on: dict[str, object]) -> dict[str, tuple[object, object]]:
    return {
        path: (off.get(path), on.get(path))
        for path in sorted(off.keys() | on.keys())
        if off.get(path) != on.get(path)
    }


def test_the_same_root_makes_two_legs_that_differ_in_nothing_but_the_variable(
    project: Project,
) -> None:
    place_attacks(project)
    result = project.ao_eval("ab", project.suite(INVENTORY), "--aa")
    assert _differing(*_legs(result)) == {}


def _same_length(project: Project) -> Path:
    place_attacks(project)
    return project.suite(
        INVENTORY,
        off={"learnings/other.md": "of no use\n", "learnings/hint.md": "nothing\n"},
        on={"learnings/other.md": "of no use\n", "learnings/hint.md": "HELPFUL\n"},
    )


def _assert_only_the_root(differing: dict[str, tuple[object, object]]) -> None:
    assert set(differing) == {"/context/agents/learnings/hint.md"}, differing
    off, on = differing["/context/agents/learnings/hint.md"]
    assert isinstance(off, dict)
    assert isinstance(on, dict)
    assert {name for name in on if off[name] != on[name]} == {"sha256"}


def test_different_roots_make_two_legs_that_differ_in_the_bytes_of_the_root_as_well(
    project: Project,
) -> None:
    result = project.ao_eval("ab", _same_length(project))
    _assert_only_the_root(_differing(*_legs(result)))


def test_the_name_of_a_copied_workspace_volume_does_not_tell_the_leg(
    engine: DockerEngine, leg_image: str, tmp_path: Path
) -> None:
    """The mount table shows it, where an overlay's shows nothing of the kind."""
    project = Project(tmp_path / "a:b", tmp_path / "a:b" / "staging", engine, leg_image)
    try:
        path = project.suite(case("mounts", "cat /proc/self/mountinfo"))
        result = project.ao_eval("ab", path)
        assert result.card["inputs"]["workspace_mode"] == "copy"
        texts = [result.output("mounts", leg) for leg in LEGS]
    finally:
        left = project.end()
    assert not left
    tables = [_normal("/proc/self/mountinfo", {"mode": "", "text": text}) for text in texts]
    assert tables[0] == tables[1]
    assert all(" /workspace " in text for text in texts)


@pytest.mark.parametrize(
    "change",
    [
        lambda on: on["/proc/1/mountinfo"].update(
            text=on["/proc/1/mountinfo"]["text"].replace("/context/agents", "/context/on")
        ),
        lambda on: on["/proc/1/cmdline"].update(text="python3\0-c\0on\0"),
        lambda on: on["/etc/hostname"].update(sha256="0" * 64),
        lambda on: on["/sys/fs/cgroup/memory/memory.limit_in_bytes"].update(text="1\n"),
        lambda on: on.update({"/tmp/left": {"mode": "0o100644"}}),
        lambda on: on["/workspace"].update(time=1.0),
    ],
)
def test_the_comparison_sees_a_difference(change: Callable[[Any], None]) -> None:
    def facts() -> dict[str, Any]:
        text = "1 2 0:33 / /context/agents ro - ext4 /dev/sda rw\n"
        return {
            "/proc/1/mountinfo": {"mode": "0o100444", "text": text},
            "/proc/1/cmdline": {"mode": "0o100444", "text": "python3\0"},
            "/etc/hostname": {"mode": "0o100644", "sha256": "1" * 64},
            "/sys/fs/cgroup/memory/memory.limit_in_bytes": {"mode": "0o100644", "text": "2\n"},
            "/workspace": {"mode": "0o40755", "time": 2.0},
        }

    off, on = facts(), facts()
    change(on)
    both = ({path: _normal(path, item) for path, item in side.items()} for side in (off, on))
    assert len(_differing(*both)) == 1
