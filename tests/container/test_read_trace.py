"""Which artifacts each case opened, seen from outside its container."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from runner.core.readtrace import MARK_FILES, Segment, leg_reads
from runner.host.contexttrace import ContextTrace
from runner.model.leg import CasePlan, Command
from runner.model.reads import LegReads
from tests.container import agent_leg
from tests.container.agent_leg import Leg, py, sh
from tests.container.agent_leg import case as planned
from tests.container.projects import GVISOR, Json, Project, Result, case

pytestmark = pytest.mark.container

ROOT = {f"notes/{n:03}.md": f"note {n}\n" for n in range(40)}
LEGS = ("context_off", "context_on")

no_second_open = pytest.mark.skipif(
    GVISOR, reason="gVisor shows the first open of a file in a container only"
)


@pytest.fixture(autouse=True)
def _image(leg_image: str) -> None:
    agent_leg.IMAGE = leg_image


def reads(result: Result, leg: str = "context_on") -> Json:
    """The trace of a leg."""
    legs: list[Json] = result.read("evidence/context-reads.json")["legs"]
    return next(item for item in legs if item["leg"] == leg)


def told(result: Result, leg: str = "context_on") -> dict[str, tuple[list[str], list[str]]]:
    """By case: what it opened, and what its hooks did."""
    trace = reads(result, leg)
    assert (trace["state"], trace["detail"]) == ("complete", None), trace
    return {item["case_id"]: (item["opened"], item["by_hooks"]) for item in trace["cases"]}


# ----------------------------------------------------------------------------- the whole command


@no_second_open
def test_each_case_has_what_it_opened_in_the_order_in_which_it_did(project: Project) -> None:
    project.write({"evals/map.py": MAPS})
    project.suite(
        case("three", 'cd "$AO_AGENTS_DIR/notes"; cat 007.md 003.md 007.md 011.md'),
        case("nothing", "true"),
        case("only-looks", 'cd "$AO_AGENTS_DIR"; test -f notes/001.md && find notes'),
        case("in-vain", 'cat "$AO_AGENTS_DIR/absent" "$AO_AGENTS_DIR/notes"; true'),
        case("writes", 'cp "$AO_AGENTS_DIR/notes/002.md" copy'),
        case("later", 'sleep 0.2; (cat "$AO_AGENTS_DIR/notes/005.md")& wait'),
        case("runs", '"$AO_AGENTS_DIR/tool"; python3 map.py'),
        off=ROOT | {"tool": "#!/bin/sh\n:\n"},
        on=ROOT | {"tool": "#!/bin/sh\n:\n", "more.md": "x"},
    )
    result = project.ao_eval("ab", "evals/demo.json")
    assert result.code == 0, result.stderr
    for leg in LEGS:
        assert told(result, leg) == {
            "three": (["notes/007.md", "notes/003.md", "notes/011.md"], []),
            "nothing": ([], []),
            "only-looks": ([], []),
            "in-vain": ([], []),
            "writes": (["notes/002.md"], []),
            "later": (["notes/005.md"], []),
            "runs": (["tool", "notes/009.md", "notes/010.md"], []),
        }
    # The case that wrote made its leg go on in another container.
    assert len(result.read("evidence/sandbox.json")["containers"]) == 4
    assert result.card["controls"]["trace"] == {
        "state": "complete", "detail": None, "granularity": "case"
    }  # fmt: skip
    assert project.ao_eval("verify", result.evidence).code == 0


MAPS = """
import mmap, os
root = os.environ["AO_AGENTS_DIR"]
with open(root + "/notes/009.md", "rb") as file:
    assert mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)[:4] == b"note"
