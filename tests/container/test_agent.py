"""The agent as PID 1 of real containers: what it observes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from runner.core.treehash import (
    TreeRecord,
    content_digest,
    directory_record,
    file_record,
    link_record,
)
from runner.core.wire import (
    Chunk,
    Hello,
    Limits,
)
from runner.host.agentfiles import agent_files
from tests.container import agent_leg
from tests.container.agent_leg import (
    CASE_UID,
    ENV,
    MIB,
    Leg,
    case,
    command,
    digest,
    py,
    run,
    sh,
)
from tests.container.projects import GVISOR

pytestmark = pytest.mark.container


@pytest.fixture(autouse=True)
def _image(leg_image: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_leg, "IMAGE", leg_image)


def test_output_exit_code_and_digest_of_a_command_are_observed(tmp_path: Path) -> None:
    out = run(tmp_path, sh("echo out; echo err >&2; exit 7"))
    facts = out.execution()
    assert (facts.exit_code, facts.signal, facts.start_error) == (7, None, None)
    assert (out.output(), out.output(stream="stderr")) == (b"out\n", b"err\n")
    assert facts.stdout.sha256 == digest(b"out\n")
    assert (facts.timed_out, facts.stragglers, out.exit_code) == (False, 0, 0)
    assert out.bye.reason == "done"
    assert out.bye.end.cases_done == 1


def test_hello_reports_the_confinement_as_it_is(tmp_path: Path) -> None:
    report = run(tmp_path, sh("true")).hello.report
    assert (report.uid, report.case_uid) == (0, CASE_UID)
    assert int(report.capabilities, 16) == (1 << 5) | (1 << 6) | (1 << 7)  # KILL SETGID SETUID
    assert int(report.case_capabilities, 16) == 0
    # gVisor filters its own calls to the host and shows its cases no mode.
    assert (report.no_new_privs, report.seccomp) == (True, 0 if GVISOR else 2)
    assert (report.interfaces, report.routes) == (("lo",), 0)
    queues = set() if GVISOR else {"/dev/mqueue"}
    assert set(report.writable) == queues | {"/dev/shm", "/home/case", "/tmp", "/workspace"}
    assert f"/ {'9p' if GVISOR else 'overlay'} ro" in report.mounts
    assert report.environment_sha256 == {k: digest(v.encode()) for k, v in ENV.items()}
    assert report.agent_sha256 == agent_files().sha256


def test_a_looser_container_shows_in_hello(tmp_path: Path) -> None:
    loose = {"CapAdd": ["SETUID", "SETGID", "KILL", "CHOWN"], "SecurityOpt": []}
    report = run(tmp_path, sh("true"), host=loose).hello.report
    assert int(report.capabilities, 16) & 1
    # Under gVisor it is in force whether it was asked for or not.
    assert report.no_new_privs is GVISOR


def test_signals_and_exit_137_are_told_apart(tmp_path: Path) -> None:
    out = run(tmp_path, sh("kill -9 $$"), sh("exit 137"), sh("kill -15 $$"))
    assert (out.execution(0).exit_code, out.execution(0).signal) == (None, 9)
    assert (out.execution(1).exit_code, out.execution(1).signal) == (137, None)
    assert out.execution(2).signal == 15
    assert not any(out.execution(n).timed_out or out.execution(n).oom_killed for n in range(3))


def test_programs_that_cannot_start_are_a_token_and_the_leg_goes_on(tmp_path: Path) -> None:
    out = run(
        tmp_path,
        command("no-such-program"),
        command("./missing"),
        command("/etc/passwd"),
        command("true", cwd="/no/such/folder"),
        command("true", cwd="/workspace/given.txt"),
        command("/workspace"),
        command("x\0y"),
        command("true", "x" * 200_000),
        sh("printf '#!/no/such/interpreter\\n' > /tmp/s; chmod +x /tmp/s"),
        command("true"),
    )
    errors = [out.execution(n).start_error for n in range(10)]
    assert errors == [
        "not_found", "not_found", "not_executable", "bad_cwd", "bad_cwd", "not_executable",
        # gVisor answers ENAMETOOLONG, which says less.
        "bad_argument", "not_startable" if GVISOR else "arguments_too_large", None, None,
    ]  # fmt: skip
    assert out.execution(0).stdout.sha256 == digest(b"")
    assert out.execution(9).exit_code == 0


def test_programs_are_found_on_the_path_of_the_case(tmp_path: Path) -> None:
    tool = "#!/bin/sh\necho mine"
    script = "mkdir -p bin; printf '%s' \"$0\" > bin/tool; chmod +x bin/tool"
    out = run(
        tmp_path,
        command("sh", "-c", script, tool),
        command("tool", env={"PATH": "/workspace/bin:/bin"}),
        command("bin/tool"),
        command("tool", cwd="/workspace/bin", env={"PATH": ":/bin"}),
        command("tool"),
    )
    assert [out.output(n) for n in (1, 2, 3)] == [b"mine\n"] * 3
    assert out.execution(4).start_error == "not_found"


def test_standard_input_is_given_whole_or_empty(tmp_path: Path) -> None:
    text = "grüße\n" * 100_000
    out = run(
        tmp_path,
        command("sha256sum", stdin=text),
        command("cat"),
        command("true", stdin=text),
        sh("exec 0<&-; sleep 0.2; echo done", stdin=text),
        command("cat", stdin=""),
    )
    assert out.output(0).split()[0].decode() == digest(text.encode())
    assert (out.execution(1).exit_code, out.output(1)) == (0, b"")
    assert [out.execution(n).exit_code for n in (2, 3, 4)] == [0, 0, 0]
    assert out.output(3) == b"done\n"


def test_a_case_starts_with_the_plans_environment_and_nothing_else(tmp_path: Path) -> None:
    out = run(tmp_path, command("env", "-0", env={"EXTRA": "ä", "HOME": "/x"}), command("env"))
    seen = dict(item.split(b"=", 1) for item in out.output(0).split(b"\0") if item)
    expected = ENV | {"EXTRA": "ä", "HOME": "/x"}
    assert seen == {k.encode(): v.encode() for k, v in expected.items()}
    assert b"EXTRA" not in out.output(1)
    assert out.bye.end.environment_sha256 == out.hello.report.environment_sha256


def test_a_case_is_a_plain_user_in_its_own_session_with_three_descriptors(tmp_path: Path) -> None:
    out = run(
        tmp_path,
        sh("id -u; id -g; id -G; set -- /proc/self/fd/*; echo $#; umask"),
        py("import os; print(os.getsid(0) == os.getpid() == os.getpgid(0))"),
        sh("grep -E '^(Sig(Ign|Blk)|Cap)' /proc/self/status"),
        sh("echo by-name > /dev/stdout; echo error > /dev/stderr"),
    )
    # Looking opens the fourth.
    assert out.output(0).split() == [b"65532", b"65532", b"65532", b"4", b"0022"]
    assert out.output(1) == b"True\n"
    values = dict(line.split(b":\t") for line in out.output(2).splitlines())
    # The bounding set is what no_new_privs makes useless; a case holds nothing of it.
    # The C library's posix_spawn leaves its two internal signals, 32 and 33, ignored.
    held = {int(v, 16) for k, v in values.items() if k not in {b"CapBnd", b"SigIgn"}}
    assert held == {0}
    assert (b"SigIgn" in values) is not GVISOR
    assert int(values.get(b"SigIgn", b"0"), 16) & ~(3 << 31) == 0
    assert (out.output(3), out.output(3, "stderr")) == (b"by-name\n", b"error\n")


def test_output_beyond_the_limit_is_counted_and_hashed_not_kept(tmp_path: Path) -> None:
    flood = "import sys\nfor i in range(50): sys.stdout.buffer.write(b'%07d\\n' % i * 131072)\n"
    expected = sha256()
    for i in range(50):
        expected.update(b"%07d\n" % i * 131072)
    out = run(tmp_path, py(flood), sh("head -c 40000 /dev/zero; head -c 70000 /dev/zero >&2"))
    facts = out.execution().stdout
    assert (facts.size, facts.kept) == (50 * MIB, 16 * MIB)
    assert facts.sha256 == expected.hexdigest()
    assert len(out.output()) == 16 * MIB
    assert out.output()[-8:] == b"0000015\n"
    assert out.output(1) == bytes(40000)
    assert out.output(1, "stderr") == bytes(70000)


def test_one_line_of_100_megabytes_and_binary_output_pass(tmp_path: Path) -> None:
    out = run(tmp_path, py("import os\nfor _ in range(100): os.write(1, b'\\x1b' * (1 << 20))"))
    # A short write to the pipe would make it fewer bytes: os.write blocks until all are taken.
    assert out.execution().stdout.size == 100 * MIB
    assert out.output() == b"\x1b" * (16 * MIB)


def test_output_arrives_while_the_case_still_runs(tmp_path: Path) -> None:
    with Leg(tmp_path, [case(sh("echo early; sleep 3; echo late"))]) as leg:
        leg.send_plan()
        leg.pump(Hello)
        begin = time.monotonic()
        leg.pump(Chunk)
        assert time.monotonic() - begin < 1.5
        assert leg.outcome.output() == b"early\n"
        leg.pump()
        assert leg.outcome.output() == b"early\nlate\n"


def test_a_reader_that_stalls_stalls_the_case_and_loses_nothing(tmp_path: Path) -> None:
    script = "for i in $(seq 1 200000); do echo 0123456789012345678901234567890123456789; done"
    with Leg(tmp_path, [case(sh(script), timeout=60)]) as leg:
        leg.send_plan()
        leg.pump(Chunk)
        time.sleep(1.5)
        out = leg.pump()
        assert out.execution().stdout.size == out.execution().stdout.kept == 200000 * 41
        assert out.bye.reason == "done"


def test_files_are_snapshotted_as_the_case_user_sees_them(tmp_path: Path) -> None:
    make = (
        "cd /tmp; printf content > plain; ln -s plain link; mkdir folder; mkfifo fifo;"
        " ln -s /dev/zero zero; ln -s loop loop; printf x > secret; chmod 000 secret;"
        " ln -s /proc/self/status proc; ln -s /proc/1/environ env; ln -s /dev/stdin stdin;"
        " truncate -s 1T sparse; head -c 3000000 /dev/zero > big; : > empty;"
        " python3 -I -S -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'"
    )
    names = ["plain", "link", "folder", "fifo", "zero", "loop", "secret", "proc", "env", "stdin",
             "sparse", "big", "empty", "sock", "missing", "plain/below"]  # fmt: skip
    limits = Limits(file_bytes=MIB)
    files = [f"/tmp/{name}" for name in names] + ["/proc/meminfo", "/sys/kernel/notes", "/a\0b"]
    what = case(sh(make), files=files)
    out = run(tmp_path, what, limits=limits)
    assert out.execution().exit_code == 0, out.output(0, "stderr")
    facts = {f.path.removeprefix("/tmp/"): f for f in out.ended().files}
    states = {name: f.state for name, f in facts.items()}
    assert states == {
        "plain": "regular", "link": "regular", "folder": "directory", "fifo": "other",
        "zero": "other", "loop": "unreadable", "secret": "unreadable", "proc": "other",
        "env": "other", "stdin": "other", "sparse": "regular", "big": "regular",
        "empty": "regular", "sock": "other", "missing": "absent", "plain/below": "absent",
        "/proc/meminfo": "other", "/sys/kernel/notes": "absent" if GVISOR else "other",
        "/a\0b": "absent",
    }  # fmt: skip
    assert (out.file(0), out.file(1)) == (b"content", b"content")
    assert facts["plain"].sha256 == digest(b"content")
    assert (facts["big"].size, facts["big"].kept) == (3000000, MIB)
    assert facts["big"].sha256 == digest(bytes(3000000))
    assert (facts["sparse"].size, facts["sparse"].kept, facts["sparse"].sha256) == (
        1 << 40,
        MIB,
        None,
    )
    assert facts["empty"].sha256 == digest(b"")


def test_files_of_root_are_not_read_with_roots_eyes(tmp_path: Path) -> None:
    out = run(tmp_path, case(None, files=["/workspace/roots.txt", "/etc/passwd"]))
    assert [f.state for f in out.ended().files] == ["unreadable", "regular"]


def test_a_static_case_runs_nothing(tmp_path: Path) -> None:
    out = run(tmp_path, case(None, files=["/workspace/given.txt", "/workspace/none"]), share=False)
    ended = out.ended()
    assert (ended.execution, ended.wrote_workspace, ended.usage) == (None, False, None)
    assert [f.state for f in ended.files] == ["regular", "absent"]
    assert out.file(0) == b"given\n"


def test_probes_run_after_the_files_and_like_cases(tmp_path: Path) -> None:
    probes = [sh("echo $MARK; echo late > /tmp/f; exit 3", env={"MARK": "m"}), command("gone"),
              sh("cat /tmp/f; sleep 100")]  # fmt: skip
    what = case(sh("echo early > /tmp/f"), files=["/tmp/f"], probes=probes, timeout=2)
    out = run(tmp_path, what)
    found = out.ended().probes
    assert out.file(0) == b"early\n"
    assert out.output(execution=1) == b"m\n"
    assert (found[3].exit_code, found[4].start_error, found[5].timed_out) == (3, "not_found", True)
    assert out.output(execution=3) == b"late\n"


@pytest.mark.parametrize(
    "text, expected",
    [
        ('{"tokens": 12, "tool_calls": 0}', {"tokens": 12, "tool_calls": 0}),
        ('{"tokens": 7, "model": [1, {"x": null}]}', {"tokens": 7}),
        ('{"tokens": true}', None),
        ('{"tokens": -1}', None),
        ('{"tokens": 1.0}', None),
        ('["tokens"]', None),
        ("{}", None),
        ('{"tokens": 1} x', None),
        ("", None),
        ("[" * 4000, None),
        ('{"tokens": 1}' + " " * 5000, None),
    ],
)
def test_usage_is_passed_on_only_when_it_is_well_formed(
    tmp_path: Path, text: str, expected: dict[str, int] | None
) -> None:
    out = run(tmp_path, command("sh", "-c", 'printf %s "$0" > "$AO_USAGE_FILE"', text), sh("true"))
    assert out.ended().usage == expected
    assert out.ended(1).usage is None


def test_the_context_root_is_hashed_inside_as_on_the_host(tmp_path: Path) -> None:
    root = tmp_path / "agents"
    (root / "learnings" / "deep").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "learnings" / "a.md").write_text("hello")
    (root / "learnings" / "big").write_bytes(bytes(range(256)) * 1000)
    (root / "run").write_text("#!/bin/sh\n")
    (root / "run").chmod(0o755)
    (root / "private").write_text("mine")
    (root / "private").chmod(0o600)
    odd = os.fsencode(root) + b"/learnings-\xff\n"
    Path(os.fsdecode(odd)).write_text("odd")
    (root / "link").symlink_to("learnings/a.md")
    for path in [root, *root.rglob("*")]:
        os.chown(path, CASE_UID, CASE_UID, follow_symlinks=False)
    expected = content_digest(records(root))
    out = run(tmp_path, sh("cat $AO_AGENTS_DIR/private; touch $AO_AGENTS_DIR/x"), context=root)
    assert out.hello.report.context_root_sha256 == expected
    assert out.bye.end.context_root_sha256 == expected
    assert (out.output(), out.execution().exit_code) == (b"mine", 1)


def test_a_context_root_that_cannot_be_read_has_no_digest(tmp_path: Path) -> None:
    root = tmp_path / "agents"
    root.mkdir()
    (root / "f").write_text("x")
    (root / "f").chmod(0o600)  # and stays root's
    assert run(tmp_path, None, context=root).hello.report.context_root_sha256 is None
    (root / "f").unlink()
    os.mkfifo(root / "fifo")
    assert run(tmp_path, None, context=root).hello.report.context_root_sha256 is None


def records(root: Path) -> Iterator[TreeRecord]:
    for path in root.rglob("*"):
        name = os.fsencode(path)[len(os.fsencode(root)) + 1 :]
        if path.is_symlink():
            yield link_record(name, os.fsencode(path.readlink()))
        elif path.is_dir():
            yield directory_record(name)
        else:
            executable = bool(path.stat().st_mode & 0o100)
            yield file_record(name, digest(path.read_bytes()), executable=executable)
