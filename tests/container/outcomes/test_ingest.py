"""`ao-eval outcomes ingest` and `ledger` through the command line: the holes I1 to I17, closed."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from runner.contracts.judge import problem
from tests.container.outcomes.commands import (
    INGEST,
    JUDGE_HASH,
    MARKER,
    Json,
    Outcomes,
    says_the_marker,
    score,
    stated,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.container.outcomes.conftest import MakeOutcomes

pytestmark = [pytest.mark.container, pytest.mark.timeout(600)]

HOLDOUT = INGEST / "score-holdout-pass.json"
DEV = INGEST / "score-dev-pass.json"
DEV_STATED = {"split": "dev", "run_id": "refunds-dev-12"}
BARE = dict.fromkeys(
    ("expect_judge_hash", "rubric", "suite", "split", "gt_version", "threshold", "run_id")
)
"""States nothing."""

# Name of the row: the score, what is stated otherwise than in it, exit code, what the line says.
REFUSALS: dict[str, tuple[object, dict[str, Any], int, str]] = {
    "i1 no exact split": (score(split="Holdout"), {}, 2, "/split"),
    "i1 no split at all": (score(split=None), {"split": None}, 6, "state --split"),
    "i1 contradicted": (score(split="dev"), {}, 6, "--split contradicts the score"),
    "i2 overridden": (
        json.dumps(score()).replace('"split"', '"SPLIT": "dev", "split"'),
        {},
        2,
        "not an acceptable score",
    ),
    "i3 another version": (score(), {"gt_version": "2026-03b"}, 6, "--gt-version contradicts"),
    "i3 a blank at its end": (score(ground_truth_version="2026-03 "), {}, 2, "_version"),
    "i9 a threshold of its own": (score(threshold=0.01), {}, 6, "--threshold contradicts"),
    "i9 below zero": (score(threshold=-5), {}, 2, "/threshold"),
    "i10 above one": (score(aggregate=7.3), {}, 2, "/aggregate"),
    "i10 nan": (json.dumps(score(aggregate=float("nan"))), {}, 2, "not an acceptable score"),
    "i11 no aggregate": (score(aggregate=None), {}, 2, "the score has no aggregate"),
    "i12 unset variable": (score(), {"expect_judge_hash": ""}, 2, "--expect-judge-hash"),
    "i12 no hash": (score(), {"expect_judge_hash": "x"}, 2, "--expect-judge-hash"),
    "i12 another judge": (score(), {"expect_judge_hash": "sha256:" + "0" * 64}, 6, "gate #2"),
    "i12 none carried": (score(judge_content_hash=None), {}, 6, "gate #2"),
    "i13 another task": (score(source_task_id="other"), {}, 6, "not of the rubric's task"),
    "i13 does not add up": (score(aggregate=0.95), {}, 6, "weighted mean"),
    "i14 an answer as id": (
        json.loads((INGEST / "score-holdout-leak.json").read_bytes()),
        {"run_id": "refunds-holdout-04", "rubric": None},
        6,
        "holdout value #0",
    ),
    "i14 an answer as run id": (
        score(run_id=MARKER),
        {"run_id": MARKER},
        6,
        "holdout value #0",
    ),
    "i14 an answer as bead": (score(), {"bead": MARKER}, 6, "holdout value #0"),
    "bead is no id": (score(), {"bead": "a b"}, 2, "--bead"),
    "empty bead": (score(), {"bead": ""}, 2, "--bead"),
    "empty suite": (score(), {"suite": ""}, 2, "--suite"),
    "empty ledger": (score(), {"burn_ledger": ""}, 2, "--burn-ledger"),
    "empty rubric": (score(), {"rubric": ""}, 2, "--rubric"),
    "empty manifest folder": (score(), {"manifest_out": ""}, 2, "--manifest-out"),
    "empty out": (score(), {"out": ""}, 2, "--out"),
    "i4 mistyped ledger": (score(), {"burn_ledger": "no-such.json"}, 6, "never an unlimited"),
    "i4 an older tool's": (
        score(),
        {"burn_ledger": INGEST / "ledger-of-the-older-tool.json"},
        6,
        "--adopt",
    ),
}  # fmt: skip
QUICK = {
    "i1 contradicted", "i2 overridden", "i11 no aggregate", "i12 unset variable",
    "i12 another judge", "i13 does not add up", "i14 an answer as id", "empty ledger",
    "i4 mistyped ledger",
}  # fmt: skip
"""What is not left to `make test-slow`; unit tests have all of it."""


class Table:
    """The refusals: each row run once, with a ledger that none of them may touch."""

    def __init__(self, outcomes: Outcomes, names: set[str]) -> None:
        self.ledger = outcomes.ledger()
        self.before = self.state()
        rows: dict[str, Sequence[object]] = {}
        for name in names:
            made, otherwise, *_ = REFUSALS[name]
            given = {
                "burn_ledger": self.ledger,
                "holdout_file": INGEST / "holdout.jsonl",
                "manifest_out": outcomes.folder / "runs",
                **otherwise,
            }
            rows[name] = ("ingest", outcomes.write(f"{name}.json", made), *stated(**given))
        self.done = outcomes.table(rows)
        self.manifests = list((outcomes.folder / "runs").glob("*"))
        assert outcomes.end() == []

    def state(self) -> dict[str, bytes]:
        """Bytes of the ledger and its head."""
        folder = self.ledger.parent
        return {path.name: path.read_bytes() for path in folder.glob(f"{self.ledger.name}*")}


@pytest.fixture(scope="module")
def quick(make_outcomes: MakeOutcomes, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """The quick rows."""
    return Table(make_outcomes(tmp_path_factory.mktemp("quick")), QUICK)


@pytest.fixture(scope="module")
def rest(make_outcomes: MakeOutcomes, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """The others."""
    return Table(make_outcomes(tmp_path_factory.mktemp("rest")), {*REFUSALS} - QUICK)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in REFUSALS],
)
def test_a_refusal_is_one_line_quotes_nothing_and_costs_nothing(
    request: pytest.FixtureRequest, name: str
) -> None:
    table: Table = request.getfixturevalue("quick" if name in QUICK else "rest")
    *_, code, told = REFUSALS[name]
    done = table.done[name]
    assert (done.code, told in done.refusal) == (code, True), done
    assert says_the_marker(done.stdout + done.stderr) == []
    assert "/ledger/" not in done.stderr, "a path of the container"
    assert table.state() == table.before
    assert table.manifests == []


def test_everything_stated_is_a_verdict_one_burn_and_two_documents(outcomes: Outcomes) -> None:
    ledger, runs = outcomes.ledger(budget=1), outcomes.folder / "runs"
    command = (
        "ingest", HOLDOUT, *stated(), "--burn-ledger", ledger, "--manifest-out", runs,
        "--holdout-file", INGEST / "holdout.jsonl", "--bead", "agentops-42", "--strict",
        "--out", outcomes.folder / "verdict.json",
    )  # fmt: skip
    first = outcomes.outcomes(*command)
    assert first.code == 0, first.stderr
    assert first.warnings == []
    assert problem("council-verdict.v4", first.document) is None
    head = first.document.pop("burn_ledger_head")
    assert first.document == {
        "verdict": "PASS",
        "confidence": "HIGH",
        "key_insight": "refund-answers meets its threshold.",
        "recommendation": "Accept the run.",
        "schema_version": 4,
        "satisfaction_score": score()["aggregate"],
        "satisfaction_breakdown": score()["criterion_scores"],
        "findings": [],
        "burn_ledger_head": head,
    }
    assert (outcomes.folder / "verdict.json").read_text(encoding="utf-8") == first.stdout

    written = json.loads(ledger.read_bytes())
    assert written["budget"] == 1
    (record,) = written["records"]
    assert record.pop("burned_at_ms") > 1_700_000_000_000
    assert record == {
        "suite_ref": "refunds", "gt_version": "2026-03", "run_id": "refunds-holdout-03"
    }  # fmt: skip
    assert json.loads((outcomes.folder / "ledger.json.head").read_bytes()) == head

    folder = runs / "refunds-holdout-03"
    manifest = json.loads((folder / "manifest.json").read_bytes())
    assert problem("run-manifest.v1", manifest) is None
    assert problem("eval-run.v1", json.loads((folder / "record.json").read_bytes())) is None
    assert (manifest["id"], manifest["status"]) == ("refunds-holdout-03", "complete")
    assert manifest["verdict"]["kind"] == "no_change"
    assert manifest["verdict"]["applicable_artifacts"] == []
    assert "agentops-42" in manifest["notes"]
    assert (manifest["ground_truth_ref"], manifest["ground_truth_hash"]) == (None, None)
    assert sorted(path.name for path in folder.iterdir()) == ["manifest.json", "record.json"]

    # I6: the same again, although the quota is spent.
    before = {path: path.read_bytes() for path in (*folder.iterdir(), ledger)}
    again = outcomes.outcomes(*command)
    assert (again.code, again.stdout) == (0, first.stdout), again.stderr
    assert {path: path.read_bytes() for path in before} == before

    # I15: and not under another run id; a verdict keeps what both files together could lose.
    replayed = outcomes.outcomes(
        "ingest", HOLDOUT, *stated(run_id=None), "--run-id", "other", "--burn-ledger", ledger
    )
    assert replayed.code == 6
    verdict = outcomes.folder / "verdict.json"
    kept = outcomes.outcomes("ledger", "verify", ledger, "--verdict", verdict)
    assert (kept.code, "1 burns, budget 1" in kept.stdout) == (0, True), kept.stderr
    other = outcomes.ledger("other.json")
    forged = outcomes.outcomes("ledger", "verify", other, "--verdict", verdict)
    assert (forged.code, "not in the ledger" in forged.refusal) == (6, True)


def test_a_spent_quota_refuses_by_number_and_names_the_file(outcomes: Outcomes) -> None:
    ledger = outcomes.ledger(budget=1)
    one, two = (outcomes.write(f"{n}.json", score(run_id=f"run-{n}")) for n in (1, 2))
    options = ("--burn-ledger", ledger)
    assert outcomes.outcomes("ingest", one, *stated(run_id="run-1"), *options).code == 0
    refused = outcomes.outcomes("ingest", two, *stated(run_id="run-2", rubric=None), *options)
    assert refused.code == 6
    assert f"{ledger}: gate #3: the holdout is spent, 1 of 1" in refused.refusal
    # What it would have warned of is said before the refusal.
    assert any("no rubric was given" in line for line in refused.warnings)
    assert outcomes.burns(ledger) == 1


def test_what_nobody_states_is_loud_and_strict_refuses_it(outcomes: Outcomes) -> None:
    done = outcomes.table(
        {
            "loud": ("ingest", HOLDOUT, *stated(**BARE)),
            "strict": ("ingest", HOLDOUT, *stated(**BARE), "--strict"),
            "no ledger": ("ingest", HOLDOUT, *stated(), "--strict"),
            "dev": ("ingest", DEV, *stated(**DEV_STATED), "--strict"),
        }
    )
    loud = done["loud"]
    assert (loud.code, loud.document["verdict"]) == (0, "PASS")
    told = "\n".join(loud.warnings)
    for part in ("gate #2 was NOT checked", "gate #3 was NOT checked", "no rubric"):
        assert part in told
    for option in ("split", "suite", "gt-version", "threshold", "run-id"):
        assert f"--{option} was not stated" in told
    assert done["strict"].code == 6
    assert done["no ledger"].code == 6
    assert "gate #3" in done["no ledger"].refusal
    assert (done["dev"].code, done["dev"].stderr) == (0, "")


@pytest.mark.slow
def test_i4_a_budget_that_is_no_ceiling_is_loud_and_strict_refuses_it(outcomes: Outcomes) -> None:
    ledger = outcomes.ledger(budget=0)
    command = ("ingest", HOLDOUT, *stated(), "--burn-ledger", ledger)
    refused = outcomes.outcomes(*command, "--strict")
    assert (refused.code, "no ceiling" in refused.refusal) == (6, True)
    loud = outcomes.outcomes(*command)
    assert loud.code == 0
    assert any("NOT enforced" in line for line in loud.warnings)


@pytest.mark.slow
def test_i14_values_too_short_to_be_certified_are_named_as_compile_names_them(
    outcomes: Outcomes,
) -> None:
    short = outcomes.write("short.jsonl", '{"target": "7"}\n')
    command = ("ingest", DEV, *stated(**DEV_STATED), "--holdout-file", short)
    done = outcomes.table({"loud": command, "strict": (*command, "--strict")})
    assert done["loud"].code == 0
    assert any("not scannable" in line for line in done["loud"].warnings)
    assert done["strict"].code == 6


@pytest.mark.slow
def test_a_dev_score_never_burns(outcomes: Outcomes) -> None:
    ledger = outcomes.ledger()
    done = outcomes.outcomes("ingest", DEV, *stated(**DEV_STATED), "--burn-ledger", ledger)
    assert done.code == 0
    assert "burn_ledger_head" not in done.document
    assert outcomes.burns(ledger) == 0


def test_i7_a_manifest_folder_that_cannot_be_used_costs_no_burn(outcomes: Outcomes) -> None:
    ledger, file = outcomes.ledger(), outcomes.write("file", "")
    elsewhere, runs = outcomes.folder / "elsewhere", outcomes.folder / "runs"
    elsewhere.mkdir()
    runs.mkdir()
    (runs / "refunds-holdout-03").symlink_to(elsewhere)
    taken = outcomes.folder / "taken" / "refunds-holdout-03"
    taken.mkdir(parents=True)
    (taken / "manifest.json").write_text('{"id": "another"}', encoding="utf-8")
    blocked = outcomes.folder / "blocked" / "refunds-holdout-03"
    (blocked / ".record.json.tmp" / "x").mkdir(parents=True)
    unbound = stated(rubric=None)
    command = ("ingest", HOLDOUT, *unbound, "--burn-ledger", ledger, "--manifest-out")
    done = outcomes.table(
        {name: (*command, outcomes.folder / name) for name in ("file", "runs", "taken", "blocked")}
    )
    assert {name: item.code for name, item in done.items()} == {
        "file": 3, "runs": 6, "taken": 6, "blocked": 3,
    }, done  # fmt: skip
    assert "symbolic link" in done["runs"].refusal
    assert "not overwritten" in done["taken"].refusal
    # What the container has warned of is said although the host is who refuses.
    assert all("no rubric was given" in item.warnings[0] for item in done.values())
    assert outcomes.burns(ledger) == 0
    assert file.read_bytes() == b""
    assert list(elsewhere.iterdir()) == []
    assert [path.name for path in taken.iterdir()] == ["manifest.json"]


@pytest.mark.slow
def test_i16_run_ids_that_clean_to_the_same_text_have_folders_of_their_own(
    outcomes: Outcomes,
) -> None:
    runs = outcomes.folder / "runs"
    rows: dict[str, Sequence[object]] = {}
    for name in ("a/b", "a b", "a:b"):
        path = outcomes.write(f"{len(rows)}.json", {**json.loads(DEV.read_bytes()), "run_id": name})
        options = stated(split="dev", run_id=name)
        rows[name] = ("ingest", path, *options, "--manifest-out", runs)
    done = outcomes.table(rows)
    assert [item.code for item in done.values()] == [0, 0, 0], done
    folders = sorted(path.name for path in runs.iterdir())
    assert folders == ["a%20b", "a%2Fb", "a%3Ab"]
    ids = {json.loads((runs / name / "manifest.json").read_bytes())["id"] for name in folders}
    assert len(ids) == 3


def test_i17_a_gate_that_was_asked_for_makes_the_exit_code(outcomes: Outcomes) -> None:
    def row(name: str, *options: str) -> tuple[object, ...]:
        number = {"pass": 12, "warn": 11, "fail": 10}[name]
        found = stated(split="dev", run_id=f"refunds-dev-{number}")
        return ("ingest", INGEST / f"score-dev-{name}.json", *found, *options)

    done = outcomes.table(
        {
            "fail": row("fail"),
            "fail, gate fail": row("fail", "--gate", "fail"),
            "warn, gate fail": row("warn", "--gate", "fail"),
            "warn, gate warn": row("warn", "--gate", "warn"),
            "pass, gate warn": row("pass", "--gate", "warn"),
        }
    )
    assert [(item.code, item.document["verdict"]) for item in done.values()] == [
        (0, "FAIL"), (1, "FAIL"), (0, "WARN"), (1, "WARN"), (0, "PASS"),
    ]  # fmt: skip


@pytest.mark.slow
def test_a_baseline_makes_the_kind(outcomes: Outcomes) -> None:
    runs = outcomes.folder / "runs"
    done = outcomes.outcomes(
        "ingest", "--score", DEV, *stated(**DEV_STATED), "--manifest-out", runs,
        "--baseline-score", INGEST / "score-dev-warn.json", "--strict",
    )  # fmt: skip
    assert done.code == 0, done.stderr
    manifest: Json = json.loads((runs / "refunds-dev-12" / "manifest.json").read_bytes())
    assert manifest["verdict"]["kind"] == "improved"
    assert manifest["ground_truth_ref"] == "2026-03"
    assert manifest["judge_content_hash"] == JUDGE_HASH


def damaged(outcomes: Outcomes) -> dict[str, Path]:
    """Ledgers of one burn, each broken in another way."""

    def change(name: str) -> Path:
        ledger = outcomes.ledger(f"{name}.json")
        done = outcomes.outcomes("ingest", HOLDOUT, *stated(), "--burn-ledger", ledger)
        assert done.code == 0, done.stderr
        return ledger

    cut = change("cut")
    value = json.loads(cut.read_bytes())
    cut.write_text(json.dumps({**value, "records": [], "chain": {**value["chain"], "links": []}}))
    raised = outcomes.write("raised.json", {**value, "budget": 99})
    outcomes.write("raised.json.head", (outcomes.folder / "cut.json.head").read_bytes())
    truncated = outcomes.write("truncated.json", json.dumps(value)[:-20])
    empty = outcomes.write("empty.json", "")
    linked = outcomes.folder / "linked.json"
    linked.symlink_to(raised)
    dangling = outcomes.folder / "dangling.json"
    dangling.symlink_to("nowhere.json")
    return {
        "cut": cut,
        "raised": raised,
        "truncated": truncated,
        "empty": empty,
        "linked": linked,
        "dangling": dangling,
    }


@pytest.mark.slow
def test_i4_i8_a_damaged_ledger_is_refused_and_left_as_it_is(outcomes: Outcomes) -> None:
    ledgers = damaged(outcomes)
    before = {path: path.lstat().st_mtime_ns for path in outcomes.folder.glob("*.json*")}
    another = outcomes.write("another.json", score(run_id="run-2"))
    before[another] = another.lstat().st_mtime_ns
    command = ("ingest", another, *stated(run_id="run-2"), "--burn-ledger")
    rows: dict[str, Sequence[object]] = {name: (*command, path) for name, path in ledgers.items()}
    rows |= {f"verify {name}": ("ledger", "verify", path) for name, path in ledgers.items()}
    done = outcomes.table(rows)
    assert {name: item.code for name, item in done.items()} == dict.fromkeys(rows, 6), done
    for name, path in ledgers.items():
        assert str(path) in done[name].refusal
    assert {path: path.lstat().st_mtime_ns for path in before} == before


def test_the_ledger_commands(outcomes: Outcomes) -> None:
    ledger = outcomes.ledger(budget=2)
    assert stat.S_IMODE(ledger.stat().st_mode) == 0o600
    older = outcomes.write("older.json", (INGEST / "ledger-of-the-older-tool.json").read_bytes())
    done = outcomes.table(
        {
            "again": ("ledger", "init", ledger, "--budget", 9),
            "no budget": ("ledger", "init", "new.json"),
            "no folder": ("ledger", "init", "nowhere/new.json", "--budget", 1),
            "show": ("ledger", "show", ledger),
            "verify": ("ledger", "verify", ledger),
            "older": ("ledger", "verify", older),
        }
    )
    codes = {"again": 6, "no budget": 2, "no folder": 6, "show": 0, "verify": 0, "older": 6}
    assert {name: item.code for name, item in done.items()} == codes, done
    assert "--adopt" in done["older"].refusal
    assert done["show"].document["budget"] == 2
    adopted = outcomes.outcomes("ledger", "init", older, "--adopt")
    assert (adopted.code, "1 burns, budget 2" in adopted.stdout) == (0, True), adopted.stderr


def invokers() -> list[Any]:
    """Who runs the command: an ordinary user, and root if that is who runs the tests."""
    if os.geteuid() != 0:
        return [pytest.param(None, id="us")]
    return [
        pytest.param(4711, id="another user"),
        pytest.param(None, id="root", marks=pytest.mark.slow),
    ]


@pytest.mark.parametrize("user", invokers())
def test_files_have_the_owner_and_the_mode_that_the_invoker_expects(
    make_outcomes: MakeOutcomes, user: int | None
) -> None:
    uid = os.geteuid() if user is None else user
    # pytest's own folders are closed to others.
    with tempfile.TemporaryDirectory(prefix="ao-eval-outcomes-user-") as top:
        Path(top).chmod(0o755)
        outcomes = make_outcomes(Path(top) / "work", Path(top) / "staging")
        for path in (outcomes.folder, outcomes.staging):
            os.chown(path, uid, -1)
        _ingest_as(outcomes, user, uid)
        assert outcomes.end() == []


def _ingest_as(outcomes: Outcomes, user: int | None, uid: int) -> None:
    command = (
        "outcomes", "ingest", HOLDOUT, *stated(), "--burn-ledger", "ledger.json",
        "--manifest-out", "runs",
    )  # fmt: skip
    started = outcomes.as_user(user, "outcomes", "ledger", "init", "ledger.json", "--budget", "3")
    assert started.code == 0, started.stderr
    ledger = outcomes.folder / "ledger.json"
    ledger.chmod(0o640)
    done = outcomes.as_user(user, *command)
    assert done.code == 0, done.stderr
    assert done.document["burn_ledger_head"]["count"] == 1
    expected = {
        "ledger.json": 0o640,
        "ledger.json.head": 0o600,
        "runs": 0o755,
        "runs/refunds-holdout-03": 0o755,
        "runs/refunds-holdout-03/manifest.json": 0o644,
        "runs/refunds-holdout-03/record.json": 0o644,
    }
    found = {name: (outcomes.folder / name).stat() for name in expected}
    assert {name: item.st_uid for name, item in found.items()} == dict.fromkeys(expected, uid)
    assert {name: stat.S_IMODE(item.st_mode) for name, item in found.items()} == expected
    assert sorted(path.name for path in outcomes.folder.iterdir() if path.is_file()) == [
        "ledger.json", "ledger.json.head",
    ]  # fmt: skip
