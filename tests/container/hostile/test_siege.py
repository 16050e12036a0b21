"""Hostile cases through the command line: contained, and reported as what they were."""

from __future__ import annotations

import json

import pytest

from tests.container.hostile.attacks import writing
from tests.container.hostile.attacks.forger import frames
from tests.container.hostile.besieged import LEGS, SECONDS, Besieged
from tests.container.hostile.siege import (
    GIB,
    LINE,
    attack,
    exhaustion,
    expected,
    place_attacks,
    siege,
)
from tests.container.projects import (
    GVISOR,
    NEEDS_HINT,
    Json,
    Project,
    assert_no_claim,
    case,
    degraded_rows,
)

pytestmark = [pytest.mark.container, pytest.mark.timeout(SECONDS + 60)]

REFUSED = {"EPERM", "EACCES", "EROFS", "ENOSYS", "EXDEV"}
UNKNOWN = {"ENOTSUP", "EOPNOTSUPP", "EINVAL", "ENOTTY"}
"""What gVisor says of calls that it does not have."""
UNREACHED = {"ENETUNREACH", "ECONNREFUSED", "EPERM", "EACCES", "EINVAL", "EAFNOSUPPORT", "gaierror"}
UNREACHED |= {"EHOSTUNREACH"} if GVISOR else set()  # its word for a network that is not there
VSOCK = 40
"""Made by engines before 23.0, whose seccomp profile lets it through; see SECURITY.md."""
FAMILIES = {1, 2, 10, 16}
"""Unix, IPv4, IPv6, netlink."""
OWN_KERNEL = {
    "keyctl", "add_key", "request_key", "nice", "syslog", "realtime", "setns net",
    "mknod", "mknod memory", "oom score",
    *(f"unshare {name}" for name in ("user", "net", "pid", "ipc", "uts", "mount", "cgroup")),
}  # fmt: skip
"""What gVisor's kernel does for anybody; it is this leg's alone, and ends with it."""
ENDED_GVISOR = {
    ("error", ("insufficient_decision_evidence", "timeout")),
    ("error", ("insufficient_decision_evidence", "oom")),
    ("inconclusive", ("insufficient_decision_evidence", "agent_died")),
}
"""How a case is reported that went beyond a limit of gVisor's process."""
PEAK = 200 << 20
"""Most bytes that the orchestrator may need."""


def _reported(row: Json) -> tuple[str, tuple[str, str] | None]:
    reason = row["degraded_reason"]
    return row["status"], None if reason is None else (reason, row["degraded_detail"])


@pytest.mark.parametrize("suite", ["siege", "exhaustion"])
@pytest.mark.parametrize("leg", LEGS)
def test_every_hostile_case_is_reported_as_what_it_was(
    besieged: Besieged, suite: str, leg: str
) -> None:
    wanted = dict(expected(siege() if suite == "siege" else exhaustion()))
    if leg == "context_off" and suite == "siege":
        wanted["noise-by-context"] = wanted["exit-137-unwanted"]  # it fails there
    found = {name: _reported(row) for name, row in besieged.rows(suite, leg).items()}
    if suite == "exhaustion" and GVISOR:
        # Each of these ends the container that it has to itself, unless its time is up before, and
        # the kernel may choose a process whose end the engine does not put down to memory.
        for name in ("fork-bomb", "eaten-in-a-child", "inodes", "everything"):
            del wanted[name]
            assert found.pop(name) in ENDED_GVISOR, name
    assert found == {name: tuple(item) for name, item in wanted.items()}


def test_a_run_under_siege_is_clean_and_its_roots_are_as_they_were(besieged: Besieged) -> None:
    assert besieged.run.result.code == 0, besieged.run.result.stderr
    assert "Traceback" not in besieged.run.result.stderr
    assert besieged.roots[0] == besieged.roots[1]
    card = besieged.read("siege", "scorecard.json")
    assert card["integrity"]["verdict"] == "clean"
    assert card["integrity"]["sandbox"]["differences"] == 0
    for leg in LEGS:
        record = besieged.read("siege", f"legs/{leg}/record.json")
        assert record["degraded_reason"] is None
        if not GVISOR:
            # Nothing reached the workspace, nor did anything end the agent: one container did all.
            assert {row["container"] for row in record["case_results"]} == {0}


