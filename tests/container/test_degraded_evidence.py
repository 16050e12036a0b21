"""Cases and legs that end in a way that decides nothing, and programs that never run."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.container.projects import (
    EXIT_0,
    GVISOR,
    NEEDS_HINT,
    WAITING,
    Json,
    Project,
    assert_no_claim,
    case,
    degraded_rows,
)

if TYPE_CHECKING:
    from runner.engine.docker_engine import DockerEngine

pytestmark = pytest.mark.container

EATER = "python3 -c 'print(len(b\"x\" * (200 << 20)))'"
FLOOD = "head -c 17000000 /dev/zero | tr '\\0' a"
INSUFFICIENT = "insufficient_decision_evidence"
UNAVAILABLE = "runtime_unavailable"


def _contains(text: str) -> Json:
    return {"type": "stdout_contains", "value": text}


def test_each_case_that_decides_nothing_says_why_and_leaves_the_others_alone(
    project: Project,
) -> None:
    cases = {
        "slow": (case("slow", "sleep 60", timeout_seconds=1), (INSUFFICIENT, "timeout")),
        "greedy": (case("greedy", EATER), (INSUFFICIENT, "oom")),
        "killed": (case("killed", "kill -SEGV $$"), (INSUFFICIENT, "crash")),
        "flood": (case("flood", FLOOD, EXIT_0, _contains("b")), (INSUFFICIENT, "output_truncated")),
        "flood-decided": (case("flood-decided", FLOOD, EXIT_0, _contains("aaa")), (None, None)),
        "review": (
            case("review", "true", EXIT_0, {"type": "manual_review"}),
            (INSUFFICIENT, "undecided"),
        ),
        "missing": (
            case("missing", inputs={"argv": ["no-such-program"]}),
            (UNAVAILABLE, "not_startable"),
        ),
        "bad-cwd": (
            case("bad-cwd", inputs={"shell": "true", "cwd": "no/such/folder"}),
            (UNAVAILABLE, "not_startable"),
        ),
        "nothing": (case("nothing"), (UNAVAILABLE, "not_startable")),
        "claude": (case("claude", "true", runtime="claude"), (UNAVAILABLE, "live_runtime")),
        "manual": (case("manual", "true", runtime="manual"), (UNAVAILABLE, "live_runtime")),
        "needs-hint": (case("needs-hint", NEEDS_HINT), (None, None)),
    }
    path = project.suite(*(item for item, _ in cases.values()))
    result = project.ao_eval("ab", path, "--memory", "128m")

    assert result.code == 0, result.stderr
    card = result.card
    found = {
        row["case_id"]: (row["degraded_reason"], row["degraded_detail"]) for row in card["per_case"]
    }
    if GVISOR and found["greedy"] == (INSUFFICIENT, "agent_died"):
        # Its container has ended, perhaps by a process whose end is not put down to memory.
        found["greedy"] = (INSUFFICIENT, "oom")
    assert found == {name: reason for name, (_, reason) in cases.items()}
    deltas = {row["case_id"]: row["score_delta"] for row in card["per_case"]}
    valid = {"flood-decided": 0.0, "needs-hint": 1.0}
    assert deltas == {name: valid.get(name) for name in cases}
    assert card["pairing"]["valid_pairs"] == 2
    assert card["aggregate_delta"] == 0.5
    for leg in ("context_off", "context_on"):
        for item in result.record(leg)["case_results"]:
            assert (item["score"] is None) == (item["case_id"] not in valid)
            assert item["status"] not in {"pass", "fail"} or item["case_id"] in valid
        statuses = {item["case_id"]: item["status"] for item in result.record(leg)["case_results"]}
        assert statuses["claude"] == statuses["manual"] == "skipped"
    flood = result.case("flood")["stdout"]
    assert flood["size"] == 17_000_000
    assert flood["kept"] == 16 << 20


def test_a_loss_on_one_side_only_opens_the_bounds_and_a_gate_uses_the_lower_one(
    project: Project,
) -> None:
    path = project.suite(
        case("lost-on", 'test "$AO_CONTEXT_VARIANT" = context_off || kill -SEGV $$'),
        case("needs-hint", NEEDS_HINT),
    )
    result = project.ao_eval("ab", path, "--require-delta", "0.4")
    assert result.code == 1, result.stderr
    assert result.card["aggregate_delta"] == 1.0
    pairing = result.card["pairing"]
    assert (pairing["delta_lower_bound"], pairing["delta_upper_bound"]) == (0.0, 1.0)
    assert result.card["per_case"][0]["degraded_detail"] == "crash"


def test_the_time_of_a_leg_is_bounded_and_what_was_not_reached_is_not_scored(
    project: Project,
) -> None:
    path = project.suite(case("first", "true"), case("endless", "sleep 300", timeout_seconds=300))
    result = project.ao_eval("ab", path, "--timeout", "3")
    assert result.code == 4, result.stderr
    assert_no_claim(result, ["first", "endless"])
    assert degraded_rows(result.card) == {(INSUFFICIENT, "leg_timeout")}


def test_a_suite_of_another_tier_is_skipped_whole(project: Project) -> None:
    result = project.ao_eval("ab", project.suite(case("one", NEEDS_HINT), tier="headless"))
    assert result.code == 4, result.stderr
    assert_no_claim(result, ["one"])
    assert degraded_rows(result.card) == {(UNAVAILABLE, "tier_not_deterministic")}
    assert result.card["context_on"]["status"] == "skipped"


@pytest.mark.parametrize(
    "blow, reason",
    [("kill", (INSUFFICIENT, "agent_died")), ("remove", (UNAVAILABLE, "engine_lost"))],
)
def test_a_container_that_dies_under_its_leg_takes_the_leg_or_its_only_case_with_it(
    project: Project, blow: str, reason: tuple[str, str]
) -> None:
    path = project.suite(case("before", "true"), case("waits", WAITING), case("after", "true"))

    def strike(containers: list[str]) -> None:
        for container in containers:
            getattr(project.engine, blow)(container)

    running = project.start("ab", path)
    strike(running.waiting(2))
    result = running.finish()
    if GVISOR and blow == "kill":
        # There a case can end its container, which it has to itself: nothing tells that from this.
        assert result.code == 0, result.stderr
        rows = {row["case_id"]: row for row in result.record()["case_results"]}
        assert [rows[name]["status"] for name in ("before", "after")] == ["pass"] * 2
        waits = rows["waits"]
        assert (waits["degraded_reason"], waits["degraded_detail"]) == reason
        assert result.record()["verdict"] == "inconclusive"
        return
    assert result.code == 4, result.stderr
    assert_no_claim(result, ["before", "waits", "after"])
    assert degraded_rows(result.card) == {reason}
    assert result.record()["verdict"] == "inconclusive"


@pytest.fixture
def image_without_python(engine: DockerEngine, tmp_path: Path) -> Iterator[str]:
    """An image in which the agent cannot be started."""
    with tarfile.open(tmp_path / "empty.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("etc/nothing"), io.BytesIO())
    reference = "ao-eval-test/empty:1"
    engine.import_rootfs(str(tmp_path / "empty.tar"), reference, labels={})
    yield reference
    engine._client.remove_image(reference)


def test_an_image_in_which_the_agent_cannot_start_degrades_the_legs(
    project: Project, image_without_python: str
) -> None:
    path = project.suite(case("one", NEEDS_HINT))
    result = project.ao_eval("ab", path, "--image", image_without_python)
    assert result.code == 4, result.stderr
    assert_no_claim(result, ["one"])
    assert degraded_rows(result.card) == {(UNAVAILABLE, "start_failed")}
    assert result.card["context_on"]["status"] == "error"
