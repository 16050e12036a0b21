"""SIGKILL between every two steps of an ingest, and fifty ingests at once."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import pytest

from runner.ledger import jsonfile
from tests.container.outcomes.commands import (
    HERE,
    INGEST,
    Done,
    Outcomes,
    finish,
    score,
    stated,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.container.outcomes.conftest import MakeOutcomes

pytestmark = [pytest.mark.container, pytest.mark.timeout(600)]

POINTS = (
    "locked",
    "ledger_lent",
    "before_container",
    "container_created",
    "container_started",
    "container_ended",
    "container_removed",
    "after_container",
    "before_manifest",
    "manifest_prepared",
    "verified",
    "admitted",
    "ledger_temporary",
    "ledger_written",
    "ledger_synced",
    "ledger_renamed",
    "ledger_durable",
    "head_temporary",
    "head_written",
    "head_synced",
    "head_renamed",
    "head_durable",
    "burned",
    "record_named",
    "manifest_named",
    "manifest_committed",
    "unlocked",
    "before_shown",
    "shown",
)
"""In their order; from `ledger_renamed` on the burn counts."""

QUICK = {"container_started", "manifest_prepared", "ledger_renamed", "head_durable", "shown"}
"""What is not left to `make test-slow`; a unit test kills at every step of the ledger."""
RUN_ID = "refunds-holdout-03"


class After(NamedTuple):
    """What was found after a kill, and after the same command again."""

    killed: Done
    burns: int
    again: Done
    records: list[object]
    ledger_files: list[str]
    run_files: list[str]
    reaped: Done
    left: list[str]


def kill_at(outcomes: Outcomes, point: str) -> After:
    """Kill an ingest at a point, look, repeat it, reap."""
    folder = outcomes.folder / point
    folder.mkdir()
    ledger = outcomes.ledger(f"{point}/ledger.json", budget=1)
    command = (
        "outcomes", "ingest", INGEST / "score-holdout-pass.json", *stated(),
        "--burn-ledger", ledger, "--manifest-out", folder / "runs",
    )  # fmt: skip
    staging = {"AO_EVAL_STAGING_DIR": str(outcomes.staging / point)}
    killed = outcomes.run(*command, program=(str(HERE / "killed.py"), point), **staging)
    burns = jsonfile.verify(ledger).head.count
    again = outcomes.run(*command, **staging)
    records = json.loads(ledger.read_bytes())["records"]
    reaped = outcomes.run("reap", **staging)
    homes = (outcomes.staging / point).glob("*")
    boxes = [item for item in outcomes.engine.owned_containers() if f"/{point}/" in str(item)]
    return After(
        killed,
        burns,
        again,
        records,
        sorted(path.name for path in folder.iterdir() if path.is_file()),
        sorted(path.name for path in (folder / "runs" / RUN_ID).iterdir()),
        reaped,
        [*map(str, homes), *map(str, boxes)],
    )


def kill_at_each(outcomes: Outcomes, points: Iterable[str]) -> dict[str, After]:
    """Kill at several points, a few at a time."""
    return outcomes.together({point: partial(kill_at, outcomes, point) for point in points})


@pytest.fixture(scope="module")
def quick(
    make_outcomes: MakeOutcomes, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, After]:
    """The points that are not left to `make test-slow`."""
    return kill_at_each(make_outcomes(tmp_path_factory.mktemp("quick")), sorted(QUICK))


@pytest.fixture(scope="module")
def rest(make_outcomes: MakeOutcomes, tmp_path_factory: pytest.TempPathFactory) -> dict[str, After]:
    """The others."""
    points = [point for point in POINTS if point not in QUICK]
    return kill_at_each(make_outcomes(tmp_path_factory.mktemp("rest")), points)


@pytest.mark.parametrize(
    "point",
    [pytest.param(point, marks=() if point in QUICK else pytest.mark.slow) for point in POINTS],
)
def test_killed_anywhere_the_quota_is_kept_and_the_same_again_ends_in_one_burn_and_one_verdict(
    request: pytest.FixtureRequest, point: str
) -> None:
    found: After = request.getfixturevalue("quick" if point in QUICK else "rest")[point]
    assert found.killed.code == -9, f"{point} was never reached: {found.killed}"
    counts = POINTS.index(point) >= POINTS.index("ledger_renamed")
    assert found.burns == int(counts)
    assert (found.killed.stdout != "") == (point == "shown")

    assert found.again.code == 0, found.again.stderr
    assert found.again.document["verdict"] == "PASS"
    assert found.again.document["burn_ledger_head"]["count"] == 1
    if point == "shown":
        assert found.again.stdout == found.killed.stdout
    assert len(found.records) == 1
    assert found.ledger_files == ["ledger.json", "ledger.json.head"]
    assert found.run_files == ["manifest.json", "record.json"]

    assert found.reaped.code == 0, found.reaped.stderr
    assert found.left == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_i5_fifty_ingests_at_once_and_a_budget_of_ten(
    outcomes: Outcomes, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger, runs = outcomes.ledger(budget=10), outcomes.folder / "runs"
    processes = []
    for number in range(50):
        run_id = f"run-{number}"
        path = outcomes.write(f"{run_id}.json", score(run_id=run_id))
        options = (*stated(run_id=run_id), "--burn-ledger", ledger, "--manifest-out", runs)
        processes.append(outcomes.start("outcomes", "ingest", path, *options))
    done = [finish(process, patience=1500) for process in processes]

    passed = [item for item in done if item.code == 0]
    refused = [item for item in done if item.code == 6]
    with capsys.disabled():
        print(f"\n50 ingests, budget 10: {len(passed)} verdicts, {len(refused)} refusals")
    assert (len(passed), len(refused)) == (10, 40), {item.code for item in done}
    assert all("gate #3: the holdout is spent, 10 of 10" in item.refusal for item in refused)
    heads = [item.document["burn_ledger_head"] for item in passed]
    assert sorted(head["count"] for head in heads) == list(range(1, 11))
    records = json.loads(ledger.read_bytes())["records"]
    assert len(records) == len({record["run_id"] for record in records}) == 10
    # Every verdict lies on the chain, and every manifest is of a run that burned.
    verdicts = [
        outcomes.write(f"verdict-{number}.json", item.stdout) for number, item in enumerate(passed)
    ]
    heads_of = [text for path in verdicts for text in ("--verdict", str(path))]
    verified = outcomes.outcomes("ledger", "verify", ledger, *heads_of)
    assert (verified.code, "10 burns, budget 10" in verified.stdout) == (0, True), verified.stderr
    assert {path.name for path in runs.iterdir()} == {record["run_id"] for record in records}
    assert outcomes.leftovers() == []
