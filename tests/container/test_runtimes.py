"""What the evidence states of engine and OCI runtime, and what stays the same under all of them."""

from __future__ import annotations

import errno
import json
import os

import pytest

from runner.core.confine import RECURSIVE_READ_ONLY_API
from runner.engine.docker_engine import DockerEngine
from tests.container.projects import GVISOR, HELPFUL, NEEDS_HINT, RUNTIME, Json, Project, case

pytestmark = pytest.mark.container

OLD_API = (1, 41)
"""API of Docker 20.10, whose Debian release brings gVisor of 2022."""


def test_the_evidence_names_the_engine_and_the_runtime_that_ran_the_leg(
    project: Project, engine: DockerEngine
) -> None:
    project.suite(case("hint", NEEDS_HINT))
    result = project.ao_eval("ab", "evals/demo.json")
    assert result.code == 0, result.stderr

    sandbox = result.read("evidence/sandbox.json")
    info = engine.info()
    assert sandbox["engine"]["version"] == info.version
    assert sandbox["engine"]["api_version"] == info.api_version
    # Asked for by name even when it is the default one, so that the read-back compares it.
    runtimes = {item["profile"]["host"]["Runtime"] for item in sandbox["containers"]}
    assert runtimes == {RUNTIME or info.default_runtime}
    # The kernel that cases met, not the one that the engine says it has.
    kernels = {leg["start"]["kernel"] for leg in sandbox["inside"]}
    assert (kernels == {os.uname().release}) is not GVISOR
    assert {leg["start"]["seccomp"] for leg in sandbox["inside"]} == {0 if GVISOR else 2}
    assert all(leg["start"]["no_new_privs"] for leg in sandbox["inside"])
    queues = {any(m.startswith("/dev/mqueue ") for m in x["start"]["mounts"])
              for x in sandbox["inside"]}  # fmt: skip
    assert queues == {not GVISOR}


def test_recursive_read_only_is_demanded_where_engine_and_runtime_have_it(
    project: Project, engine: DockerEngine
) -> None:
    project.suite(case("hint", NEEDS_HINT))
    result = project.ao_eval("ab", "evals/demo.json")
    assert result.code == 0, result.stderr
    demanded = engine.api >= RECURSIVE_READ_ONLY_API and not GVISOR
    option = "ReadOnlyForceRecursive" if demanded else "NonRecursive"
    for item in result.read("evidence/sandbox.json")["containers"]:
        binds = [mount for mount in item["profile"]["mounts"] if mount["type"] == "bind"]
        # The folder of marks is there where a trace is possible.
        assert len(binds) == (3 if GVISOR else 4)
        for mount in binds:
            assert mount["read_only"] is True
            assert mount["options"] == {"Propagation": "rprivate", option: True}


def test_cases_that_wrote_nothing_share_a_container_unless_the_runtime_hides_what_they_leave(
    project: Project,
) -> None:
    cases = [case(f"reads-{n}", "cat /context/agents/learnings/*") for n in range(3)]
    project.suite(*cases)
    result = project.ao_eval("ab", "evals/demo.json")
    assert result.code == 0, result.stderr
    containers = result.read("evidence/sandbox.json")["containers"]
    assert len(containers) == 2 * (3 if GVISOR else 1)


@pytest.mark.parametrize("staging", ["plain", "with:colon"])
def test_a_workspace_is_writable_and_fresh_whether_overlaid_or_copied(
    project: Project, staging: str
) -> None:
    write = "cd ..; touch here sub/there && mkdir made && rm gone && chmod 700 ."
    look = "cd ..; test ! -e here && test ! -e sub/there && test ! -e made && cat gone"
    project.write({"gone": "still\n", "sub/file": "x\n"})
    project.suite(case("writes", write), case("looks", look))
    folder = project.staging / staging
    folder.mkdir()
    result = project.ao_eval("ab", "evals/demo.json", AO_EVAL_STAGING_DIR=str(folder))
    folder.rmdir()
    assert result.code == 0, result.stderr
    for leg in ("context_off", "context_on"):
        for name in ("writes", "looks"):
            found = result.case(name, leg)
            assert found["status"] == "pass", result.output(name, leg, "stderr")
    containers = result.read("evidence/sandbox.json")["containers"]
    overlaid = {
        any(mount["target"] == "/ao-upper" for mount in item["profile"]["mounts"])
        for item in containers
    }
    assert overlaid == {":" not in staging}


def test_a_leg_that_runs_out_of_memory_says_so(project: Project) -> None:
    eat = "import os\nif os.fork() == 0: b = bytearray(900 << 20)\nos.wait()\n"
    project.write({"evals/eat.py": eat})
    project.suite(
        case("before", NEEDS_HINT), case("eats", "python3 eat.py; exit 1"), case("after", "true")
    )
    result = project.ao_eval("ab", "evals/demo.json", "--memory", "256m")
    assert result.code == 0, result.stderr
    rows = [result.case("eats", leg) for leg in ("context_off", "context_on")]
    # Under gVisor the limit is that of the whole container, and ends it. The kernel may choose a
    # process of it whose end the engine does not put down to memory.
    details = {"oom", "agent_died"} if GVISOR else {"oom"}
    assert {row["degraded_reason"] for row in rows} == {"insufficient_decision_evidence"}
    assert {row["degraded_detail"] for row in rows} <= details
    assert {row["score"] for row in rows} == {None}
    assert {row["container"] for row in rows} == {1 if GVISOR else 0}
    # Nobody else is blamed.
    for leg in ("context_off", "context_on"):
        assert result.record(leg)["degraded_reason"] is None
        assert result.case("after", leg)["status"] == "pass"
    assert result.card["pairing"]["valid_pairs"] == 2
    assert result.card["aggregate_delta"] == 0.5
    stated = [line for line in result.card["warnings"] if "its whole container" in line]
    assert len(stated) == (1 if GVISOR else 0)


