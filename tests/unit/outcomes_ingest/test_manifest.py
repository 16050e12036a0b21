"""Run manifest and run record: what the verdict compiler reads, and nothing of a holdout."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.contracts.judge import problem
from runner.core.canon import canonical, document
from runner.core.outcomes.gates import Resolved, Stated, read_rubric, resolve
from runner.core.outcomes.manifest import (
    Comparison,
    clean_run_id,
    compare,
    graded_record,
    is_repeat,
    manifest_name,
    run_manifest,
    timestamp,
)
from runner.core.outcomes.score import read_score
from runner.errors import HoldoutRefusal, InputError
from runner.model.verdict import Kind, RunManifest
from tests.unit.outcomes_ingest.scores import (
    FIXTURES,
    OTHER_HASH,
    RUBRIC,
    STATED,
    accepted,
    score,
)

NOW = 1_760_000_000_123
NO_BASELINE = Comparison(Kind.NO_CHANGE, None, None)
RAW_IDS = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=40)


def dev() -> Resolved:
    return resolve(STATED._replace(split="dev"), score(split="dev"), rubric=RUBRIC)


def manifest(resolved: Resolved | None = None, **changed: Any) -> RunManifest:
    given_ = {"bead": "ao-12", "now_ms": NOW, "comparison": NO_BASELINE, **changed}
    return run_manifest(resolved or accepted(), given_.pop("comparison"), **given_)


def test_the_manifest_has_what_the_verdict_compiler_reads() -> None:
    shown = document(manifest())
    assert shown["status"] == "complete"
    assert shown["id"] == "run-1"
    assert shown["verdict"] == {
        "kind": "no_change",
        "delta_point": None,
        "utility": 0.85,
        "applicable_artifacts": [],
        "notes": "council verdict PASS; bead ao-12",
    }
    assert "bead ao-12" in shown["notes"]
    assert shown["started_at_unix_ms"] == NOW
    assert shown["finished_at"] == "2025-10-09T08:53:20.123Z"


def test_of_a_holdout_the_ground_truth_is_not_named() -> None:
    shown = document(manifest())
    assert (shown["ground_truth_ref"], shown["ground_truth_hash"]) == (None, None)
    assert "gt-1" not in json.dumps(shown)
    assert document(manifest(dev()))["ground_truth_ref"] == "gt-1"


@pytest.mark.parametrize("aggregate", [0.0, 1.0])
def test_v4_the_utility_is_in_the_unit_interval_and_an_explicit_zero_stays(
    aggregate: float,
) -> None:
    found = resolve(Stated(), score(aggregate=aggregate))
    assert document(manifest(found))["verdict"]["utility"] == aggregate
    assert {kind.value for kind in Kind} == {"improved", "regressed", "no_change"}


def test_v2_a_grade_names_no_artifact() -> None:
    assert manifest().verdict.applicable_artifacts == ()


@pytest.mark.parametrize("bead", ["", "a b", "a\nb", "-x", "\u00e4", "b" * 129, "a;b", "$(x)"])
def test_v1_a_bead_is_an_id(bead: str) -> None:
    with pytest.raises(InputError, match="--bead"):
        manifest(bead=bead)


def test_a_manifest_needs_a_run_id() -> None:
    nameless = resolve(Stated(), score("run_id", "source_task_id"))
    with pytest.raises(InputError, match="state --run-id"):
        manifest(nameless)
    with pytest.raises(InputError, match="state --run-id"):
        graded_record(nameless, now_ms=NOW)


# --- improved and regressed


@pytest.mark.parametrize(
    "aggregate, baseline, kind",
    [
        (0.85, 0.8, Kind.IMPROVED),
        (0.85, 0.8000001, Kind.NO_CHANGE),
        (0.8, 0.85, Kind.REGRESSED),
        (0.8, 0.8499999, Kind.NO_CHANGE),
        (0.3, 0.25, Kind.IMPROVED),
        (0.85, 0.85, Kind.NO_CHANGE),
        (1, 0, Kind.IMPROVED),
        (0, 1, Kind.REGRESSED),
    ],
)
def test_a_change_counts_from_a_twentieth_on(aggregate: float, baseline: float, kind: Kind) -> None:
    found = resolve(Stated(), score(aggregate=aggregate))
    told = compare(found, score(aggregate=baseline, run_id="a/b"))
    assert told.kind is kind
    assert told.delta == pytest.approx(aggregate - baseline, abs=1e-12)
    assert told.baseline_run_id == clean_run_id("a/b")


def test_without_a_baseline_nothing_changed() -> None:
    assert compare(accepted(), None) == NO_BASELINE


@pytest.mark.parametrize(
    "changed",
    [
        {"source_task_id": "other"},
        {"judge_content_hash": OTHER_HASH},
        {"split": "dev"},
        {"suite_ref": "other"},
        {"ground_truth_version": "gt-0"},
    ],
)
def test_what_cannot_be_compared_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(HoldoutRefusal, match="baseline"):
        compare(accepted(), score(**changed))


@pytest.mark.parametrize("field", ["source_task_id", "judge_content_hash"])
def test_a_baseline_that_does_not_say_what_it_is_is_refused(field: str) -> None:
    with pytest.raises(HoldoutRefusal, match="unknown"):
        compare(accepted(), score(field))
    with pytest.raises(HoldoutRefusal, match="unknown"):
        compare(resolve(Stated(), score(field)), score(field))


def test_a_baseline_is_bound_to_the_rubric_as_well() -> None:
    compare(accepted(), score(), RUBRIC)
    with pytest.raises(HoldoutRefusal, match="weighted mean"):
        compare(accepted(), score(aggregate=0.1), RUBRIC)


def test_the_bundled_scores_of_the_dev_split_make_an_improvement() -> None:
    rubric = read_rubric((FIXTURES / "rubric.json").read_bytes(), "rubric.json")
    scores = {
        name: read_score((FIXTURES / f"score-dev-{name}.json").read_bytes(), name)
        for name in ("pass", "warn", "fail")
    }
    found = {name: resolve(Stated(), item, rubric=rubric) for name, item in scores.items()}
    verdicts = {
        name: manifest(item).notes.split(";")[0].split()[-1] for name, item in found.items()
    }
    assert verdicts == {"pass": "PASS", "warn": "WARN", "fail": "FAIL"}
    assert compare(found["pass"], scores["warn"], rubric).kind is Kind.IMPROVED
    assert compare(found["fail"], scores["warn"], rubric).kind is Kind.REGRESSED


# --- the eval-run record


@pytest.mark.parametrize(
    "aggregate, status, verdict",
    [(0.85, "pass", "pass"), (0.6, "inconclusive", "inconclusive"), (0.1, "fail", "fail")],
)
def test_the_record_is_an_eval_run(aggregate: float, status: str, verdict: str) -> None:
    found = resolve(Stated(), score(aggregate=aggregate))
    shown = document(graded_record(found, now_ms=NOW))
    assert problem("eval-run.v1", json.loads(canonical(shown))) is None
    assert (shown["status"], shown["verdict"]) == (status, verdict)
    assert shown["suite"]["path"] == "out-of-process"
    assert shown["suite"]["visibility"] == "private_holdout"
    assert (shown["runtime"], shown["environment"], shown["git"]["commit"]) == (None, None, None)
    assert [case["case_id"] for case in shown["case_results"]] == ["refund-answers"]


def test_scores_named_as_dimensions_are_dimension_scores() -> None:
    table = {"safety": 0.5, "efficiency": 1 / 3, "context_comprehension": 1, "rule": 0.1}
    found = resolve(Stated(), score(criterion_scores=table))
    assert graded_record(found, now_ms=NOW).dimension_scores == {
        "efficiency": 0.3333,
        "safety": 0.5,
    }
    assert graded_record(accepted(), now_ms=NOW).dimension_scores == {"correctness": 0.85}


def test_a_dev_grade_is_public() -> None:
    assert graded_record(dev(), now_ms=NOW).suite.visibility == "public_canary"


# --- I16: names


def test_i16_run_ids_that_clean_to_the_same_text_do_not_collide() -> None:
    assert manifest_name("a/b") == "a%2Fb"
    assert manifest_name("a b") == "a%20b"
    assert clean_run_id("a/b") != clean_run_id("a b")
    assert manifest(accepted(run_id="run-1")).id == "run-1"


def test_i7_a_run_id_with_a_colon_is_a_name_before_anything_is_burned() -> None:
    assert manifest_name("a:b") == "a%3Ab"
    assert clean_run_id("a:b") == "a:b"


@settings(deadline=None)
@given(RAW_IDS, RAW_IDS)
def test_i16_different_run_ids_have_different_names(one: str, other: str) -> None:
    assert (manifest_name(one) == manifest_name(other)) == (one == other)
    assert (clean_run_id(one) == clean_run_id(other)) == (one == other)


@settings(deadline=None)
@given(RAW_IDS)
def test_i16_a_name_is_one_plain_path_component(raw: str) -> None:
    name = manifest_name(raw)
    assert "/" not in name
    assert name[0] not in ".-~"
    assert name.isascii()
    assert len(name) <= 200


@pytest.mark.parametrize("raw", [".", "..", "../x", "/etc", "-rf", "~", ".hidden", "%2E"])
def test_i16_no_name_leads_elsewhere(raw: str) -> None:
    name = manifest_name(raw)
    assert name not in {".", ".."}
    assert name[0] not in ".-~"
    assert "/" not in name


def test_a_name_that_is_too_long_is_a_usage_error() -> None:
    with pytest.raises(InputError, match="too long"):
        manifest_name("/" * 100)


# --- never another run's manifest


def test_i6_the_manifest_of_the_same_grade_is_kept() -> None:
    assert is_repeat(canonical(document(manifest(now_ms=NOW - 999))), manifest())


@pytest.mark.parametrize(
    "existing",
    [
        b"",
        b"{}",
        b"not json",
        canonical(document(manifest(accepted()._replace(run_id="run-2")))),
        canonical(document(manifest(accepted()._replace(threshold=0.7)))),
        canonical(document(manifest(accepted()._replace(aggregate=0.84)))),
        canonical(document(manifest(bead="ao-13"))),
        canonical(document(manifest(comparison=Comparison(Kind.IMPROVED, 0.2, "r0")))),
    ],
)
def test_i16_the_manifest_of_another_run_or_grade_is_not_overwritten(existing: bytes) -> None:
    with pytest.raises(HoldoutRefusal, match="not overwritten"):
        is_repeat(existing, manifest())


@settings(deadline=None)
@given(st.integers(1, 253_402_300_799_999))
def test_times_keep_every_millisecond(moment: int) -> None:
    told = timestamp(moment)
    assert told.endswith(f".{moment % 1000:03d}Z")
    assert len(told) == 24
