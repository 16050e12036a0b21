"""Expectations: what passes, what fails, and what cannot be decided."""

from __future__ import annotations

import hashlib
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.core.expect import evaluate, file_targets, probe_command
from runner.core.material import Captured, CapturedFile, CapturedProbe, Material
from runner.model.record import ExpectationResult, Verdict
from runner.model.suite import Case

PASSED, FAILED, UNDECIDED = Verdict.PASSED, Verdict.FAILED, Verdict.UNDECIDED
DIR = "/workspace/evals"
MARKER = "zq7SECRETzq7"
GOOD_SUITE = {
    "schema_version": 1,
    "id": "s",
    "name": "n",
    "visibility": "public_canary",
    "tier": "deterministic",
    "scoring": {"dimensions": [{"name": "safety", "weight": 1}]},
    "baseline_policy": {"mode": "none"},
    "cases": [
        {
            "id": "c",
            "title": "t",
            "kind": "command",
            "objective": "o",
            "expectations": [{"type": "exit_code", "value": 0}],
        }
    ],
}
GOOD_RUN = {
    "schema_version": 1,
    "run_id": "r",
    "suite": {"id": "s"},
    "started_at": "t",
    "status": "pass",
    "verdict": "pass",
    "git": {},
    "runtime": {},
    "environment": {},
    "case_results": [],
    "aggregate_score": 1,
    "dimension_scores": {},
}


def captured(data: bytes | str, lost: int = 0) -> Captured:
    """Output of which `lost` bytes were not kept."""
    raw = data.encode() if isinstance(data, str) else data
    return Captured(raw, len(raw) + lost, "0" * 64)


def regular(data: bytes | str, lost: int = 0) -> CapturedFile:
    """A regular file."""
    return CapturedFile("regular", captured(data, lost))


def case(*expectations: dict[str, Any]) -> Case:
    """A case with these expectations."""
    return Case.model_validate(
        {
            "id": "c",
            "title": "t",
            "kind": "command",
            "objective": "o",
            "expectations": list(expectations),
        }
    )


def judge(
    expectation: dict[str, Any], *, holdout: bool = False, **material: Any
) -> ExpectationResult:
    """Judge one expectation on this material."""
    for stream in ("stdout", "stderr"):
        if isinstance(material.get(stream), bytes | str):
            material[stream] = captured(material[stream])
    observed = Material(**{"exit_code": 0} | material)
    result = evaluate(case(expectation), 0, observed, suite_dir=DIR, holdout=holdout)
    assert len(result.message) <= 300
    assert "\n" not in result.message
    return result


@pytest.mark.parametrize(
    "value, actual, verdict",
    [
        (0, 0, PASSED),
        (Decimal("0.0"), 0, PASSED),
        (3, 3, PASSED),
        (0, 1, FAILED),
        (Decimal("1e999999999"), 1, FAILED),
        (-1, None, FAILED),
        (0, None, FAILED),
        (True, 1, UNDECIDED),
        (Decimal("0.9"), 0, UNDECIDED),
        ("0", 0, UNDECIDED),
        (None, 0, UNDECIDED),
    ],
)
def test_exit_codes_are_integers(value: object, actual: int | None, verdict: Verdict) -> None:
    assert judge({"type": "exit_code", "value": value}, exit_code=actual).verdict is verdict


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize(
    "fields, output, lost, verdict",
    [
        ({"value": "ab"}, b"xaby", 0, PASSED),
        ({"value": "AB"}, b"xaby", 0, FAILED),
        ({"value": "a.y"}, b"aby", 0, FAILED),
        ({"value": "é"}, "é".encode(), 0, PASSED),
        ({"value": "é"}, "é".encode("latin-1"), 0, FAILED),
        ({"value": "a"}, b"\xff\x00a", 0, PASSED),
        ({"value": Decimal("1.0")}, b"v1", 0, PASSED),
        ({"value": True}, b"true", 0, PASSED),
        ({"value": ["a", "b"]}, b"[a b]", 0, PASSED),
        ({"target": "needle"}, b"a needle", 0, PASSED),
        ({"target": "needle", "value": "x"}, b"a needle", 0, FAILED),
        ({"value": "ab"}, b"xaby", 9, PASSED),
        ({"value": "zz"}, b"xaby", 9, UNDECIDED),
        ({"value": ""}, b"x", 0, UNDECIDED),
        ({}, b"x", 0, UNDECIDED),
        ({"value": {"a": 1}}, b"x", 0, UNDECIDED),
    ],
)
def test_streams_contain_literal_text(
    stream: str, fields: dict[str, Any], output: bytes, lost: int, verdict: Verdict
) -> None:
    material: dict[str, Any] = {stream: captured(output, lost)}
    result = judge({"type": f"{stream}_contains", **fields}, **material)
    assert result.verdict is verdict