def test_nothing_outside_scratch_and_workspace_is_written_by_any_call(besieged: Besieged) -> None:
    for facts in besieged.facts("writing"):
        for folder, attempts in facts["found"].items():
            refused = REFUSED | UNKNOWN if GVISOR else REFUSED
            assert set(attempts.values()) <= refused, (folder, attempts)
        # Not because the calls are wrong: elsewhere they do what they say.
        needless = {"remount", "unmount", "cover", "ioctl", "acl", "removexattr"}
        depends = {"setxattr", "setxattr folder", "tmpfile", "exchange"}
        every = {*writing.ON_FOLDERS, *writing.ON_FILES}
        assert every - needless - depends <= set(facts["control"])
        root = facts["found"]["/context/agents"]
        assert set(root) == every


def test_no_file_of_the_kernel_and_no_device_can_be_written(besieged: Besieged) -> None:
    devices = {"/dev/full", "/dev/null", "/dev/pts/ptmx", "/dev/random", "/dev/tty",
               "/dev/urandom", "/dev/zero"}  # fmt: skip
    if GVISOR:
        devices |= {"/dev/fuse", "/dev/net/tun"}  # its own; using them takes capabilities
    # The engine covers the first three with /dev/null; the others hold what one opener asks to be
    # told about pressure, and end with the descriptor.
    harmless = {"/proc/keys", "/proc/timer_list", "/proc/sched_debug", "/proc/pressure/cpu",
                "/proc/pressure/io", "/proc/pressure/memory", "/proc/pressure/irq"}  # fmt: skip
    for facts in besieged.facts("kernel"):
        assert set(facts["/dev"]) <= devices
        assert set(facts["/proc"]) <= harmless
        assert facts["/sys"] == []
        if not GVISOR:
            assert facts["tried in /proc"] > 100
            assert facts["tried in /sys"] > 100
        for path in ("/proc/kcore", "/dev/mem", "/dev/kmsg", "/proc/keys", "/proc/timer_list"):
            assert facts[path] == 0, path


def test_no_system_call_reaches_beyond_the_leg(besieged: Besieged) -> None:
    for facts in besieged.facts("calls"):
        done = {name: how for name, how in facts["calls"].items() if how not in REFUSED}
        if GVISOR:
            done = {name: how for name, how in done.items() if how == "done"}
            assert set(done) <= OWN_KERNEL
        else:
            assert not done
        assert len(facts["calls"]) > 30


def test_the_agent_can_be_neither_signalled_nor_traced_nor_looked_into(besieged: Besieged) -> None:
    readable = {"read oom_score_adj"}
    if GVISOR:
        readable |= {"priority", "affinity", "read environ", "read maps"}
    for facts in besieged.facts("calls"):
        refused = REFUSED | {"ENOENT", "ESRCH"} if GVISOR else REFUSED
        done = {name for name, how in facts["agent"].items() if how not in refused}
        assert done <= readable, done
        assert len([name for name in facts["agent"] if name.startswith("signal ")]) > 60


def test_a_leg_reaches_nobody(besieged: Besieged) -> None:
    control = 3
    for heard in besieged.reached:
        assert len(heard) == control, heard
        assert all("b'control'" in line for line in heard)
    old = besieged.read("siege", "evidence/sandbox.json")["engine"]["api_version"] == "1.41"
    for facts in besieged.facts("network"):
        # A datagram to one's own loopback is sent, and heard by nobody.
        sent = {name for name, how in facts["reached"].items() if how not in UNREACHED}
        assert sent <= {"udp 127.0.0.1", "udp ::1"}, facts["reached"]
        assert facts["loopback"] == "done"
        assert facts["interfaces"] == ["lo"]
        assert facts["sockets"] == []
        extra = {VSOCK} if old and not GVISOR else set()
        assert set(facts["families"]) <= FAMILIES | extra


