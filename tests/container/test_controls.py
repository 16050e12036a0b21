"""Controls in real containers: what is believed, and what is not."""

from __future__ import annotations

import pytest

from tests.container.projects import (
    GVISOR,
    HELPFUL,
    NEEDS_HINT,
    Json,
    Project,
    Result,
    case,
)
from tests.container.test_known_numbers import SIDES, wave0

pytestmark = pytest.mark.container

STANDARD = ("--controls", "standard", "--json")
COIN = (
    'cat "$AO_AGENTS_DIR"/learnings/* >/dev/null; [ $(($(od -An -N1 -tu1 /dev/urandom) % 2)) = 0 ]'
)
EXISTS = 'test -f "$AO_AGENTS_DIR"/learnings/hint.md'


def row(card: Json, case_id: str) -> Json:
    """The row of a case."""
    found: Json = next(item for item in card["per_case"] if item["case_id"] == case_id)
    return found


def why(card: Json, case_id: str) -> tuple[str | None, str | None]:
    """Reason and detail for which a pair is degraded."""
    found = row(card, case_id)
    return found["degraded_reason"], found["degraded_detail"]


def cause(card: Json, case_id: str) -> Json:
    """What decided a case."""
    found: Json = next(item for item in card["attribution"]["cases"] if item["case_id"] == case_id)
    return found


def test_the_public_wave0_suite_follows_the_name_of_its_leg(project: Project) -> None:
    path = wave0(project)
    result = project.ao_eval("ab", path, *STANDARD)
    assert result.code == 0, result.stderr
    card = result.document
    first, second = card["per_case"]
    assert first["degraded_reason"] == "insufficient_decision_evidence"
    assert first["degraded_detail"] == "follows_variant_label"
    assert (second["degraded_reason"], second["score_delta"]) == (None, 0)
    assert card["aggregate_delta"] == 0
    assert (card["pairing"]["valid_pairs"], card["pairing"]["degraded_pairs"]) == (1, 1)
    assert card["resolution"]["improved"] == 0

    bare = project.ao_eval("ab", path, "--controls", "none", "--json").document
    assert bare["aggregate_delta"] == 0.4667
    assert [bare[side]["aggregate_score"] for side in SIDES] == [0.5333, 1.0]


def test_a_case_that_reads_the_context_wins_and_its_reading_is_named(project: Project) -> None:
    path = project.suite(case("reads", NEEDS_HINT), case("same", "true"))
    result = project.ao_eval("ab", path, *STANDARD)
    assert result.code == 0, result.stderr
    card = result.document
    assert card["aggregate_delta"] == 0.5
    assert row(card, "reads")["artifact_attribution"] == ["learnings/hint.md"]
    assert row(card, "same")["artifact_attribution"] == ["none"]
    (control,) = card["controls"]["cases"]
    assert (control["runs_off"], control["runs_on"], control["label_swapped"]) == (10, 10, True)
    assert card["controls"]["replicates"] == 2
    assert card["controls"]["extra_replicates"] == 8


def test_a_case_that_only_asks_whether_a_file_exists_is_valid_by_ablation(project: Project) -> None:
    path = project.suite(case("asks", EXISTS))
    card = project.ao_eval("ab", path, *STANDARD).document
    assert card["aggregate_delta"] == 1
    found = cause(card, "asks")
    assert row(card, "asks")["artifact_attribution"] == ["learnings/hint.md"]
    if GVISOR:
        # Its kernel opens what is only looked at, and the scorecard says whose trace it was.
        assert (found["method"], found["opened_on"]) == ("trace", ["learnings/hint.md"])
        assert "gVisor" in " ".join(card["warnings"])
        card = project.ao_eval("ab", path, *STANDARD, "--attribute", "ablate").document
        found = cause(card, "asks")
    assert (found["method"], found["pattern"]) == ("ablation", "single")
    assert found["necessary"] == found["sufficient"] == ["learnings/hint.md"]


def test_a_static_case_that_looks_into_the_root_is_explained_by_what_it_looks_at(
    project: Project,
) -> None:
    look: Json = {"type": "file_exists", "target": "/context/agents/learnings/hint.md"}
    path = project.suite(case("static", None, look, kind="static"))
    card = project.ao_eval("ab", path, *STANDARD).document
    assert card["aggregate_delta"] == 1
    assert cause(card, "static")["method"] == "checked_file"
    assert row(card, "static")["artifact_attribution"] == ["learnings/hint.md"]