@pytest.mark.parametrize(
    "state, exists, absent, contains",
    [
        ("regular", PASSED, FAILED, PASSED),
        ("absent", FAILED, PASSED, FAILED),
        ("directory", FAILED, FAILED, FAILED),
        ("other", FAILED, FAILED, FAILED),
        ("unreadable", UNDECIDED, UNDECIDED, UNDECIDED),
        (None, UNDECIDED, UNDECIDED, UNDECIDED),
    ],
)
def test_the_state_of_a_file_decides(
    state: Any, exists: Verdict, absent: Verdict, contains: Verdict
) -> None:
    path = f"{DIR}/f"
    content = captured("text") if state == "regular" else None
    files = {} if state is None else {path: CapturedFile(state, content)}
    for kind, verdict in (
        ("file_exists", exists),
        ("file_absent", absent),
        ("artifact_contains", contains),
    ):
        result = judge({"type": kind, "target": "f", "value": "ex"}, files=files)
        assert result.verdict is verdict, kind
        assert result.rests_on == path


def test_an_artifact_whose_content_was_not_kept_is_undecided() -> None:
    expectation = {"type": "artifact_contains", "target": "f", "value": "x"}
    for file in (CapturedFile("regular"), regular("abc", 5)):
        assert judge(expectation, files={f"{DIR}/f": file}).verdict is UNDECIDED


@pytest.mark.parametrize(
    "target, fields, verdict",
    [
        ("stdout.ok", {"value": True}, PASSED),
        ("stdout.ok", {"value": "true"}, FAILED),
        ("stdout.ok", {"value": 1}, FAILED),
        ("stdout.one", {"value": 1}, PASSED),
        ("stdout.one", {"value": Decimal("1e0")}, PASSED),
        ("stdout.one", {"value": "1"}, FAILED),
        ("stdout.text", {"value": 1}, FAILED),
        ("stdout.big", {"value": 9007199254740993}, PASSED),
        ("stdout.big", {"value": 9007199254740992}, FAILED),
        ("stdout.none", {}, PASSED),
        ("stdout.none", {"value": None}, PASSED),
        ("stdout.none", {"value": "<nil>"}, FAILED),
        ("stdout.missing", {}, FAILED),
        ("stdout.list[1].a", {"value": 2}, PASSED),
        ("stdout:$.list", {"value": [Decimal("1.0"), {"a": 2}]}, PASSED),
        ("stdout.list[-1]", {}, FAILED),
        ("stdout", {}, PASSED),
        ("stderr", {}, FAILED),
        ("out/d.json:a", {"value": 5}, PASSED),
        ("gone.json:a", {}, FAILED),
        ("unseen.json", {}, UNDECIDED),
    ],
)
def test_json_paths_are_compared_exactly(
    target: str, fields: dict[str, Any], verdict: Verdict
) -> None:
    stdout = (
        '{"ok":true,"one":1.0,"text":"1","big":9007199254740993,"none":null,"list":[1,{"a":2}]}'
    )
    files = {f"{DIR}/out/d.json": regular('{"a":5}'), f"{DIR}/gone.json": CapturedFile("absent")}
    expectation = {"type": "json_path", "target": target, **fields}
    assert judge(expectation, stdout=stdout, stderr="no json", files=files).verdict is verdict


@pytest.mark.parametrize(
    "output",
    [
        b"",
        b"{",
        b"{} {}",
        b"NaN",
        b"\xff",
        b"\xef\xbb\xbf{}",
        b'{"a":1,"a":2}',
        b"[" * 100_000 + b"]" * 100_000,
        b"[" * 100_000,
        b"1" * 5000,
        b'"\\ud800"',
    ],
)
@pytest.mark.parametrize("kind", ["json_path", "score_at_least", "schema_valid"])
def test_output_that_is_not_acceptable_json_fails_with_a_message(kind: str, output: bytes) -> None:
    result = judge({"type": kind, "target": "stdout"}, stdout=output)
    assert result.verdict is FAILED
    assert "not acceptable JSON" in result.message