folder = os.open(root + "/notes", os.O_RDONLY)
os.chdir("/tmp")
os.symlink(root + "/notes/010.md", "/tmp/link")
assert os.read(os.open("/tmp/link", os.O_RDONLY), 4) == b"note"
"""


@no_second_open
def test_what_hooks_open_is_the_hooks(project: Project) -> None:
    run = {
        "SessionStart": 'cd "$AO_AGENTS_DIR"; cat notes/001.md notes/002.md',
        "SessionEnd": 'cd "$AO_AGENTS_DIR"; cat notes/003.md',
    }
    groups = {
        event: [{"hooks": [{"type": "command", "command": text}]}] for event, text in run.items()
    }
    text = json.dumps({"hooks": groups})
    project.write({"around/hooks.json": text})
    project.suite(
        case("one", 'cat "$AO_AGENTS_DIR/notes/002.md" "$AO_AGENTS_DIR/notes/005.md"'),
        case("two", "true"),
        off=ROOT,
        on=ROOT | {"more.md": "x"},
    )
    result = project.ao_eval("ab", "evals/demo.json", "--hooks-dir", "around")
    assert result.code == 0, result.stderr
    by_hooks = ["notes/001.md", "notes/002.md", "notes/003.md"]
    for leg in LEGS:
        assert told(result, leg) == {
            "one": (["notes/002.md", "notes/005.md"], by_hooks),
            "two": ([], by_hooks),
        }


@no_second_open
def test_a_leg_that_was_killed_is_incomplete_and_keeps_what_is_certain(project: Project) -> None:
    project.suite(
        case("before", 'cat "$AO_AGENTS_DIR/notes/001.md"'),
        case("waits", 'cat "$AO_AGENTS_DIR/notes/002.md"; touch /tmp/ready; sleep 60'),
        case("after", "true"),
        off=ROOT,
        on=ROOT | {"more.md": "x"},
    )

    def kill(containers: Sequence[str]) -> None:
        for container in containers:
            project.engine.kill(container)

    result = project.while_waiting(2, kill, "ab", "evals/demo.json")
    for leg in LEGS:
        trace = reads(result, leg)
        assert (trace["state"], trace["detail"]) == ("incomplete", "leg_cut_short")
        assert [(item["case_id"], item["opened"]) for item in trace["cases"]] == [
            ("before", ["notes/001.md"])
        ]


def test_a_root_that_could_not_be_staged_has_no_trace(project: Project) -> None:
    project.suite(case("one", "true"), off=ROOT, on=None)
    result = project.ao_eval("ab", "evals/demo.json")
    assert (reads(result)["state"], reads(result)["detail"]) == ("unavailable", "no_root")


@no_second_open
def test_a_thousand_cases_that_open_three_artifacts_each(project: Project) -> None:
    count, chosen = 1000, random.Random(5)
    picks = [chosen.sample(sorted(ROOT), 3) for _ in range(count)]
    project.suite(
        *(
            case(f"case-{n}", f'cd "$AO_AGENTS_DIR"; cat {" ".join(names)}')
            for n, names in enumerate(picks)
        ),
        off=ROOT,
        on=ROOT | {"more.md": "x"},
    )
    result = project.ao_eval("ab", "evals/demo.json")
    assert result.code == 0, result.stderr
    for leg in LEGS:
        found = told(result, leg)
        assert list(found) == [f"case-{n}" for n in range(count)]
        exact = sum(found[f"case-{n}"] == (names, []) for n, names in enumerate(picks))
        opens = sum(len(opened) for opened, _ in found.values())
        print(f"{leg}: {exact} of {count} cases exact and in order, {opens} of {3 * count} opens")
        assert (exact, opens) == (count, 3 * count)


# ------------------------------------------------------------------------- one leg, all its opens


class Traced:
    """One container with the agent, traced: what was seen of it, judged as a leg would."""

    def __init__(self, tmp: Path, files: dict[str, str] | None = None) -> None:
        self.tmp = tmp
        self.root = tmp / "root"
        self.root.mkdir()
        for name, text in (files or {"a": "a\n", "b": "b\n", "sub/c": "c\n"}).items():
            path = self.root / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)

    def __call__(
        self,
        *what: Command | CasePlan,
        trace: Callable[[Path, Path], ContextTrace] = ContextTrace,
        before_end: Callable[[], object] = lambda: None,
        weaken: Callable[[Path], object] = lambda _: None,
        one_case: bool = False,
    ) -> LegReads:
        cases = [
            item if isinstance(item, CasePlan) else planned(item, n) for n, item in enumerate(what)
        ]
        made = trace(self.root, self.tmp / "marks")
        weaken(made.marks)
        with Leg(
            self.tmp, cases, context=self.root, marks=made.marks, root_at_start=not one_case
        ) as leg:
            leg.send_plan()
            self.outcome = leg.pump()
            leg.wait()
            leg.decoder.finish()
        before_end()
        seen = made.end()
        assert seen.problem is None
        ended = leg.decoder.cases_done
        whole = [Segment(tuple(cases), ended, whole=True)]
        return leg_reads(leg.plan, whole, seen.opens, seen.files, one_case=one_case)


def of(found: LegReads) -> list[tuple[str, ...]]:
    """What each case opened, of a trace that is complete."""
    assert (found.state, found.detail) == ("complete", None)
    return [item.opened for item in found.cases]


@pytest.fixture
def traced(tmp_path: Path) -> Traced:
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    return Traced(tmp_path)


@no_second_open
def test_what_the_agent_looks_at_is_nobodys_and_probes_are_their_cases(traced: Traced) -> None:
    look = planned(sh("true"), 0, files=["/context/agents/a", "/context/agents/sub/c"])
    probe = planned(sh("cat /context/agents/b"), 1, probes=[sh("cat /context/agents/a")])
    static = planned(None, 2, files=["/context/agents/b"], probes=[sh("cat /context/agents/sub/c")])
    found = traced(look, probe, static)
    assert of(found) == [(), ("b", "a"), ("sub/c",)]
    assert traced.outcome.file(0, 0) == b"a\n"


@no_second_open
def test_more_opens_than_the_queue_holds_make_a_trace_incomplete(traced: Traced) -> None:
    gate = threading.Event()

    class Held(ContextTrace):
        def _drain(self) -> int:
            gate.wait()
            return super()._drain()

    flood = (
        "import os\n"
        "for _ in range(20000):\n"
        "    for name in 'ab': os.close(os.open('/context/agents/' + name, os.O_RDONLY))\n"
    )
    found = traced(
        sh("cat /context/agents/a"), py(flood), sh("cat /context/agents/b"),
        trace=Held, before_end=gate.set,
    )  # fmt: skip
    assert (found.state, found.detail) == ("incomplete", "queue_overflow")
    assert [(item.case_id, item.opened) for item in found.cases] == [("case-0", ("a",))]


@no_second_open
def test_a_flood_of_opens_that_is_read_in_time_is_complete(traced: Traced) -> None:
    # Bursts that fit into the queue, and together are twice as long as it is.
    flood = (
        "import os, time\n"
        "for _ in range(6):\n"
        "    for _ in range(2500):\n"
        "        for name in 'ab': os.close(os.open('/context/agents/' + name, os.O_RDONLY))\n"
        "    time.sleep(0.3)\n"
    )
    assert of(traced(py(flood), sh("cat /context/agents/sub/c"))) == [("a", "b"), ("sub/c",)]


NAMES = tuple(mark.value for mark in MARK_FILES)
FORGES = f"""
import ctypes, os, socket, subprocess
won = []
def attempt(how, action):
    try:
        action()
    except (OSError, ValueError, subprocess.SubprocessError):
        return
    won.append(how)
