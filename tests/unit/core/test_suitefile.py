"""The suite reader: what it accepts, what it refuses, and how it says so."""

from __future__ import annotations

import copy
import hashlib
import json
from decimal import Decimal
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.core.suitefile import check_fixtures, looks_like_suite, read_suite, suite_problem
from runner.errors import InputError
from runner.model.suite import Suite

SCHEMA = Suite.model_json_schema(mode="validation")
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
MARKER = "zq7SECRETzq7"


def suite(*expectations: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A small sound suite."""
    return {
        "schema_version": 1,
        "id": "demo",
        "name": "Demo",
        "visibility": "public_canary",
        "tier": "deterministic",
        "scoring": {"dimensions": [{"name": "safety", "weight": 1}]},
        "baseline_policy": {"mode": "none"},
        "cases": [
            {
                "id": "one",
                "title": "t",
                "kind": "command",
                "objective": "o",
                "expectations": list(expectations) or [{"type": "exit_code", "value": 0}],
            }
        ],
        **fields,
    }


def read(document: object) -> Suite:
    """Read a document as a file."""
    return read_suite(json.dumps(document).encode(), "s.json").suite


def refusal(document: object) -> InputError:
    """The refusal of a document."""
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    with pytest.raises(InputError) as caught:
        read_suite(data, "s.json")
    assert caught.value.exit_code == 2
    assert "\n" not in caught.value.line()
    return caught.value


def test_a_suite_is_read_with_the_identity_of_its_bytes() -> None:
    data = json.dumps(suite()).encode()
    read_file = read_suite(data, "dir/s.json")
    assert read_file.path == "dir/s.json"
    assert read_file.sha256 == hashlib.sha256(data).hexdigest()
    assert read_file.holdout_key is None


def test_a_private_holdout_has_a_key_that_only_its_bytes_give() -> None:
    data = json.dumps(suite(visibility="private_holdout")).encode()
    key = hashlib.sha256(b"ao-eval holdout digest key\0" + data).digest()
    assert read_suite(data, "x").holdout_key == key
    assert read_suite(data + b"\n", "x").holdout_key != key


def test_null_means_absent_for_every_optional_field() -> None:
    document = suite()
    for holder, names in (
        (document, ("description practices domain evidence_kind owners tags allowed_runtimes "
                    "environment fixtures")),
        (document["scoring"], "aggregate_threshold critical_threshold"),
        (document["scoring"]["dimensions"][0], "threshold critical"),
        (document["baseline_policy"], ("baseline_ref baseline_path max_aggregate_regression "
                                       "max_dimension_regression repeat_count promotion_requires "
                                       "blocking_gate")),
        (document["cases"][0], ("evidence_kind runtime timeout_seconds fixtures inputs dimensions "
                                "critical tags")),
        (document["cases"][0]["expectations"][0], "target threshold required"),
    ):  # fmt: skip
        holder.update(dict.fromkeys(names.split()))
    assert read(document) == read(suite())
    VALIDATOR.validate(document)


@pytest.mark.parametrize(
    "change",
    [
        {"tier": "live"},
        {"domain": "anything at all"},
        {"evidence_kind": ""},
        {"environment": {"disable_hooks": True, "network": "enabled", "max_attempts": 0}},
        {"practices": ["x"]},
        {"baseline_policy": {"mode": "anything", "max_aggregate_regression": 7}},
        {"scoring": {"critical_threshold": -3, "dimensions": [
            {"name": "safety", "weight": 1}, {"name": "safety", "weight": 2.5}]}},
        {"scoring": {"aggregate_threshold": 1, "dimensions": [
            {"name": "context_comprehension", "weight": 3, "threshold": 0}]}},
    ],
)  # fmt: skip
def test_what_the_formats_first_reader_lets_pass_is_accepted(change: dict[str, Any]) -> None:
    document = suite(**change)
    read(document)
    VALIDATOR.validate(document)


@pytest.mark.parametrize("runtime", ["", "static", "mock", "shell", "claude", "codex", "manual"])
def test_every_runtime_is_read_and_the_live_ones_are_left_to_the_planner(runtime: str) -> None:
    document = suite()
    document["cases"][0] |= {"runtime": runtime, "dimensions": ["not-in-scoring"]}
    assert read(document).cases[0].runtime == (runtime or None)
    VALIDATOR.validate(document)


@pytest.mark.parametrize(
    "path, value, where",
    [
        (("schema_version",), 2, "/schema_version"),
        (("schema_version",), True, "/schema_version"),
        (("schema_version",), 1.0, "/schema_version"),
        (("id",), "Upper", "/id"),
        (("id",), "a/b", "/id"),
        (("id",), "a\n", "/id"),
        (("id",), "a" * 201, "/id"),
        (("name",), " \t\u00a0\u3000", "/name"),
        (("visibility",), "public", "/visibility"),
        (("tier",), "slow", "/tier"),
        (("evidence_kind",), "x", "/evidence_kind"),
        (("baseline_policy", "mode"), "", "/baseline_policy/mode"),
        (("scoring", "aggregate_threshold"), 1.5, "/scoring/aggregate_threshold"),
        (("scoring", "aggregate_threshold"), True, "/scoring/aggregate_threshold"),
        (("scoring", "dimensions"), [], "/scoring/dimensions"),
        (("scoring", "dimensions", 0, "name"), "speed", "/scoring/dimensions/0/name"),
        (("scoring", "dimensions", 0, "weight"), 0, "/scoring/dimensions/0/weight"),
        (("scoring", "dimensions", 0, "threshold"), -0.1, "/scoring/dimensions/0/threshold"),
        (("environment",), {"timeout_seconds": 0}, "/environment/timeout_seconds"),
        (("environment",), {"timeout_seconds": True}, "/environment/timeout_seconds"),
        (("cases",), [], "/cases"),
        (("cases", 0, "id"), "", "/cases/0/id"),
        (("cases", 0, "title"), " ", "/cases/0/title"),
        (("cases", 0, "kind"), "", "/cases/0/kind"),
        (("cases", 0, "objective"), "", "/cases/0/objective"),
        (("cases", 0, "runtime"), "docker", "/cases/0/runtime"),
        (("cases", 0, "timeout_seconds"), -1, "/cases/0/timeout_seconds"),
        (("cases", 0, "evidence_kind"), "x", "/cases/0/evidence_kind"),
        (("cases", 0, "inputs"), [], "/cases/0/inputs"),
        (("cases", 0, "expectations"), [], "/cases/0/expectations"),
        (("cases", 0, "expectations", 0, "type"), "x", "/cases/0/expectations/0/type"),
        (("cases", 0, "expectations", 0, "required"), 1, "/cases/0/expectations/0/required"),
        (("cases", 0, "expectations", 0, "threshold"), "1", "/cases/0/expectations/0/threshold"),
        (("cases", 0, "expectations", 0, "threshold"), True, "/cases/0/expectations/0/threshold"),
        (("cases", 0, "a/~b"), 1, "/cases/0/a~1~0b"),
        (("surprise",), 1, "/surprise"),
        (("Name",), "x", "/Name"),
        (("fixtures",), [{"path": "a", "purpose": "p", "sha256": "abc"}], "/fixtures/0/sha256"),
    ],
)
def test_a_wrong_field_is_refused_at_its_pointer(
    path: tuple[str | int, ...], value: object, where: str
) -> None:
    document: Any = suite()
    holder = document
    for part in path[:-1]:
        holder = holder[part]
    holder[path[-1]] = value
    assert refusal(document).where == f"s.json#{where}"


@pytest.mark.parametrize(
    "expectation, where",
    [
        ({"type": "exit_code"}, "/value"),
        ({"type": "exit_code", "value": True}, "/value"),
        ({"type": "exit_code", "value": "0"}, "/value"),
        ({"type": "exit_code", "value": 0.9}, "/value"),
        ({"type": "stdout_contains"}, ""),
        ({"type": "stdout_contains", "target": ""}, ""),
        ({"type": "stderr_contains", "value": ""}, "/value"),
        ({"type": "stdout_contains", "value": {"a": 1}}, "/value"),
        ({"type": "stdout_contains", "value": [{"a": 1}]}, "/value"),
        ({"type": "artifact_contains", "value": "x"}, "/target"),
        ({"type": "artifact_contains", "target": "f", "value": ""}, "/value"),
        ({"type": "file_exists"}, "/target"),
        ({"type": "file_absent", "target": ""}, "/target"),
        ({"type": "file_absent", "target": "a\0b"}, "/target"),
        ({"type": "json_path", "value": 1}, "/target"),
        ({"type": "json_path", "target": "  ", "value": 1}, "/target"),
        ({"type": "score_at_least", "threshold": 1}, "/target"),
        ({"type": "score_at_least", "target": "stdout", "value": "1"}, "/value"),
        ({"type": "score_at_least", "target": "stdout", "value": True}, "/value"),
        ({"type": "schema_valid"}, "/target"),
        ({"type": "schema_valid", "target": " suite "}, "/target"),
        ({"type": "schema_valid", "target": "stdout", "value": 1}, "/value"),
        ({"type": "stdout_contains_auto_detect", "value": "x"}, "/value"),
        ({"type": "stdout_contains_auto_detect", "value": {"command": "x"}}, "/value"),
    ],
)
def test_an_expectation_that_says_nothing_is_refused(
    expectation: dict[str, Any], where: str
) -> None:
    found = refusal(suite({"type": "exit_code", "value": 0}, expectation))
    assert found.where == f"s.json#/cases/0/expectations/1{where}"


@pytest.mark.parametrize(
    "expectation",
    [
        {"type": "exit_code", "value": 0.0},
        {"type": "exit_code", "value": -1},
        {"type": "stdout_contains", "value": 1.5},
        {"type": "stdout_contains", "value": False},
        {"type": "stdout_contains", "value": []},
        {"type": "stdout_contains", "target": "needle"},
        {"type": "artifact_contains", "target": "../../etc/passwd"},
        {"type": "json_path", "target": "stdout", "value": {"a": [None]}},
        {"type": "score_at_least", "target": "stdout.s", "threshold": 80},
        {"type": "score_at_least", "target": "stdout.s", "value": 1e300},
        {"type": "schema_valid", "target": "stdout", "value": "eval-run.v1"},
        {"type": "manual_review"},
        {"type": "stdout_contains_auto_detect",
         "value": {"command": "x", "pattern": "n=([0-9]+)", "expected_group": None,
                   "tolerance_pct": 2.5}},
    ],
)  # fmt: skip
def test_sound_expectations_are_accepted_by_reader_and_schema(expectation: dict[str, Any]) -> None:
    read(suite(expectation))
    VALIDATOR.validate(suite(expectation))


def test_the_first_problem_is_named_and_the_others_are_counted() -> None:
    found = refusal(suite(id="X", name="", tier="x"))
    assert found.where == "s.json#/id"
    assert found.summary.endswith("(and 2 more)")


def test_a_refused_item_is_one_problem_not_two() -> None:
    assert "more" not in refusal(suite({"type": "x"})).summary


def test_a_second_case_with_the_same_id_is_refused() -> None:
    document = suite()
    document["cases"].append(document["cases"][0])
    found = refusal(document)
    assert found.where == "s.json#/cases/1/id"
    assert "/cases/0" in found.summary


@pytest.mark.parametrize("document", [[], 1, None, "x", True])
def test_only_an_object_is_a_suite(document: object) -> None:
    assert refusal(document).where == "s.json#"


def test_json_that_is_not_strict_is_refused_with_pointer_or_line() -> None:
    text = json.dumps(suite())
    twice = refusal(text.replace('"name": "Demo"', '"name": "a", "name": "b"').encode())
    assert twice.where == "s.json#/name"
    assert "line 1" in refusal((text + "x").encode()).summary
    assert refusal(b"\xef\xbb\xbf" + text.encode()).where == "s.json#"
    assert refusal(text.replace('"weight": 1', '"weight": NaN').encode()).where == (
        "s.json#/scoring/dimensions/0/weight"
    )
    assert refusal(b'{"a":' * 100_000).summary.startswith("nested deeper")


def test_a_weight_beyond_a_double_is_refused() -> None:
    for text in ("1e400", "1e-400", "9" * 400):
        data = json.dumps(suite()).replace('"weight": 1', f'"weight": {text}').encode()
        assert refusal(data).where == "s.json#/scoring/dimensions/0/weight"


def test_thresholds_and_values_stay_exact() -> None:
    data = (
        json.dumps(suite({"type": "score_at_least", "target": "stdout", "threshold": 12345}))
        .replace("12345", "0.1")
        .encode()
    )
    assert read_suite(data, "x").suite.cases[0].expectations[0].threshold == Decimal("0.1")


def test_control_characters_of_a_key_do_not_reach_the_terminal() -> None:
    assert "\x1b" not in refusal(suite(**{"\x1b[31m" + "k" * 500: 1})).line()


@pytest.mark.parametrize(
    "expectation",
    [
        {"type": MARKER, "value": MARKER},
        {"type": "exit_code", "value": MARKER},
        {"type": "exit_code", "value": {MARKER: MARKER}},
        {"type": "stdout_contains", "value": {MARKER: MARKER}},
        {"type": "score_at_least", "target": "stdout", "value": MARKER},
        {"type": "score_at_least", "target": "stdout", "threshold": MARKER},
        {"type": "schema_valid", "target": "stdout", "value": [MARKER]},
        {"type": "json_path", "target": "stdout", "value": MARKER, "required": MARKER},
        {"type": "stdout_contains_auto_detect", "value": {MARKER: 1}},
        {"type": "stdout_contains_auto_detect", "value": {"command": "x", "pattern": f"({MARKER}"}},
    ],
)
def test_a_refused_holdout_keeps_its_values_to_itself(
    expectation: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> None:
    found = refusal(suite(expectation, visibility="private_holdout"))
    assert MARKER not in found.line()
    assert MARKER not in "".join(capfd.readouterr())


def test_a_duplicate_key_inside_a_value_is_refused_without_naming_it() -> None:
    text = json.dumps(suite({"type": "json_path", "target": "stdout", "value": "HERE"}))
    found = refusal(text.replace('"HERE"', f'{{"{MARKER}":1,"{MARKER}":2}}').encode())
    assert found.where == "s.json#/cases/0/expectations/0/value"
    assert MARKER not in found.line()


def test_a_holdout_needs_a_value_where_a_recorded_path_would_be_the_answer() -> None:
    expectation = {"type": "artifact_contains", "target": "answer.txt"}
    read(suite(expectation))
    assert "needs a value" in refusal(suite(expectation, visibility="private_holdout")).summary


def test_declared_fixtures_are_checked() -> None:
    digest = hashlib.sha256(b"x").hexdigest()
    fixtures = [
        {"path": "a", "purpose": "p", "sha256": digest.upper()},
        {"path": "gone-but-optional", "purpose": "p", "sha256": digest},
        {"path": "not-asked-for", "purpose": "p"},
        {"path": "../b", "purpose": "p", "required": True},
    ]
    read_file = read_suite(json.dumps(suite(fixtures=fixtures)).encode(), "s.json")
    asked: list[str] = []

    def digests(found: dict[str, str]) -> Any:
        def digest_of(path: str) -> str | None:
            asked.append(path)
            return found.get(path)

        return digest_of

    check_fixtures(read_file, digests({"a": digest, "../b": "f" * 64}))
    assert asked == ["a", "gone-but-optional", "../b"]
    with pytest.raises(InputError) as differs:
        check_fixtures(read_file, digests({"a": "0" * 64, "../b": "f" * 64}))
    assert differs.value.where == "s.json#/fixtures/0/sha256"
    with pytest.raises(InputError) as missing:
        check_fixtures(read_file, digests({"a": digest}))
    assert missing.value.where == "s.json#/fixtures/3/path"


@pytest.mark.parametrize(
    "data, expected",
    [
        (b'{"cases":[],"scoring":{}}', True),
        (b'{"cases":1,"scoring":2,"cases":3}', True),
        (b'\xef\xbb\xbf {"cases":1,"scoring":2}', True),
        (b'{"cases":[1,],"scoring":{}}', True),
        (b'{"cases":"\xff","scoring":{}}', True),
        (b'{"cases":[]}', False),
        (b'{"a":{"cases":1,"scoring":2}}', False),
        (b'["cases","scoring"]', False),
        (b'{"cases":', False),
        (b"\x7fELF\0\xff", False),
        (b"", False),
        (b'{"a":' * 100_000, False),
    ],
)
def test_a_file_in_a_folder_is_a_suite_when_it_means_to_be_one(data: bytes, expected: bool) -> None:
    assert looks_like_suite(data) is expected


@settings(deadline=None)
@given(st.binary(max_size=80))
def test_any_bytes_are_refused_in_one_line(data: bytes) -> None:
    looks_like_suite(data)
    refusal(data)


def test_a_document_in_an_output_is_judged_without_raising() -> None:
    assert suite_problem(suite()) is None
    assert suite_problem([]) == "/ a suite is a JSON object"
    assert (suite_problem(suite(id="X")) or "").startswith("/id ")


REPLACEMENTS = (
    st.none()
    | st.booleans()
    | st.sampled_from([0, 1, -1, 5, 1.0, 0.5, 1e300, "", " ", "x", "stdout", "suite", "live"])
    | st.sampled_from(["\x1c", "\x85", "\ufeff", "a\n", [], {}, ["x"], {"a": 1}])
)
FULL = suite(
    {"type": "exit_code", "value": 0},
    {"type": "stdout_contains", "value": "a", "required": False},
    {"type": "artifact_contains", "target": "f", "value": "a"},
    {"type": "json_path", "target": "stdout.a", "value": 1},
    {"type": "score_at_least", "target": "stdout.a", "threshold": 0.5},
    {"type": "schema_valid", "target": "stdout", "value": "run"},
    {"type": "stdout_contains_auto_detect", "value": {"command": "x", "pattern": "(a)"}},
    environment={"timeout_seconds": 3, "scrub_env_prefixes": ["A"]},
    fixtures=[{"path": "p", "purpose": "q", "sha256": "0" * 64}],
    evidence_kind="holdout",
    tags=["t"],
)


def places(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Paths of all members."""
    found: list[tuple[str | int, ...]] = []
    items: Any = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    for key, item in items:
        found += [(*path, key), *places(item, (*path, key))]
    return found


PLACES = places(FULL)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(PLACES), st.sampled_from(["set", "drop", "add"]), REPLACEMENTS),
        max_size=2,
    )
)
def test_the_schema_accepts_what_the_reader_accepts(
    mutations: list[tuple[tuple[str | int, ...], str, object]],
) -> None:
    document: Any = copy.deepcopy(FULL)
    for path, how, value in mutations:
        holder = document
        try:
            for part in path[:-1]:
                holder = holder[part]
            if how == "drop":
                del holder[path[-1]]
            elif how == "set":
                holder[path[-1]] = copy.deepcopy(value)
            else:
                holder["unknown"] = copy.deepcopy(value)
        except (KeyError, IndexError, TypeError):
            continue
    data = json.dumps(document).encode()
    try:
        read_suite(data, "s")
    except InputError:
        return
    VALIDATOR.validate(json.loads(data))


@pytest.mark.parametrize(
    "change",
    [
        {"id": "X"}, {"name": " "}, {"tier": "x"}, {"unknown": 1}, {"cases": []},
        {"environment": {"timeout_seconds": 0}}, {"schema_version": 2},
    ],
)  # fmt: skip
def test_the_schema_refuses_what_it_can_express(change: dict[str, Any]) -> None:
    assert not VALIDATOR.is_valid(suite(**change))


@pytest.mark.parametrize(
    "expectation",
    [
        {"type": "exit_code"}, {"type": "exit_code", "value": "0"},
        {"type": "stdout_contains", "value": ""}, {"type": "stdout_contains", "value": {}},
        {"type": "file_exists"}, {"type": "json_path", "target": " "},
        {"type": "schema_valid", "target": "suite"},
        {"type": "score_at_least", "target": "stdout", "value": "1"},
        {"type": "stdout_contains_auto_detect", "value": {"command": "x"}},
    ],
)  # fmt: skip
def test_the_schema_refuses_expectations_that_say_nothing(expectation: dict[str, Any]) -> None:
    assert not VALIDATOR.is_valid(suite(expectation))


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