@pytest.mark.parametrize("kind", ["json_path", "score_at_least", "schema_valid"])
def test_truncated_json_is_undecided_even_if_the_kept_part_parses(kind: str) -> None:
    assert judge({"type": kind, "target": "stdout"}, stdout=captured("1", 1)).verdict is UNDECIDED
    files = {f"{DIR}/f": regular("1", 1)}
    assert judge({"type": kind, "target": "f"}, files=files).verdict is UNDECIDED


@pytest.mark.parametrize(
    "score, fields, verdict",
    [
        ("0.8", {"threshold": Decimal("0.8")}, PASSED),
        ("0.1", {"threshold": Decimal("0.1")}, PASSED),
        ("0.79999999999999999999", {"threshold": Decimal("0.8")}, FAILED),
        ("9007199254740992", {"threshold": 9007199254740993}, FAILED),
        ("1e999999999", {"threshold": 1}, PASSED),
        ("-1e999999999", {"threshold": 0}, FAILED),
        ("0.5", {"value": Decimal("0.5")}, PASSED),
        ("0.5", {"value": 7, "threshold": Decimal("0.4")}, PASSED),
        ("0.99", {}, FAILED),
        ("1", {}, PASSED),
        ('"Inf"', {"threshold": 0}, FAILED),
        ('"1"', {"threshold": 0}, FAILED),
        ("true", {"threshold": 0}, FAILED),
        ("null", {"threshold": 0}, FAILED),
    ],
)
def test_scores_are_finite_numbers(score: str, fields: dict[str, Any], verdict: Verdict) -> None:
    expectation = {"type": "score_at_least", "target": "stdout.s", **fields}
    assert judge(expectation, stdout=f'{{"s":{score}}}').verdict is verdict


@pytest.mark.parametrize(
    "document, value, verdict",
    [
        (GOOD_RUN, None, PASSED),
        (GOOD_RUN, "eval-run.v1", PASSED),
        (GOOD_RUN, "Eval-RUN", PASSED),
        (GOOD_RUN, "eval-suite.v1", FAILED),
        (GOOD_RUN, "other", PASSED),
        (GOOD_RUN | {"status": "ok"}, None, FAILED),
        (GOOD_SUITE, None, PASSED),
        (GOOD_SUITE, "suite", PASSED),
        (GOOD_SUITE, "run", FAILED),
        (GOOD_SUITE | {"id": "X"}, None, FAILED),
        ([], None, FAILED),
        ("x", "run", FAILED),
    ],
)
def test_documents_are_checked_by_their_kind(
    document: object, value: str | None, verdict: Verdict
) -> None:
    expectation = {"type": "schema_valid", "target": "stdout", "value": value}
    assert judge(expectation, stdout=json.dumps(document)).verdict is verdict
    files = {f"{DIR}/d.json": regular(json.dumps(document))}
    assert judge(expectation | {"target": "d.json"}, files=files).verdict is verdict


def test_the_suite_itself_is_never_judged_valid() -> None:
    assert judge({"type": "schema_valid", "target": "suite"}).verdict is UNDECIDED


def test_manual_review_is_undecided() -> None:
    result = judge({"type": "manual_review", "required": False})
    assert (result.verdict, result.required, result.rests_on) == (UNDECIDED, False, None)


def test_auto_detect_takes_the_probe_of_its_own_index() -> None:
    value = {"command": "count", "pattern": "(n=[0-9]+)"}
    both = case(
        {"type": "exit_code", "value": 0}, {"type": "stdout_contains_auto_detect", "value": value}
    )
    probe = CapturedProbe(0, False, None, captured("n=5"), captured(""))
    for index, verdict in ((1, PASSED), (0, UNDECIDED)):
        observed = Material(exit_code=0, stdout=captured("n=5"), probes={index: probe})
        result = evaluate(both, 1, observed, suite_dir=DIR, holdout=False)
        assert result.verdict is verdict
    assert [probe_command(item) for item in both.expectations] == [None, "count"]


