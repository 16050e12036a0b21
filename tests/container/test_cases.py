"""Kinds of cases, their inputs, and expectations end to end."""

from __future__ import annotations

import json

import pytest

from tests.container.projects import EXIT_0, NEEDS_HINT, Json, Project, case

pytestmark = pytest.mark.container

VERSION: Json = {
    "type": "stdout_contains_auto_detect",
    "value": {
        "command": "cat ../VERSION",
        "pattern": "version ([0-9.]+)",
    },
}


def _verdicts(found: Json) -> list[str]:
    return [item["verdict"] for item in found["expectations"]]


def _out(text: str, **more: object) -> Json:
    return {"type": "stdout_contains", "value": text, **more}


def test_inputs_reach_a_case_as_the_suite_gives_them(project: Project) -> None:
    project.write(
        {
            "evals/bin/show": '#!/bin/sh\nprintf "%s|" "$@"; pwd; printenv MORE; cat\n',
            "evals/sub/data": "from sub\n",
        }
    )
    text = "line one\nlast line without end, ü"
    cases = [
        case(
            "argv",
            inputs={"argv": ["bin/show", "a b", "$HOME", "*"], "stdin": text, "env": {"MORE": "m"}},
        ),
        case("command", inputs={"command": "bin/show", "args": ["x", ""], "env": {"MORE": "y"}}),
        case("cwd", inputs={"shell": "pwd; cat data", "cwd": "sub"}),
        case("shell", inputs={"shell": "echo shell wins", "argv": ["false"], "command": "false"}),
        case("no-stdin", "cat; echo end"),
        case("on-path", inputs={"argv": ["sh", "-c", "exit 7"]}, expectations=[_exit(7)]),
        case("static", kind="static", expectations=[_file("file_exists", "sub/data")]),
        case(
            "static-fails",
            kind="artifact",
            expectations=[_file("file_absent", "sub/data"), _file("file_exists", "nothing")],
        ),
    ]
    result = project.ao_eval("run", project.suite(*cases))
    assert result.code == 0, result.stderr

    assert result.output("argv", "none") == f"a b|$HOME|*|/workspace/evals\nm\n{text}"
    assert result.output("command", "none") == "x||/workspace/evals\ny\n"
    assert result.output("cwd", "none") == "/workspace/evals/sub\nfrom sub\n"
    assert result.output("shell", "none") == "shell wins\n"
    assert result.output("no-stdin", "none") == "end\n"
    statuses = {item["case_id"]: item["status"] for item in result.record("none")["case_results"]}
    assert statuses == dict.fromkeys(statuses, "pass") | {"static-fails": "fail"}
    assert result.case("static-fails", "none")["score"] == 0.0
    assert result.case("static", "none")["exit_code"] is None


def _exit(code: int) -> Json:
    return {"type": "exit_code", "value": code}


def _file(kind: str, target: str, **more: object) -> Json:
    return {"type": kind, "target": target, **more}


def test_every_expectation_type_judges_what_the_case_did(project: Project) -> None:
    document = json.dumps({"n": 3, "deep": {"list": [1, {"x": "y"}]}, "score": 0.75})
    project.write({"evals/given.txt": "given\n", "evals/suite.json.txt": "{}"})
    pairs: list[tuple[Json, str]] = [
        (_exit(3), "passed"),
        (_exit(0), "failed"),
        (_out("deep"), "passed"),
        (_out("shallow"), "failed"),
        ({"type": "stderr_contains", "value": "warned"}, "passed"),
        ({"type": "stderr_contains", "value": "deep"}, "failed"),
        (_file("file_exists", "made/new.txt"), "passed"),
        (_file("file_exists", "made"), "failed"),
        (_file("file_absent", "given.txt"), "passed"),
        (_file("file_absent", "made/new.txt"), "failed"),
        (_file("artifact_contains", "made/new.txt", value="fresh"), "passed"),
        (_file("artifact_contains", "made/new.txt", value="stale"), "failed"),
        (_file("artifact_contains", "pipe", value="x"), "failed"),
        (_file("json_path", "stdout.n", value=3), "passed"),
        (_file("json_path", "stdout.n", value=True), "failed"),
        (_file("json_path", "stdout.deep.list[1].x", value="y"), "passed"),
        (_file("score_at_least", "stdout.score", value=0.75), "passed"),
        (_file("score_at_least", "stdout.score", value=0.76), "failed"),
        (_file("schema_valid", "suite.json.txt", value="suite"), "failed"),
        ({"type": "manual_review", "required": False}, "undecided"),
    ]
    shell = (
        f"mkdir made; echo fresh > made/new.txt; rm given.txt; mkfifo pipe; echo '{document}'; "
        "echo warned >&2; exit 3"
    )
    result = project.ao_eval("run", project.suite(case("all", shell, *(e for e, _ in pairs))))
    assert result.code == 0, result.stderr
    found = result.case("all", "none")
    assert list(zip([e["type"] for e, _ in pairs], _verdicts(found), strict=True)) == [
        (e["type"], verdict) for e, verdict in pairs
    ]
    passed = sum(verdict == "passed" for _, verdict in pairs)
    assert found["score"] == round(passed / (len(pairs) - 1), 4)