@pytest.mark.skipif(not GVISOR, reason="elsewhere a case does not end its container")
def test_a_case_that_ends_a_container_which_it_shares_degrades_the_leg(project: Project) -> None:
    eat = "b = bytearray(900 << 20)\n"
    project.write({"evals/eat.py": eat})
    project.suite(case("before", NEEDS_HINT), case("eats", "python3 eat.py"), case("after", "true"))
    result = project.ao_eval("ab", "evals/demo.json", "--memory", "256m", "--share-workspace")
    assert result.code == 4, result.stderr
    for leg in ("context_off", "context_on"):
        record = result.record(leg)
        assert record["degraded_reason"] == "insufficient_decision_evidence"
        assert record["degraded_detail"] in {"oom", "agent_died"}
        assert {row["degraded_reason"] for row in record["case_results"]} == {
            "insufficient_decision_evidence"
        }
    assert result.card["aggregate_delta"] is None
    assert sum(line.startswith("gVisor: ") for line in result.card["warnings"]) == 3


@pytest.mark.skipif(not GVISOR, reason="elsewhere a case cannot end PID 1")
def test_a_case_cannot_end_or_stop_the_agent_and_its_leg_goes_on(project: Project) -> None:
    signals = "for s in KILL STOP TERM INT HUP QUIT USR1; do kill -$s 1 && echo sent; done; true"
    project.suite(case("attacks", signals), case("hint", NEEDS_HINT))
    result = project.ao_eval("ab", "evals/demo.json")
    assert result.code == 0, result.stderr
    assert result.output("attacks") == ""
    assert result.card["aggregate_delta"] == 0.5


def test_the_number_of_files_in_scratch_is_bounded_but_for_gvisor(project: Project) -> None:
    make = (
        "import os\nn = 0\ntry:\n    for n in range(70000): os.mknod(f'/tmp/{n}')\n"
        "except OSError as error: print(error.errno)\nprint(n + 1)\n"
    )
    project.write({"evals/make.py": make})
    path = project.suite(case("makes", "python3 make.py", timeout_seconds=100))
    result = project.ao_eval("run", path)
    assert result.code == 0, result.stderr
    told = [int(line) for line in result.output("makes", "none").split()]
    if GVISOR:
        assert told == [70000]
    else:
        assert told[0] == errno.ENOSPC
        assert 65000 < told[1] <= 65536


def test_ls_works_everywhere_but_under_gvisor_of_2022(
    project: Project, engine: DockerEngine
) -> None:
    # It refuses a flag of statx that coreutils give: in both legs alike, for `ls` and `stat`.
    project.suite(case("ls", "ls /context/agents"), case("find", "find /context/agents"))
    result = project.ao_eval("ab", "evals/demo.json")
    old = GVISOR and engine.api == OLD_API
    for leg in ("context_off", "context_on"):
        assert result.case("ls", leg)["status"] == ("fail" if old else "pass")
        assert ("Invalid argument" in result.output("ls", leg, "stderr")) is old
        assert result.case("find", leg)["status"] == "pass"


def test_the_helpful_root_helps_whatever_the_engine(project: Project) -> None:
    project.suite(case("hint", NEEDS_HINT), on=HELPFUL)
    result = project.ao_eval("ab", "evals/demo.json")
    assert result.card["aggregate_delta"] == 1.0
    assert result.card["integrity"]["verdict"] == "clean"


def test_under_another_runtime_a_scorecard_differs_only_where_it_speaks_of_the_runtime(
    project: Project,
) -> None:
    write = "echo made > made && cat made"
    project.suite(
        case("hint", NEEDS_HINT),
        case("writes", write),
        case("fails", "false"),
        case("same", "true"),
    )
    fixed = {"SOURCE_DATE_EPOCH": "1700000000"}
    arguments = ("ab", "evals/demo.json", "--run-id", "same", "--controls", "standard")
    cards = []
    for number, runtime in enumerate(("runc", RUNTIME or "runc")):
        # Beside the repository: in it the results would be part of the next run's workspace.
        out = project.home / f"runs-{number}"
        result = project.ao_eval(*arguments, "--runtime", runtime, "--out-dir", out, **fixed)
        assert result.code == 0, result.stderr
        (directory,) = out.iterdir()
        cards.append((directory / "scorecard.json").read_bytes())
    if not GVISOR:
        assert cards[0] == cards[1]
    else:
        one, other = (_without_runtime(json.loads(card)) for card in cards)
        assert one == other


def _without_runtime(card: Json) -> Json:
    """A scorecard without what names runtime, read-back, workspace mode and trace granularity."""
    for name in ("oci_runtime", "workspace_mode"):
        del card["inputs"][name]
    del card["controls"]["trace"]
    del card["integrity"]["sandbox"]
    del card["integrity"]["live_state"]["mounts_checked"]
    card["warnings"] = [line for line in card["warnings"] if not line.startswith("gVisor")]
    for row in card["per_case"]:
        # Whether something was *not* opened only a trace of that leg can say.
        row["ignored_context_evidence"] = [
            item
            for item in row["ignored_context_evidence"]
            if item["kind"] not in {"not_opened", "opened_without_effect"}
        ]
    return card