def test_file_targets_are_absolute_normalised_and_listed_once() -> None:
    many = case(
        {"type": "file_exists", "target": "a/../b"},
        {"type": "file_absent", "target": "b"},
        {"type": "artifact_contains", "target": "../../x", "value": "y"},
        {"type": "json_path", "target": "out.json:a.b"},
        {"type": "json_path", "target": "stdout.json"},
        {"type": "score_at_least", "target": "/abs//s.json:x"},
        {"type": "schema_valid", "target": "stderr"},
        {"type": "schema_valid", "target": " r.json "},
        {"type": "file_exists", "target": "//etc/x"},
        {"type": "file_exists", "target": "../../../../../up"},
        {"type": "stdout_contains", "target": "not-a-file"},
        {"type": "file_exists"},
    )
    assert file_targets(many, suite_dir=DIR) == (
        f"{DIR}/b",
        "/x",
        f"{DIR}/out.json",
        "/abs/s.json",
        f"{DIR}/r.json",
        "/etc/x",
        "/up",
    )


def test_messages_show_values_on_one_line_without_control_characters() -> None:
    output = json.dumps({"a": "\x1b[31mred\n" + "x" * 5000})
    result = judge({"type": "json_path", "target": "stdout.a", "value": "y"}, stdout=output)
    assert "\x1b" not in result.message
    assert "\\u001b[31mred\\n" in result.message
    assert '"y"' in result.message
    assert len(result.message) <= 300
    keys = json.dumps({"\x1b" * 400: 1})
    assert "\x1b" not in judge({"type": "schema_valid", "target": "stdout"}, stdout=keys).message
    named = judge({"type": "file_exists", "target": "a\x1b\n" + "b" * 999})
    assert "\x1b" not in named.message
    assert len(named.message) <= 300


@pytest.mark.parametrize(
    "expectation, material, fact",
    [
        ({"type": "exit_code", "value": 0}, {"exit_code": 3}, "3"),
        ({"type": "exit_code", "value": 0}, {"exit_code": None}, "signal"),
        ({"type": "stdout_contains", "value": "a"}, {"stdout": "a"}, "found"),
        ({"type": "stdout_contains", "value": "a"}, {"stdout": "b"}, "absent"),
        ({"type": "json_path", "target": "stdout"}, {"stdout": '{"b":1.0,"a":"é"}'},
         '{"a":"é","b":1e0}'),
        ({"type": "score_at_least", "target": "stdout"}, {"stdout": "1e1"}, "1e1"),
    ],
)  # fmt: skip
def test_the_fingerprint_is_of_the_fact_in_canonical_form(
    expectation: dict[str, Any], material: dict[str, Any], fact: str
) -> None:
    result = judge(expectation, **material)
    assert result.fingerprint == hashlib.sha256(fact.encode()).hexdigest()


def test_equal_facts_have_equal_fingerprints_and_undecided_ones_have_none() -> None:
    expectation = {"type": "json_path", "target": "stdout"}
    texts = ('{"a":1,"b":[2]}', '{"b":[2.0],"a":1e0}', ' { "a" : 10e-1, "b":[2] } ')
    prints = {judge(expectation, stdout=text).fingerprint for text in texts}
    assert len(prints) == 1
    assert judge(expectation, stdout='{"a":1,"b":[3]}').fingerprint not in prints
    assert judge(expectation, stdout=captured("1", 1)).fingerprint is None


PROBE = {0: CapturedProbe(0, False, None, captured(f"n={MARKER}1"), captured(MARKER))}
DETECT = {"command": f"echo {MARKER}", "pattern": f"({MARKER}[0-9])", "expected_group": 1}
HOLDOUT_EXPECTATIONS: list[dict[str, Any]] = [
    {"type": "exit_code", "value": MARKER},
    {"type": "stdout_contains", "value": MARKER},
    {"type": "stdout_contains", "value": [MARKER, 1]},
    {"type": "stdout_contains", "value": {MARKER: 1}},
    {"type": "stdout_contains", "target": MARKER},
    {"type": "stdout_contains", "target": f"x/{MARKER}", "value": MARKER},
    {"type": "stderr_contains", "value": MARKER},
    {"type": "stderr_contains", "target": MARKER},
    {"type": "stdout_contains_auto_detect", "value": DETECT},
    {"type": "stdout_contains_auto_detect", "value": DETECT | {"tolerance_pct": 5}},
    {"type": "stdout_contains_auto_detect", "value": {MARKER: MARKER}},
    {"type": "file_exists", "target": "f", "value": MARKER},
    {"type": "file_absent", "target": "f", "value": MARKER},
    {"type": "artifact_contains", "target": "f", "value": MARKER},
    {"type": "artifact_contains", "target": f"d/{MARKER}.txt"},
    {"type": "artifact_contains", "target": f"d/{MARKER}.txt", "value": MARKER},
    {"type": "json_path", "target": "stdout.a", "value": MARKER},
    {"type": "json_path", "target": "stdout.a", "value": {MARKER: [MARKER]}},
    {"type": "json_path", "target": "stdout"},
    {"type": "json_path", "target": "stderr.a", "value": MARKER},
    {"type": "json_path", "target": "f:a", "value": MARKER},
    {"type": "json_path", "target": f"stdout.{MARKER}", "value": MARKER},
    {"type": "score_at_least", "target": "stdout.a", "value": 1},
    {"type": "score_at_least", "target": "stdout.a", "value": MARKER},
    {"type": "schema_valid", "target": "stdout"},
    {"type": "schema_valid", "target": "f", "value": MARKER},
    {"type": "schema_valid", "target": "stdout", "value": f"{MARKER} run"},
    {"type": "manual_review", "value": MARKER},
]
HOLDOUT_OUTPUTS = [
    json.dumps({"a": MARKER}),
    json.dumps({"a": {MARKER: [MARKER]}}),
    json.dumps({"run_id": MARKER, MARKER: MARKER, "cases": MARKER}),
    f'{{"{MARKER}":1,"{MARKER}":2}}',
    f"{MARKER}1",
    MARKER[:5],
    "",
]