libc = ctypes.CDLL(None, use_errno=True)
def syscall(*arguments):
    if libc.syscall(*arguments) < 0:
        raise OSError(ctypes.get_errno(), "syscall")
folders = ["/ao-marks", "/proc/1/root/ao-marks", "/proc/self/root/ao-marks",
           "/context/agents/../../ao-marks", "/proc/1/cwd/ao-marks"]
for folder in folders:
    attempt("list " + folder, lambda: os.listdir(folder))
    attempt("chmod " + folder, lambda: os.chmod(folder, 0o777))
    attempt("folder " + folder, lambda: os.close(os.open(folder, os.O_RDONLY)))
    for name in {NAMES!r}:
        path = folder + "/" + name
        for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_RDONLY | os.O_NONBLOCK,
                      os.O_RDONLY | os.O_CREAT, os.O_RDONLY | os.O_NOFOLLOW):
            attempt("open " + path, lambda: os.close(os.open(path, flags)))
        attempt("chmod " + path, lambda: os.chmod(path, 0o777))
        attempt("link " + path, lambda: os.link(path, "/tmp/link"))
        attempt("rename " + path, lambda: os.rename(path, "/tmp/moved"))
        attempt("exec " + path, lambda: subprocess.run([path], check=True))
        attempt("cat " + path, lambda: subprocess.run(["cat", path], check=True))
        attempt("source " + path, lambda: subprocess.run(["sh", "-c", ". " + path], check=True))
        attempt("connect " + path,
                lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).connect(path))
        attempt("bind " + path,
                lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).bind(path + ".s"))
        attempt("openat2 " + path, lambda: syscall(437, -100, path.encode(),
                (ctypes.c_uint64 * 3)(0, 0, 0), 24))
        attempt("swapon " + path, lambda: syscall(167, path.encode(), 0))
        attempt("acct " + path, lambda: syscall(163, path.encode()))
        attempt("uselib " + path, lambda: syscall(134, path.encode()))
        def by_path():
            fd = os.open(path, os.O_PATH)
            os.close(os.open("/proc/self/fd/%d" % fd, os.O_RDONLY))
        attempt("O_PATH " + path, by_path)