def test_forged_frames_are_output_like_any_other(besieged: Besieged) -> None:
    text = b"".join(frames())
    for leg in LEGS:
        assert besieged.output("siege", leg, "forger") == text
        assert besieged.output("siege", leg, "forger", "stderr") == text
        assert besieged.rows("siege", leg)["last"]["status"] == "pass"


def test_exit_137_is_an_exit_code_and_not_a_lack_of_memory(besieged: Besieged) -> None:
    for leg in LEGS:
        for name in ("exit-137", "exit-137-unwanted"):
            row = besieged.rows("siege", leg)[name]
            assert (row["exit_code"], row["signal"], row["degraded_reason"]) == (137, None, None)
            assert row["score"] == (1.0 if name == "exit-137" else 0.0)


def test_no_process_outlives_its_case(besieged: Besieged) -> None:
    counts = [besieged.output("siege", leg, "after-daemon") for leg in LEGS]
    counts += [besieged.output("exhaustion", leg, "after-bomb") for leg in LEGS]
    assert set(counts) == {b"2\n"}  # the agent and the shell that counts


def test_a_flood_is_counted_and_hashed_in_bounded_memory(besieged: Besieged) -> None:
    for leg in LEGS:
        rows = besieged.rows("siege", leg)
        for name, size in (("flood", GIB), ("line", LINE)):
            assert rows[name]["stdout"]["size"] == size
            assert rows[name]["stdout"]["kept"] == 16 << 20
    assert besieged.run.peak < PEAK


def test_scratch_is_bounded_in_bytes_and_in_entries_and_empty_afterwards(
    besieged: Besieged,
) -> None:
    for leg in LEGS:
        sizes = json.loads(besieged.output("exhaustion", leg, "bytes"))
        assert sizes == {"/tmp": [64 << 20], "/home/case": [64 << 20], "/dev/shm": [32 << 20]}
        if not GVISOR:  # there files have no limit but memory: the case ends with its container
            (count,) = json.loads(besieged.output("exhaustion", leg, "inodes"))["/tmp"]
            assert 1000 < count <= 65_536
        assert besieged.output("exhaustion", leg, "after-filled") == b"0\n"


def test_what_lies_at_the_path_of_an_expectation_is_not_opened_unless_it_is_a_file(
    besieged: Besieged,
) -> None:
    for leg in LEGS:
        rows = besieged.rows("siege", leg)
        states = {item["path"]: item["state"] for item in rows["odd-files"]["files"]}
        assert states.pop("/tmp/folder") == "directory"
        assert set(states.values()) <= ({"other", "absent"} if GVISOR else {"other"}), states
        assert len(states) == 6
        assert {item["verdict"] for item in rows["odd-files"]["expectations"]} == {"failed"}
        assert rows["sparse"]["files"][0]["size"] == GIB - 1
        assert rows["usage-fifo"]["usage"] is rows["usage-deep"]["usage"] is None


def test_a_pattern_that_backtracks_and_json_without_end_are_judged_in_bounded_time(
    besieged: Besieged,
) -> None:
    for leg in LEGS:
        rows = besieged.rows("siege", leg)
        assert "nested deeper" in rows["deep"]["failure_message"]
        assert "matches nothing" in rows["backtracks"]["failure_message"]


def test_a_case_that_turns_the_file_system_over_gains_nothing(project: Project) -> None:
    """A user name space, then another root for everybody: gVisor of 2024 lets that happen."""
    place_attacks(project)
    path = project.suite(case("pivots", attack("pivot")), case("after", NEEDS_HINT))
    result = project.ao_eval("ab", path)
    steps = [json.loads(result.output("pivots", leg) or "{}") for leg in LEGS]
    done = [name for item in steps for name, how in item.items() if how == "done"]
    assert "Traceback" not in result.stderr
    if not GVISOR:
        assert done == []
    if not done:
        assert result.code == 0, result.stderr
        assert result.card["aggregate_delta"] == 0.5
        return
    # The leg cannot show any more that it read its own root: nothing is claimed.
    assert result.code in {0, 4}, result.stderr
    if result.code == 4:
        assert_no_claim(result, ["pivots", "after"])
        assert degraded_rows(result.card) == {("context_root_unavailable", "digest_mismatch")}
    assert result.card["integrity"]["verdict"] == "clean"