@pytest.mark.parametrize("expectation", HOLDOUT_EXPECTATIONS)
@pytest.mark.parametrize("output", HOLDOUT_OUTPUTS)
@pytest.mark.parametrize("lost", [0, 7])
def test_a_holdout_shows_neither_its_values_nor_any_output(
    expectation: dict[str, Any], output: str, lost: int, capfd: pytest.CaptureFixture[str]
) -> None:
    kept = captured(output, lost)
    for state in ("regular", "absent", "directory", "unreadable"):
        file = CapturedFile(state, kept if state == "regular" else None)
        result = judge(
            expectation,
            holdout=True,
            stdout=kept,
            stderr=kept,
            files={f"{DIR}/f": file, f"{DIR}/d/{MARKER}.txt": file},
            probes=PROBE,
        )
        assert MARKER not in result.model_dump_json()
        assert result.fingerprint is None
    assert MARKER not in "".join(capfd.readouterr())


def test_a_holdout_is_judged_like_any_other_suite() -> None:
    for output in HOLDOUT_OUTPUTS:
        for expectation in HOLDOUT_EXPECTATIONS:
            verdicts = {
                judge(expectation, holdout=holdout, stdout=output, probes=PROBE).verdict
                for holdout in (True, False)
            }
            assert len(verdicts) == 1


def test_a_holdout_keeps_a_target_that_gives_nothing_away() -> None:
    result = judge({"type": "json_path", "target": "stdout.a", "value": MARKER}, holdout=True)
    assert (result.target, result.rests_on) == ("stdout.a", "stdout")


@settings(deadline=None)
@given(needle=st.text(min_size=1, max_size=3), data=st.binary(max_size=30), lost=st.integers(1, 9))
def test_contains_on_truncated_data_never_fails(needle: str, data: bytes, lost: int) -> None:
    expectation = {"type": "stdout_contains", "value": needle}
    verdict = judge(expectation, stdout=captured(data, lost)).verdict
    assert verdict is (PASSED if needle.encode() in data else UNDECIDED)


OUTPUTS = (
    st.binary(max_size=60)
    | st.text('{}[]",:\\au0d819e-.', max_size=40).map(str.encode)
    | st.recursive(
        st.none() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
        max_leaves=8,
    ).map(lambda value: json.dumps(value).encode())
)


@settings(deadline=None)
@given(
    stdout=OUTPUTS,
    content=OUTPUTS,
    exit_code=st.none() | st.integers(0, 255),
    lost=st.sampled_from([0, 3]),
    holdout=st.booleans(),
)
def test_no_bytes_of_any_output_raise(
    stdout: bytes, content: bytes, exit_code: int | None, lost: int, holdout: bool
) -> None:
    probe = CapturedProbe(exit_code, False, None, captured(content), captured(stdout))
    for expectation in HOLDOUT_EXPECTATIONS:
        result = judge(
            expectation,
            holdout=holdout,
            exit_code=exit_code,
            stdout=captured(stdout, lost),
            stderr=captured(content, lost),
            files={f"{DIR}/f": CapturedFile("regular", captured(content, lost))},
            probes={0: probe},
        )
        json.loads(result.model_dump_json())