try:
    numbers = os.listdir("/proc/1/fd")
except OSError:
    numbers = map(str, range(64))
for number in numbers:
    attempt("agent's " + number, lambda: os.listdir("/proc/1/fd/" + number))
attempt("namespace", lambda: os.close(os.open("/proc/1/ns/mnt", os.O_RDONLY)))
attempt("mount", lambda: syscall(165, b"/ao-marks", b"/tmp", None, 4096, None))
attempt("open_tree", lambda: syscall(428, -100, b"/ao-marks/case", 1))
attempt("unshare", lambda: syscall(272, 0x10020000))
attempt("handle", lambda: syscall(304, -100, (ctypes.c_char * 128)(), 0))
attempt("ptrace", lambda: syscall(101, 16, 1, 0, 0))
attempt("notify", lambda: syscall(254, libc.inotify_init1(0), b"/ao-marks", 0x20))
print(won)
"""


@no_second_open
def test_a_case_cannot_forge_a_boundary(traced: Traced) -> None:
    found = traced(
        sh("cat /context/agents/a"),
        py("open('/context/agents/b')\n" + FORGES + "open('/context/agents/sub/c')\n"),
        sh("cat /context/agents/a"),
    )
    assert traced.outcome.execution(1).exit_code == 0, traced.outcome.output(1, "stderr")
    assert traced.outcome.output(1) == b"[]\n"
    assert of(found) == [("a",), ("b", "sub/c"), ("a",)]


@no_second_open
@pytest.mark.parametrize("name", NAMES)
def test_marks_that_a_case_could_open_would_void_the_trace(traced: Traced, name: str) -> None:
    def weaken(marks: Path) -> None:
        marks.chmod(0o755)
        (marks / name).chmod(0o444)

    # Between two opens: marks that follow themselves are merged by the kernel, and say nothing new.
    forge = f"cat /context/agents/b /ao-marks/{name} /context/agents/sub/c"
    found = traced(sh(forge), weaken=weaken)
    assert traced.outcome.execution(0).exit_code == 0
    assert (found.state, found.detail, found.cases) == ("incomplete", "boundary_mismatch", ())


# ------------------------------------------------------------------------------------- gVisor


@pytest.mark.skipif(not GVISOR, reason="elsewhere every open is seen")
def test_under_gvisor_legs_of_one_case_are_traced_and_others_say_that_they_are_not(
    project: Project,
) -> None:
    needs = 'cd "$AO_AGENTS_DIR"; cat notes/001.md; cat notes/003.md notes/001.md; cat more.md'
    project.suite(
        case("helped", needs),
        case("looked", 'cd "$AO_AGENTS_DIR"; test -f notes/007.md; cat notes/002.md more.md'),
        case("same", "true"),
        off=ROOT,
        on=ROOT | {"more.md": "x"},
    )
    result = project.ao_eval("ab", "evals/demo.json", "--controls", "standard")
    assert result.code == 0, result.stderr
    for leg in LEGS:
        trace = reads(result, leg)
        assert (trace["state"], trace["detail"]) == ("unavailable", "runtime_caches_opens")
    inside = {item["leg"]: item for item in result.read("evidence/sandbox.json")["inside"]}
    for leg, more in (("context_off_r3", []), ("context_on_r3", ["more.md"])):
        assert reads(result, leg)["granularity"] == "leg_of_one_case"
        assert told(result, leg) == {
            "helped": (["notes/001.md", "notes/003.md", *more], []),
            # There a file is opened on the host when a case looks at it by name.
            "looked": (["notes/007.md", "notes/002.md", *more], []),
        }
        assert inside[leg]["start"]["context_root_sha256"] is None
        assert inside[leg]["end"]["context_root_sha256"] is not None
    assert project.ao_eval("verify", result.evidence).code == 0


@pytest.mark.skipif(not GVISOR, reason="elsewhere every open is seen")
def test_under_gvisor_a_root_that_was_opened_before_the_case_hides_what_the_case_opens(
    traced: Traced,
) -> None:
    hidden = planned(
        sh("true"), 0, files=["/context/agents/a"], probes=[sh("cat /context/agents/a")]
    )
    found = traced(hidden, one_case=True)
    assert (found.state, found.detail) == ("incomplete", "runtime_caches_opens")
