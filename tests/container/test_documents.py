"""What a run writes and prints: documents that validate, copies, run ids, nothing overwritten."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import rfc8785

from tests.container.conftest import Bundled
from tests.container.projects import EXIT_0, HELPFUL, NEEDS_HINT, Project, case

pytestmark = pytest.mark.container


def _documents(folder: Path) -> list[Path]:
    """Documents that were written here; `suite.json` is whatever a user wrote."""
    return sorted(
        path
        for path in folder.rglob("*.json")
        if "cases" not in path.parts and path.name != "suite.json"
    )


def test_every_document_of_the_evidence_validates_and_is_canonical(bundled: Bundled) -> None:
    files = [path for folder in bundled.result.directories for path in _documents(folder)]
    assert len(files) >= 3 * 10
    result = bundled.project.ao_eval("validate", *files)
    assert result.code == 0, result.stderr
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert len(lines) == len(files)
    kinds = {line.rpartition(": valid ")[2] for line in lines}
    assert kinds == {
        "context-scorecard.v1",
        "eval-run.v1",
        "live-state.v1",
        "sandbox.v1",
        "hooks.v1",
        "context-roots.v1",
        "context-reads.v1",
        "dsse-envelope.v1",
    }
    for file in files:
        data = file.read_bytes()
        assert data.rstrip(b"\n") == rfc8785.dumps(json.loads(data)), file


def test_the_evidence_directory_has_what_the_readme_says(bundled: Bundled) -> None:
    for folder in bundled.result.directories:
        names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
        assert names >= {
            "scorecard.json",
            "report.html",
            "junit.xml",
            "summary.md",
            "legs/context_off/record.json",
            "legs/context_on/record.json",
            "evidence/live-state.json",
            "evidence/sandbox.json",
            "evidence/hooks.json",
            "evidence/context-roots.json",
            "evidence/context-reads.json",
            "attestation.dsse.json",
            "test-result.dsse.json",
            "suite.json",
        }
        assert [name for name in names if name.startswith("legs/context_on/cases/")]


def test_json_is_one_document_and_the_same_as_the_files(bundled: Bundled) -> None:
    assert set(bundled.result.document) == {"holm", "runs"}
    adjusted = {row["suite_id"]: row for row in bundled.result.document["holm"]}
    assert set(adjusted) == {"carrier-upgrade-notes", "incident-learnings"}
    assert all(row["adjusted"] >= row["p"] for row in adjusted.values())
    assert len(bundled.result.stdout.splitlines()) == 1
    cards = bundled.result.document["runs"]
    for card in cards:
        stored = bundled.directory(card["suite_id"]) / "scorecard.json"
        assert json.loads(stored.read_bytes()) == card
    assert len(cards) == 3


def test_a_tampered_document_does_not_validate(bundled: Bundled, tmp_path: Path) -> None:
    source = bundled.directory("house-style-notes") / "scorecard.json"
    card = json.loads(source.read_bytes())
    card["aggregate_delta"] = 2
    (tmp_path / "tampered.json").write_text(json.dumps(card), encoding="utf-8")
    (tmp_path / "cut.json").write_bytes(source.read_bytes()[:-30])
    shutil.copy(source, tmp_path / "good.json")
    names = ("tampered.json", "cut.json", "good.json")
    result = bundled.project.ao_eval("validate", *(tmp_path / name for name in names))
    assert result.code == 2
    assert len(result.stdout.splitlines()) == 1  # the good one, whatever came before it
    first, second = result.stderr.splitlines()
    assert "tampered.json#/aggregate_delta" in first
    assert "cut.json" in second


def test_the_same_inputs_give_the_same_bytes_and_a_second_run_overwrites_nothing(
    project: Project,
) -> None:
    path = project.suite(case("needs-hint", NEEDS_HINT))
    arguments = ("ab", path, "--run-id", "mine", "--json")
    # Beside the repository: in it they would be part of the next run's workspace.
    copies = ("--out", project.home / "record.json", "--delta-out", project.home / "delta.json")
    fixed = {"SOURCE_DATE_EPOCH": "1700000000"}
    first = project.ao_eval(*arguments, *copies, **fixed)
    assert first.code == 0, first.stderr
    before = {file: file.read_bytes() for file in first.evidence.rglob("*") if file.is_file()}
    second = project.ao_eval(*arguments, **fixed)

    assert first.evidence.name.endswith("-mine")
    assert second.code in {0, 2}  # 2: within one second the name is taken, and stays as it is
    assert {file: file.read_bytes() for file in first.evidence.rglob("*") if file.is_file()} == (
        before
    )
    if second.code == 0:
        assert second.evidence != first.evidence
        assert second.stdout == first.stdout
        scorecard = (second.evidence / "scorecard.json").read_bytes()
        assert scorecard == before[first.evidence / "scorecard.json"]
    assert first.document["generated_at"] == "2023-11-14T22:13:20Z"
    assert first.document["run_id"] == "mine"

    scorecard = before[first.evidence / "scorecard.json"]
    assert (project.home / "delta.json").read_bytes() == scorecard
    for side in ("off", "on"):
        stored = before[first.evidence / "legs" / f"context_{side}" / "record.json"]
        assert (project.home / f"record-context-{side}.json").read_bytes() == stored
        assert json.loads(stored)["run_id"] == f"mine-context-{side}"


def test_equal_roots_are_refused_and_the_null_check_gives_zero(project: Project) -> None:
    path = project.suite(case("needs-hint", NEEDS_HINT), case("fails", "false"), off=HELPFUL)
    refused = project.ao_eval("ab", path)
    assert (refused.code, refused.stdout, refused.directories) == (2, "", ())
    assert "--aa" in refused.stderr

    project.suite(case("needs-hint", NEEDS_HINT), case("fails", "false"))
    result = project.ao_eval("ab", path, "--aa", "--json")
    assert result.code == 0, result.stderr
    card = result.document
    assert card["controls"]["null_check"] is True
    assert card["aggregate_delta"] == 0
    assert [row["score_delta"] for row in card["per_case"]] == [0, 0]
    assert card["context_off"]["context_root_sha256"] == card["context_on"]["context_root_sha256"]


@pytest.mark.parametrize("place", [".agents/runs", ".agents", "live/inner"])
def test_evidence_is_never_written_into_live_state(project: Project, place: str) -> None:
    live = project.repo / place.split("/", maxsplit=1)[0]
    live.mkdir()
    path = project.suite(case("one", "true"))
    more = ("--live-agents-dir", "live") if place.startswith("live") else ()
    result = project.ao_eval("ab", path, "--out-dir", place, *more)
    assert (result.code, result.stdout) == (2, "")
    assert "--out-dir" in result.stderr
    assert list(live.iterdir()) == []


def test_a_harmful_context_is_valid_evidence_and_a_gate_says_no(project: Project) -> None:
    fails_with_hint = f"! {NEEDS_HINT}"
    path = project.suite(case("harmed", fails_with_hint, EXIT_0))
    result = project.ao_eval("ab", path)
    assert result.code == 0, result.stderr
    assert result.card["aggregate_delta"] == -1
    assert result.card["per_case"][0]["degraded_reason"] is None
    assert "context did harm" in result.stdout
    assert project.ao_eval("ab", path, "--require-delta", "0").code == 1
    assert project.ao_eval("ab", path, "--require-pass").code == 1


def test_a_suite_with_the_longest_id_has_a_directory_of_its_own(project: Project) -> None:
    name = "n" * 200
    path = project.suite(case("c" * 200, NEEDS_HINT))
    text = path.read_text(encoding="utf-8").replace('"demo"', f'"{name}"')
    path.write_text(text, encoding="utf-8")
    result = project.ao_eval("ab", path)
    assert result.code == 0, result.stderr
    assert result.card["suite_id"] == name