def test_two_artifacts_needed_together_and_two_of_which_either_suffices(project: Project) -> None:
    folder = '"$AO_AGENTS_DIR"/learnings'
    on = {"learnings/a.md": "A\n", "learnings/b.md": "B\n", "learnings/c.md": "C\n"}
    path = project.suite(
        case("both", f"grep -q A {folder}/a.md && grep -q B {folder}/b.md"),
        case("either", f"grep -qs A {folder}/a.md || grep -qs B {folder}/b.md"),
        case("changed", f"grep -q new {folder}/changed.md"),
        case("removed", f"! test -e {folder}/removed.md"),
        off={"learnings/changed.md": "old\n", "learnings/removed.md": "x\n"},
        on={**on, "learnings/changed.md": "new\n"},
    )
    result = project.ao_eval("ab", path, *STANDARD, "--attribute", "ablate")
    assert result.code == 0, result.stderr
    card = result.document
    pair = ["learnings/a.md", "learnings/b.md"]
    both, either = cause(card, "both"), cause(card, "either")
    assert (both["pattern"], both["necessary"], both["sufficient"]) == ("joint", pair, [])
    assert (either["pattern"], either["necessary"], either["sufficient"]) == ("either", [], pair)
    for name in ("changed", "removed"):
        assert cause(card, name)["necessary"] == [f"learnings/{name}.md"]
    changes = {unit["path"]: unit["change"] for unit in card["attribution"]["units"]}
    assert changes["learnings/changed.md"] == "changed"
    assert changes["learnings/removed.md"] == "removed"
    assert card["attribution"]["ablation_legs"] == 2 + 2 * 5
    assert "ablation: 5 units, at most 12 more legs" in result.stderr


def test_what_follows_the_name_of_a_staged_folder_is_no_win(project: Project) -> None:
    # The mount table shows under which random name the root lies on the host.
    bits = "grep ' /context/agents ' /proc/self/mountinfo | cut -d' ' -f4 | md5sum | cut -c{place}"
    cases = [
        case(f"bit-{place}", f"case $({bits.format(place=place)}) in [0-7]) true;; *) false;; esac")
        for place in range(1, 25)
    ]
    card = project.ao_eval("ab", project.suite(*cases), *STANDARD).document
    details = {item["degraded_detail"] for item in card["per_case"]}
    assert details <= {None, "context_not_read", "nondeterministic"}
    # gVisor's mount table does not show it: nothing differs there.
    assert ("context_not_read" in details) is not GVISOR
    assert card["resolution"]["improved"] == card["resolution"]["regressed"] == 0


def test_a_coin_that_falls_the_same_way_in_both_first_legs_is_not_a_tie(project: Project) -> None:
    cases = [case(f"coin-{number}", COIN) for number in range(12)]
    card = project.ao_eval("ab", project.suite(*cases), *STANDARD).document
    assert card["resolution"]["improved"] == card["resolution"]["regressed"] == 0
    assert {why(card, item["case_id"]) for item in card["per_case"]} & {
        ("insufficient_decision_evidence", "nondeterministic")
    }


def test_the_null_check_of_a_case_that_compares_the_name_of_the_leg_wins_nothing(
    project: Project,
) -> None:
    path = project.suite(case("name", '[ "$AO_CONTEXT_VARIANT" = context_on ]'), off=HELPFUL)
    result = project.ao_eval("ab", path, "--aa", *STANDARD)
    assert why(result.document, "name")[1] == "follows_variant_label"
    assert result.document["aggregate_delta"] is None
    assert result.code == 4


def test_a_control_that_times_out_leaves_the_change_unshown(project: Project) -> None:
    # It ends in time only where the root has its own label.
    slow = (
        f"{NEEDS_HINT}; code=$?; "
        'case "$AO_CONTEXT_VARIANT$code" in context_on0|context_off1) exit $code;; esac; sleep 60'
    )
    path = project.suite(case("slow", slow, timeout_seconds=1))
    card = project.ao_eval("ab", path, *STANDARD).document
    assert why(card, "slow") == ("insufficient_decision_evidence", "control_incomplete")


def test_every_leg_of_a_control_leaves_its_record(project: Project) -> None:
    path = project.suite(case("asks", EXISTS))
    result: Result = project.ao_eval("ab", path, *STANDARD, "--attribute", "ablate")
    names = {path.parent.name for path in result.evidence.glob("legs/*/record.json")}
    replicates = {f"{side}_r{number}" for side in SIDES for number in range(2, 11)}
    swapped = {f"{side}_swapped" for side in SIDES}
    units = len(result.card["attribution"]["units"])
    ablated = {f"ablation_{number}" for number in range(1, 3 + 2 * units)}
    assert names == {*SIDES, *replicates, *swapped, *ablated}
    assert result.card["controls"]["legs"] == len(names)
    swap = result.record("context_off_swapped")
    assert (swap["variant"], swap["role"]["root"]) == ("context_on", "context_off")
    assert swap["context_root_sha256"] == result.record("context_off")["context_root_sha256"]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_two_hundred_coins_win_and_lose_nothing_in_twenty_runs(project: Project) -> None:
    path = project.suite(*(case(f"coin-{number}", COIN) for number in range(200)))
    for _ in range(20):
        result = project.ao_eval("ab", path, *STANDARD)
        assert result.code == 0, result.stderr[-2000:]
        card = result.document
        assert card["resolution"]["improved"] == card["resolution"]["regressed"] == 0
        details = [item["degraded_detail"] for item in card["per_case"]]
        assert details.count("nondeterministic") > 120
