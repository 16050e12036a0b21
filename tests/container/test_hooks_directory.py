"""A hooks directory: what runs around cases, what it may not, and what counts when it differs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.container.projects import GVISOR, Json, Project, Result, assert_no_claim, case

pytestmark = pytest.mark.container

START, END = "SessionStart", "SessionEnd"
LEGS = ("context_off", "context_on")
INCOMPLETE = ("hooks_disabled", "hook_incomplete")
DIFFER = ("hooks_disabled", "receipts_differ")


def hooks(project: Project, files: Mapping[str, str] | None = None, **events: Any) -> Path:
    """Write a hooks directory; for each event its commands, or groups as they are."""
    groups = {
        event: [
            item
            if isinstance(item, dict)
            else {"hooks": [{"type": "command", "command": item, "timeout": 20}]}
            for item in items
        ]
        for event, items in events.items()
    }
    text = json.dumps({"hooks": groups})
    project.write({"hooks.json": text, **(files or {})}, below="around")
    return project.repo / "around"


def ab(project: Project, path: Path, folder: Path, *more: object, **env: str) -> Result:
    return project.ao_eval("ab", path, "--hooks-dir", folder, *more, **env)


def reason(result: Result, case_id: str, leg: str) -> tuple[str | None, str | None]:
    found = result.case(case_id, leg)
    return found["degraded_reason"], found["degraded_detail"]


def receipts(result: Result, case_id: str = "one", leg: str = "context_on") -> list[Json]:
    found: list[Json] = result.case(case_id, leg)["hooks"]
    return found


def hook_output(result: Result, number: int, case_id: str = "one", leg: str = "context_on") -> str:
    return result.output(case_id, leg, f"hook-{number}.stdout")


def test_hooks_run_around_every_command_case_and_leave_receipts(project: Project) -> None:
    folder = hooks(
        project,
        {
            "start.sh": '#!/bin/sh\necho "begun $AO_CONTEXT_VARIANT" > "$HOME/receipt"\n'
            'echo "$OF_CASE $CLAUDE_PROJECT_DIR"; pwd; id -u; cat\n'
        },
        SessionStart=["${CLAUDE_PLUGIN_ROOT}/start.sh", "echo second >> ~/receipt; exit 3"],
        SessionEnd=['cat "$HOME/receipt"; test -e ~/by-case && echo seen >&2'],
        PreToolUse=["echo never"],
    )
    path = project.suite(
        case(
            "one",
            inputs={"shell": "cat ~/receipt; touch ~/by-case", "env": {"OF_CASE": "own"}},
        ),
        case("static", kind="artifact_check", expectations=[
            {"type": "file_exists", "target": "demo.sh"}
        ]),
        case("after", "test ! -e ~/by-case; cat ~/receipt"),
        name="demo",
    )  # fmt: skip
    project.write({"demo.sh": "x"}, below="evals")
    result = ab(project, path, folder, CLAUDE_PLUGIN_ROOT="/on/the/host")
    assert result.code == 0, result.stderr

    for leg in LEGS:
        told = f"begun {leg}\nsecond\n"
        assert result.output("one", leg) == result.output("after", leg) == told
        user = hook_output(result, 0, "one", leg).splitlines()
        assert user[:2] == ["own /workspace", "/workspace"]
        assert user[2] != "0"
        event = {"cwd": "/workspace", "hook_event_name": START, "source": "startup"}
        assert json.loads(user[3]) == event
        assert hook_output(result, 2, "one", leg) == told
        assert result.output("one", leg, "hook-2.stderr") == "seen\n"
        found = receipts(result, "one", leg)
        ends = [(item["event"], item["index"], item["exit_code"]) for item in found]
        assert ends == [(START, 0, 0), (START, 1, 3), (END, 0, 0)]
        assert found[2]["stdout"]["sha256"] == hashlib.sha256(told.encode()).hexdigest()
        assert receipts(result, "static", leg) == []
        assert all(reason(result, name, leg) == (None, None) for name in ("one", "static"))

    evidence = result.read("evidence/hooks.json")
    directory = evidence["directory"]
    assert directory["not_run"] == ["/hooks/PreToolUse"]
    assert [item["event"] for item in directory["hooks"]] == [START, START, END]
    wanted = [{"case_id": name, "complete": True, "equal": True} for name in ("one", "after")]
    assert directory["cases"] == wanted
    for leg in evidence["legs"]:
        assert leg["directory_at_start"] == leg["directory_at_end"] == directory["sha256"]
        assert leg["preserved"]
    proof = result.card["integrity"]["hooks"]
    assert proof["directory_sha256"] == directory["sha256"]
    assert (proof["hooks"], proof["receipts_equal"]) == (directory["hooks"], True)
    sandbox = result.read("evidence/sandbox.json")
    for container in sandbox["containers"]:
        (mount,) = (m for m in container["profile"]["mounts"] if m["target"] == "/hooks")
        assert (mount["type"], mount["read_only"]) == ("bind", True)


def test_a_plugins_root_is_a_hooks_directory_too(project: Project) -> None:
    command = {"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/hooks/start.sh"}
    text = json.dumps({"hooks": {START: [{"matcher": "startup|resume", "hooks": [command]}]}})
    script = '#!/bin/sh\n. "${CLAUDE_PLUGIN_ROOT}/lib/words.sh"\necho "$WORD"\n'
    files = {"hooks/hooks.json": text, "hooks/start.sh": script, "lib/words.sh": "WORD=found\n"}
    project.write(files, below="plugin")
    result = ab(project, project.suite(case("one", "true")), project.repo / "plugin")
    assert result.code == 0, result.stderr
    assert hook_output(result, 0) == "found\n"


def test_hooks_that_end_differently_in_the_legs_degrade_the_case_in_both(
    project: Project,
) -> None:
    folder = hooks(project, SessionStart=['test -z "$FIRST" || grep -rq HELPFUL /context/agents'])
    first = case("first", inputs={"shell": "true", "env": {"FIRST": "1"}})
    result = ab(project, project.suite(first, case("second", "true")), folder)
    assert result.code == 0, result.stderr
    for leg, code in zip(LEGS, (1, 0), strict=True):
        assert receipts(result, "first", leg)[0]["exit_code"] == code
        found = result.case("first", leg)
        assert reason(result, "first", leg) == DIFFER
        assert (found["status"], found["score"], found["exit_code"]) == ("inconclusive", None, 0)
        assert reason(result, "second", leg) == (None, None)
    first_row, second_row = result.card["per_case"]
    assert (first_row["degraded_reason"], first_row["score_delta"]) == (DIFFER[0], None)
    assert second_row["score_delta"] == 0
    assert result.card["pairing"]["valid_pairs"] == 1
    assert result.card["integrity"]["hooks"]["receipts_equal"] is False
    told = result.read("evidence/hooks.json")["directory"]["cases"]
    assert [item["equal"] for item in told] == [False, True]


def test_output_that_depends_on_the_context_is_no_difference(project: Project) -> None:
    folder = hooks(project, SessionStart=["cat /context/agents/learnings/*"])
    result = ab(project, project.suite(case("one", "true")), folder)
    assert result.code == 0, result.stderr
    assert hook_output(result, 0, leg="context_off") != hook_output(result, 0)
    assert reason(result, "one", "context_on") == (None, None)


@pytest.mark.parametrize(
    "command, seconds, receipt",
    [
        ("no-such-program", 20, {"exit_code": 127, "timed_out": False}),
        ("/hooks/hooks.json", 20, {"exit_code": 126}),
        ("trap '' TERM; sleep 60 & sleep 60", 1, {"signal": 9, "timed_out": True}),
        ("kill -9 $$", 20, {"signal": 9, "timed_out": False}),
    ],
    ids=["missing", "not_executable", "timeout", "killed"],
)
def test_a_hook_that_did_not_complete_degrades_the_case(
    project: Project, command: str, seconds: int, receipt: Json
) -> None:
    hook = {"type": "command", "command": command, "timeout": seconds}
    folder = hooks(project, SessionStart=[{"hooks": [hook]}], SessionEnd=["true"])
    result = ab(project, project.suite(case("one", "echo ran")), folder)
    assert result.code == 4, result.stderr
    assert_no_claim(result, ["one"])
    for leg in LEGS:
        assert reason(result, "one", leg) == INCOMPLETE
        found = receipts(result, "one", leg)
        assert {name: found[0][name] for name in receipt} == receipt
        assert found[1]["exit_code"] == 0
        assert result.output("one", leg) == "ran\n"  # what happened is still told
    told = result.read("evidence/hooks.json")["directory"]["cases"]
    assert told == [{"case_id": "one", "complete": False, "equal": True}]
    assert result.card["integrity"]["hooks"]["receipts_equal"] is False


def test_a_single_leg_is_degraded_by_a_hook_that_did_not_complete(project: Project) -> None:
    folder = hooks(project, SessionEnd=["no-such-program"])
    path = project.suite(case("one", "true"))
    result = project.ao_eval("run", path, "--variant", "context_on", AO_EVAL_HOOKS_DIR=str(folder))
    assert result.code == 4, result.stderr
    assert reason(result, "one", "context_on") == INCOMPLETE
    told = result.read("evidence/hooks.json")["directory"]["cases"]
    assert told == [{"case_id": "one", "complete": False, "equal": None}]


def test_a_hook_that_floods_is_counted_and_cut(project: Project) -> None:
    folder = hooks(project, SessionStart=["head -c 50000000 /dev/zero"])
    result = ab(project, project.suite(case("one", "echo ran")), folder)
    assert result.code == 0, result.stderr
    stream = receipts(result)[0]["stdout"]
    assert (stream["size"], stream["kept"]) == (50_000_000, 64 << 10)
    assert stream["sha256"] == hashlib.sha256(bytes(50_000_000)).hexdigest()
    assert (result.evidence / stream["path"]).stat().st_size == 64 << 10
    assert result.output("one") == "ran\n"


def test_a_hook_that_daemonises_is_gone_before_the_case(project: Project) -> None:
    daemon = "(trap '' HUP TERM; setsid sleep 300 &) ; echo started"
    look = "set -- /proc/[0-9]*; echo $#"
    folder = hooks(project, SessionStart=[daemon], SessionEnd=[look])
    result = ab(project, project.suite(case("one", f"{look}; {daemon}")), folder)
    assert result.code == 0, result.stderr
    assert result.output("one").splitlines()[0] == "2"  # the agent and the shell
    assert hook_output(result, 1) == "2\n"


def test_hooks_cannot_write_to_their_directory(project: Project) -> None:
    write = "echo x > /hooks/hooks.json; touch /hooks/new; chmod 777 /hooks; cd /hooks; echo *"
    folder = hooks(project, SessionStart=[write], SessionEnd=["test ! -e /hooks/new"])
    before = (folder / "hooks.json").read_bytes()
    result = ab(project, project.suite(case("one", "touch /hooks/x || echo refused")), folder)
    assert result.code == 0, result.stderr
    assert hook_output(result, 0) == "hooks.json\n"
    assert result.output("one") == "refused\n"
    assert receipts(result)[1]["exit_code"] == 0
    assert (folder / "hooks.json").read_bytes() == before
    assert [leg["preserved"] for leg in result.read("evidence/hooks.json")["legs"]] == [True] * 2


def test_a_hook_that_writes_the_workspace_counts_as_the_case(project: Project) -> None:
    folder = hooks(project, SessionStart=["echo made > made"])
    path = project.suite(case("one", "cat /workspace/made"), case("two", "true"))
    result = ab(project, path, folder)
    assert result.code == 0, result.stderr
    assert result.output("one") == "made\n"
    assert result.case("one")["wrote_workspace"] in (True, None)
    assert result.case("two")["container"] == 1  # a fresh one


def test_a_session_end_hook_cannot_change_what_the_case_is_judged_by(project: Project) -> None:
    folder = hooks(project, SessionEnd=["rm /tmp/answer; touch /tmp/late"])
    exists = {"type": "file_exists", "target": "/tmp/answer"}
    absent = {"type": "file_absent", "target": "/tmp/late"}
    result = ab(project, project.suite(case("one", "touch /tmp/answer", exists, absent)), folder)
    assert result.code == 0, result.stderr
    assert result.case("one")["status"] == "pass"
    assert receipts(result)[0]["exit_code"] == 0


def test_suppressed_hooks_are_not_run_and_degrade_as_ever(project: Project) -> None:
    folder = hooks(project, SessionStart=["touch /tmp/ran"])
    path = project.suite(case("one", "test ! -e /tmp/ran"))
    result = ab(project, path, folder, AGENTOPS_HOOKS_DISABLED="1")
    assert result.code == 4, result.stderr
    assert reason(result, "one", "context_on") == ("hooks_disabled", "inherited")
    assert result.case("one")["exit_code"] == 0
    assert receipts(result) == []
    directory = result.read("evidence/hooks.json")["directory"]
    assert (directory["hooks"], directory["cases"]) == ([], [])
    assert result.card["integrity"]["hooks"]["receipts_equal"] is None


def test_a_private_holdout_keeps_nothing_that_its_hooks_wrote(project: Project) -> None:
    secret = "holdout-secret-7781"
    folder = hooks(project, SessionStart=["cat /context/agents/learnings/*"])
    path = project.suite(
        case("one", "true"),
        visibility="private_holdout",
        on={"learnings/x.md": f"{secret}\n"},
    )
    result = ab(project, path, folder)
    assert result.code == 0, result.stderr
    stream = receipts(result)[0]["stdout"]
    assert stream["path"] is None
    assert stream["sha256"].startswith("hmac-sha256:")
    for file in result.evidence.rglob("*"):
        assert file.is_dir() or secret.encode() not in file.read_bytes(), file


def test_without_a_hooks_directory_there_is_no_trace_of_one(project: Project) -> None:
    result = project.ao_eval("ab", project.suite(case("one", "test ! -e /hooks")))
    assert result.code == 0, result.stderr
    assert receipts(result) == []
    assert result.read("evidence/hooks.json")["directory"] is None
    proof = result.card["integrity"]["hooks"]
    shown = (proof["directory_sha256"], proof["hooks"], proof["receipts_equal"])
    assert shown == (None, [], None)


# ------------------------------------------------------------------- refused before anything runs


def refused(result: Result, code: int, *words: str) -> None:
    assert (result.code, result.stdout) == (code, ""), result.stderr
    assert len(result.stderr.splitlines()) == 1
    for word in words:
        assert word in result.stderr
    assert not result.directories


@pytest.mark.parametrize(
    "files, words",
    [
        ({"other.json": "{}"}, ("has no hooks.json",)),
        ({"hooks.json": "{"}, ("around/hooks.json#",)),
        ({"hooks.json": '{"hooks": []}'}, ("around/hooks.json#/hooks", "must be an object")),
        (
            {"hooks.json": '{"hooks":{"SessionStart":[{"hooks":[{"type":"prompt"}]}]}}'},
            ("hooks.json#/hooks/SessionStart/0/hooks/0/type",),
        ),
        ({"hooks.json": '{"hooks":{}}', "hooks/hooks.json": "{}"}, ("has both",)),
    ],
    ids=["absent", "not_json", "shape", "type", "both"],
)
def test_a_bad_hooks_file_is_a_usage_error(
    project: Project, files: dict[str, str], words: tuple[str, ...]
) -> None:
    project.write(files, below="around")
    path = project.suite(case("one", "true"))
    refused(ab(project, path, project.repo / "around"), 2, *words)


def test_a_hooks_directory_that_is_not_there_is_a_usage_error(project: Project) -> None:
    path = project.suite(case("one", "true"))
    refused(ab(project, path, project.repo / "nowhere"), 2, "--hooks-dir", "does not exist")


@pytest.mark.parametrize("place", [".agents/hooks", ".agents", "."])
def test_a_hooks_directory_that_reaches_live_state_is_refused(project: Project, place: str) -> None:
    project.write({"hooks.json": '{"hooks":{}}'}, below=place)
    project.write({"learnings/x.md": "live"}, below=".agents")
    path = project.suite(case("one", "true"))
    refused(ab(project, path, project.repo / place), 5, "--hooks-dir", "live state")


def test_a_hooks_directory_shows_no_context_root_suite_or_history(project: Project) -> None:
    path = project.suite(case("one", "true"))
    for place in ("evals", "evals/fixtures", "evals/fixtures/demo/context-on/agents"):
        project.write({"hooks.json": '{"hooks":{}}'}, below=place)
        refused(ab(project, path, project.repo / place), 5, "what no case may see")
    project.write({"hooks.json": '{"hooks":{}}', "deep/.agents/x": "other"}, below="around")
    refused(ab(project, path, project.repo / "around"), 5, "deep/.agents")


def test_a_hooks_directory_with_an_unsafe_entry_is_refused(project: Project) -> None:
    folder = hooks(project, SessionStart=["true"])
    (folder / "out").symlink_to("/etc/passwd")
    refused(ab(project, project.suite(case("one", "true")), folder), 5, "leaves the tree")


def test_clean_hooks_do_not_cost_a_container(project: Project) -> None:
    folder = hooks(project, SessionStart=["touch ~/x"], SessionEnd=["true"])
    result = ab(project, project.suite(*(case(f"c{n}", "true") for n in range(3))), folder)
    assert result.code == 0, result.stderr
    # Under gVisor every command has a container of its own, with hooks or without.
    wanted = [0, 1, 2] if GVISOR else [0, 0, 0]
    assert [result.case(f"c{n}")["container"] for n in range(3)] == wanted
