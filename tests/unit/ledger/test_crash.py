"""A process killed between any two steps of a burn: nothing is lost, nothing counts twice."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from runner.errors import HoldoutRefusal
from runner.ledger.jsonfile import STEPS, burn, init, verify
from tests.unit.ledger.burns import NOW, asked, in_child, killed_at, killer, ledger

COUNTS_FROM = STEPS.index("ledger_renamed")
COMPLETE_FROM = STEPS.index("head_renamed")
REPAIR = tuple(
    f"repair_head_{name}" for name in ("temporary", "written", "synced", "renamed", "durable")
)
INIT_STEPS = (
    "locked",
    *(name.removeprefix("repair_") for name in REPAIR),
    *(name.replace("repair_head", "ledger") for name in REPAIR),
)


def burn_killed_at(step: str, path: Path, run_id: str) -> int:
    return in_child(lambda: void(burn(path, asked(run_id), now_ms=NOW, step=killer(step))))


def init_killed_at(step: str, path: Path, *, adopt: bool) -> int:
    return in_child(lambda: void(init(path, budget=3, adopt=adopt, step=killer(step))))


def void(_: object) -> None:
    """Make a call a statement."""


def assert_one_burn(path: Path, run_id: str, total: int) -> None:
    """Repeating ends in one burn, whatever happened before."""
    first = burn(path, asked(run_id), now_ms=NOW + 1)
    again = burn(path, asked(run_id), now_ms=NOW + 2)
    assert first.head == again.head
    records = json.loads(path.read_bytes())["records"]
    assert [record["run_id"] for record in records].count(run_id) == 1
    account = verify(path, seen=[first.head])
    assert (account.head.count, account.interrupted) == (total, False)
    assert sorted(item.name for item in path.parent.iterdir()) == ["burn.json", "burn.json.head"]


@pytest.mark.parametrize("step", STEPS)
def test_killed_after_a_step_of_a_burn(tmp_path: Path, step: str) -> None:
    path = ledger(tmp_path, 2, "run-1")
    assert killed_at(step, path, "run-2") == -signal.SIGKILL
    account = verify(path)
    position = STEPS.index(step)
    # The verdict is shown after the last step only, so fewer than all that were shown never count.
    assert account.head.count == (2 if position >= COUNTS_FROM else 1)
    assert account.interrupted == (COUNTS_FROM <= position < COMPLETE_FROM)
    assert_one_burn(path, "run-2", 2)
    with pytest.raises(HoldoutRefusal, match="2 of 2"):
        burn(path, asked("run-3"), now_ms=NOW)


@pytest.mark.parametrize("step", STEPS[COUNTS_FROM:COMPLETE_FROM])
def test_another_run_after_a_kill_finds_the_quota_used(tmp_path: Path, step: str) -> None:
    path = ledger(tmp_path, 2, "run-1")
    assert burn_killed_at(step, path, "run-2") == -signal.SIGKILL
    with pytest.raises(HoldoutRefusal, match="2 of 2"):
        burn(path, asked("run-3"), now_ms=NOW)
    assert not verify(path).interrupted


@pytest.mark.parametrize("step", REPAIR)
def test_killed_again_while_the_head_is_repaired(tmp_path: Path, step: str) -> None:
    path = ledger(tmp_path, 3, "run-1")
    assert burn_killed_at("ledger_renamed", path, "run-2") == -signal.SIGKILL
    assert burn_killed_at(step, path, "run-3") == -signal.SIGKILL
    assert verify(path).head.count == 2
    assert_one_burn(path, "run-3", 3)
    assert_one_burn(path, "run-2", 3)


def test_a_removed_record_is_seen_even_after_a_repair(tmp_path: Path) -> None:
    path = ledger(tmp_path, 3, "run-1")
    burn_killed_at("ledger_renamed", path, "run-2")
    burn(path, asked("run-2"), now_ms=NOW)
    document = json.loads(path.read_bytes())
    document["records"].pop()
    document["chain"]["links"].pop()
    path.write_text(json.dumps(document))
    with pytest.raises(HoldoutRefusal, match=r"1 burn\(s\) were removed"):
        verify(path)


@pytest.mark.parametrize("step", INIT_STEPS)
def test_killed_while_a_ledger_is_started(tmp_path: Path, step: str) -> None:
    path = tmp_path / "burn.json"
    assert init_killed_at(step, path, adopt=False) == -signal.SIGKILL
    if INIT_STEPS.index(step) < INIT_STEPS.index("ledger_renamed"):
        with pytest.raises(HoldoutRefusal, match="no burn ledger"):
            burn(path, asked("run-1"), now_ms=NOW)
        init(path, budget=3)
    assert_one_burn(path, "run-1", 1)


@pytest.mark.parametrize("step", INIT_STEPS)
def test_killed_while_a_ledger_is_adopted(tmp_path: Path, step: str) -> None:
    path = tmp_path / "burn.json"
    old = {"budget": 3, "records": [{"suite_ref": "s", "gt_version": "gt-1", "run_id": "old"}]}
    path.write_text(json.dumps(old))
    assert init_killed_at(step, path, adopt=True) == -signal.SIGKILL
    if INIT_STEPS.index(step) < INIT_STEPS.index("ledger_renamed"):
        assert json.loads(path.read_bytes()) == old
        init(path, budget=None, adopt=True)
    assert_one_burn(path, "run-1", 2)