def test_auto_detect_runs_its_command_in_the_leg_and_compares(project: Project) -> None:
    project.write({"VERSION": "version 1.4.2\n"})
    confined = {
        "command": "id -u; cat /proc/net/dev | wc -l; echo marker-$(cd /context/agents; echo *)",
        "pattern": "marker-([a-z]+)",
    }
    tolerant = {**VERSION["value"], "pattern": "version ([0-9]+)", "tolerance_pct": 50}
    cases = [
        case("same", "echo this is version 1.4.2", EXIT_0, VERSION),
        case("older", "echo this is version 1.4.1", EXIT_0, VERSION),
        case(
            "confined",
            "echo marker-learnings",
            {"type": "stdout_contains_auto_detect", "value": confined},
        ),
        case(
            "tolerated",
            "echo version 2",
            {"type": "stdout_contains_auto_detect", "value": tolerant},
        ),
        case(
            "no-such-command",
            "echo version 1.4.2",
            {
                "type": "stdout_contains_auto_detect",
                "value": {**VERSION["value"], "command": "no-such-program"},
            },
        ),
        case(
            "hangs",
            "echo version 1.4.2",
            {
                "type": "stdout_contains_auto_detect",
                "value": {**VERSION["value"], "command": "sleep 60"},
            },
            timeout_seconds=1,
        ),
    ]
    result = project.ao_eval("run", project.suite(*cases), "--variant", "context_on")
    assert result.code == 0, result.stderr
    verdicts = {item["case_id"]: _verdicts(item) for item in result.record()["case_results"]}
    assert verdicts == {
        "same": ["passed", "passed"],
        "older": ["passed", "failed"],
        "confined": ["passed"],
        "tolerated": ["passed"],
        "no-such-command": ["undecided"],
        "hangs": ["undecided"],
    }
    for name in ("no-such-command", "hangs"):
        found = result.case(name)
        assert (found["score"], found["degraded_reason"]) == (
            None,
            "insufficient_decision_evidence",
        )
    assert result.output("same", name="probe-1.stdout") == "version 1.4.2\n"


def test_usage_that_a_case_reports_becomes_a_difference_between_the_legs(project: Project) -> None:
    report = (
        "if "
        + NEEDS_HINT
        + '; then n=70; else n=100; fi; echo "{\\"tokens\\": $n, \\"tool_calls\\": 3}" > '
    )
    path = project.suite(
        case("reports", report + '"$AO_USAGE_FILE"'),
        case("only-off", f'{NEEDS_HINT} || echo \'{{"tokens": 5}}\' > "$AO_USAGE_FILE"'),
        case("nonsense", 'echo \'{"tokens": -1}\' > "$AO_USAGE_FILE"'),
        case("silent", "true"),
    )
    result = project.ao_eval("ab", path)
    assert result.code == 0, result.stderr
    deltas = {
        row["case_id"]: (row["token_delta"], row["tool_delta"]) for row in result.card["per_case"]
    }
    nothing = (None, None)
    assert deltas == {
        "reports": (-30, 0),
        "only-off": nothing,
        "nonsense": nothing,
        "silent": nothing,
    }
    assert result.case("reports")["usage"] == {"tokens": 70, "tool_calls": 3}
