"""Many processes at once: the ceiling holds to the last burn."""

from __future__ import annotations

import json
import multiprocessing
from multiprocessing.synchronize import Barrier
from pathlib import Path

from runner.errors import HoldoutRefusal
from runner.ledger.jsonfile import burn, verify
from runner.model.burn import BurnHead
from tests.unit.ledger.burns import NOW, REFUSED, asked, ledger

PROCESSES = 50
BUDGET = 10

FORK = multiprocessing.get_context("fork")


def one_burn(path: Path, run_id: str, told: Path, start: Barrier) -> None:
    start.wait()
    try:
        made = burn(path, asked(run_id), now_ms=NOW)
    except HoldoutRefusal as refusal:
        raise SystemExit(refusal.exit_code) from None
    told.write_text(made.head.model_dump_json())


def race(path: Path, run_ids: list[str]) -> tuple[list[int | None], list[BurnHead]]:
    start = FORK.Barrier(len(run_ids))
    told = [path.parent / f"told-{index}" for index in range(len(run_ids))]
    processes = [
        FORK.Process(target=one_burn, args=(path, run_id, file, start))
        for run_id, file in zip(run_ids, told, strict=True)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    heads = [BurnHead.model_validate_json(file.read_bytes()) for file in told if file.exists()]
    return [process.exitcode for process in processes], heads


def test_i5_fifty_processes_and_a_budget_of_ten(tmp_path: Path) -> None:
    path = ledger(tmp_path, BUDGET)
    codes, heads = race(path, [f"run-{index}" for index in range(PROCESSES)])
    assert codes.count(0) == BUDGET
    assert codes.count(REFUSED) == PROCESSES - BUDGET
    assert sorted(head.count for head in heads) == list(range(1, BUDGET + 1))
    account = verify(path, seen=heads)
    assert (account.head.count, account.interrupted) == (BUDGET, False)
    records = json.loads(path.read_bytes())["records"]
    assert len({record["run_id"] for record in records}) == len(records) == BUDGET


def test_i5_fifty_processes_with_one_run_burn_once(tmp_path: Path) -> None:
    path = ledger(tmp_path, BUDGET)
    codes, heads = race(path, ["run-1"] * PROCESSES)
    assert codes == [0] * PROCESSES
    assert len({head.sha256 for head in heads}) == 1
    assert verify(path).head.count == 1


def test_readers_never_mistake_a_writer_for_a_thief(tmp_path: Path) -> None:
    path = ledger(tmp_path, 0)
    writer = FORK.Process(target=many_burns, args=(path, 60))
    writer.start()
    looks = 0
    while writer.is_alive():
        verify(path)
        looks += 1
    writer.join()
    assert writer.exitcode == 0
    assert looks > 5
    assert verify(path).head.count == 60


def many_burns(path: Path, count: int) -> None:
    for index in range(count):
        burn(path, asked(f"run-{index}"), now_ms=NOW)
