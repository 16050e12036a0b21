"""The burn ledger counts every use, and refuses whatever it cannot vouch for."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.errors import HoldoutRefusal, InputError
from runner.ledger.jsonfile import STEPS, burn, init, show, verify
from runner.model.burn import BurnHead
from tests.unit.host.worlds import as_nobody, open_folder
from tests.unit.ledger.burns import NOW, asked, contents, ledger, sha


def edit(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    document = json.loads(path.read_bytes())
    change(document)
    path.write_text(json.dumps(document))


def test_a_burn_is_written_in_the_documented_shape_and_its_head_beside_it(tmp_path: Path) -> None:
    path = ledger(tmp_path)
    made = burn(path, asked("run-1"), now_ms=NOW)
    document = json.loads(path.read_bytes())
    assert document["budget"] == 3
    assert document["records"] == [
        {"suite_ref": "s", "gt_version": "gt-1", "run_id": "run-1", "burned_at_ms": NOW}
    ]
    assert set(document) == {"budget", "records", "chain"}
    assert json.loads((tmp_path / "burn.json.head").read_bytes()) == made.head.model_dump()
    assert made.head.count == 1
    assert (made.spent, made.budget, made.repeated, made.warnings) == (1, 3, False, ())


def test_every_step_is_named(tmp_path: Path) -> None:
    steps: list[str] = []
    burn(ledger(tmp_path), asked("run-1"), now_ms=NOW, step=steps.append)
    assert tuple(steps) == STEPS
    assert len(steps) >= 8


def test_the_quota_is_per_suite_and_ground_truth_version(tmp_path: Path) -> None:
    path = ledger(tmp_path, 1, "run-1")
    burn(path, asked("run-2", gt="gt-2"), now_ms=NOW)
    burn(path, asked("run-3", suite="t"), now_ms=NOW)
    before = contents(path)
    with pytest.raises(HoldoutRefusal, match="1 of 1 burns"):
        burn(path, asked("run-4"), now_ms=NOW)
    assert contents(path) == before
    assert [item.burns for item in show(path).spent] == [1, 1, 1]


def test_i3_letter_case_gives_no_fresh_quota(tmp_path: Path) -> None:
    path = ledger(tmp_path, 1, "run-1")
    with pytest.raises(HoldoutRefusal, match="spent"):
        burn(path, asked("run-2", gt="GT-1"), now_ms=NOW)
    with pytest.raises(HoldoutRefusal, match="spent"):
        burn(path, asked("run-3", suite="S"), now_ms=NOW)


def test_i6_the_same_run_and_score_again_is_the_same_burn(tmp_path: Path) -> None:
    path = ledger(tmp_path, 2)
    first = burn(path, asked("run-1"), now_ms=NOW)
    burn(path, asked("run-2"), now_ms=NOW)
    before = contents(path)
    again = burn(path, asked("run-1"), now_ms=NOW + 1)
    assert again.repeated
    assert again.head == first.head
    assert contents(path) == before


@pytest.mark.parametrize(
    "other",
    [
        asked("run-1", "another score"),
        asked("run-1", gt="gt-2"),
        asked("run-1", suite="t"),
        asked("run-1").model_copy(update={"grade_sha256": sha("another threshold")}),
    ],
)
def test_i6_the_same_run_for_something_else_is_refused(tmp_path: Path, other: Any) -> None:
    path = ledger(tmp_path, 9, "run-1")
    before = contents(path)
    with pytest.raises(HoldoutRefusal, match="this run id was burned"):
        burn(path, other, now_ms=NOW)
    assert contents(path) == before


def test_i15_a_score_is_not_replayed_under_a_new_run_id(tmp_path: Path) -> None:
    path = ledger(tmp_path, 9, "run-1")
    with pytest.raises(HoldoutRefusal, match="under another run id"):
        burn(path, asked("run-2", "run-1"), now_ms=NOW)
    assert json.loads(path.read_bytes())["records"][0]["burned_at_ms"] == NOW


@pytest.mark.parametrize("budget", [0, -1])
def test_i4_no_ceiling_is_loud_and_refused_when_one_is_required(
    tmp_path: Path, budget: int
) -> None:
    path = ledger(tmp_path, budget)
    made = burn(path, asked("run-1"), now_ms=NOW)
    assert "NOT enforced" in made.warnings[0]
    assert "NOT enforced" in verify(path).warnings[0]
    with pytest.raises(HoldoutRefusal, match="no ceiling"):
        burn(path, asked("run-2"), now_ms=NOW, ceiling_required=True)
    assert verify(path).head.count == 1


def _drop_last(document: dict[str, Any]) -> None:
    document["records"].pop()
    document["chain"]["links"].pop()


DAMAGE: dict[str, bytes | Callable[[dict[str, Any]], object]] = {
    "empty": b"",
    "blank": b" \n",
    "truncated": b'{"budget": 3, "records": [',
    "not JSON": b"budget: 3",
    "a list": b"[]",
    "null": b"null",
    "no budget": b"{}",
    "budget in other case": b'{"Budget": 0, "records": []}',
    "budget twice": b'{"budget": 1, "budget": 9, "records": []}',
    "budget twice in other case": b'{"budget": 1, "BUDGET": 9, "records": []}',
    "without a chain": lambda document: document.pop("chain"),
    "budget raised": lambda document: document.update(budget=9),
    "budget no ceiling": lambda document: document.update(budget=0),
    "budget a text": lambda document: document.update(budget="3"),
    "budget a float": lambda document: document.update(budget=3.0),
    "budget true": lambda document: document.update(budget=True),
    "budget null": lambda document: document.update(budget=None),
    "budget missing": lambda document: document.pop("budget"),
    "unknown member": lambda document: document.update(extra=1),
    "last record removed": _drop_last,
    "first record removed": lambda document: (
        document["records"].pop(0), document["chain"]["links"].pop(0),
    ),
    "all records removed": lambda document: (
        document["records"].clear(), document["chain"]["links"].clear(),
    ),
    "record without its link": lambda document: document["records"].pop(),
    "link without its record": lambda document: document["chain"]["links"].pop(),
    "records swapped": lambda document: document["records"].reverse(),
    "suite changed": lambda document: document["records"][0].update(suite_ref="t"),
    "version changed": lambda document: document["records"][1].update(gt_version="gt-2"),
    "run id changed": lambda document: document["records"][0].update(run_id="x"),
    "time changed": lambda document: document["records"][0].update(burned_at_ms=1),
    "time removed": lambda document: document["records"][0].pop("burned_at_ms"),
    "score changed": lambda document: document["chain"]["links"][0].update(score_sha256=sha("x")),
    "grade changed": lambda document: document["chain"]["links"][0].update(grade_sha256=sha("x")),
    "hash changed": lambda document: document["chain"]["links"][1].update(sha256=sha("x")),
    "another identity": lambda document: document["chain"].update(id="0" * 32),
    "future format": lambda document: document["chain"].update(format="ao-eval-burn-chain.v2"),
    "record with an unknown field": lambda document: document["records"][0].update(note="x"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
def test_i8_a_damaged_ledger_is_refused_and_left_as_it_is(tmp_path: Path, name: str) -> None:
    path = ledger(tmp_path, 3, "run-1", "run-2")
    damage = DAMAGE[name]
    if isinstance(damage, bytes):
        path.write_bytes(damage)
    else:
        edit(path, damage)
    before = contents(path)
    for attempt in (
        lambda: burn(path, asked("run-3"), now_ms=NOW),
        lambda: burn(path, asked("run-1"), now_ms=NOW),
        lambda: verify(path),
        lambda: show(path),
        lambda: init(path, budget=3),
    ):
        with pytest.raises(HoldoutRefusal) as refusal:
            attempt()
        assert refusal.value.exit_code == 6
        assert "burn.json" in refusal.value.line()
    assert contents(path) == before


@pytest.mark.parametrize(
    "head",
    [b"", b"{}", b"[]", b'{"count": 1}', b'{"count": 9, "sha256": "' + b"0" * 64 + b'"}', None],
)
def test_i8_a_damaged_or_missing_head_is_refused(tmp_path: Path, head: bytes | None) -> None:
    path = ledger(tmp_path, 3, "run-1", "run-2")
    if head is None:
        (tmp_path / "burn.json.head").unlink()
    else:
        (tmp_path / "burn.json.head").write_bytes(head)
    before = contents(path)
    for attempt in (lambda: burn(path, asked("run-3"), now_ms=NOW), lambda: verify(path)):
        with pytest.raises(HoldoutRefusal):
            attempt()
    assert contents(path) == before


def test_a_head_two_burns_behind_is_no_interrupted_burn(tmp_path: Path) -> None:
    path = ledger(tmp_path, 9)
    old = (tmp_path / "burn.json.head").read_bytes()
    for run_id in ("run-1", "run-2"):
        burn(path, asked(run_id), now_ms=NOW)
    (tmp_path / "burn.json.head").write_bytes(old)
    with pytest.raises(HoldoutRefusal, match="does not fit its head"):
        verify(path)


def test_i8_the_head_of_a_verdict_shows_that_ledger_and_head_were_both_put_back(
    tmp_path: Path,
) -> None:
    path = ledger(tmp_path, 9, "run-1")
    old = contents(path)
    seen = burn(path, asked("run-2"), now_ms=NOW).head
    assert verify(path, seen=[seen]).head == seen
    for name, data in old.items():
        (tmp_path / name).write_bytes(data)
    assert verify(path).head.count == 1
    with pytest.raises(HoldoutRefusal, match="at burn 2"):
        verify(path, seen=[seen])
    burn(path, asked("run-9"), now_ms=NOW)
    with pytest.raises(HoldoutRefusal, match="at burn 2"):
        verify(path, seen=[BurnHead(count=0, sha256=sha("x")), seen][1:])


def test_i4_a_missing_ledger_is_refused_and_nothing_is_made(tmp_path: Path) -> None:
    for path in (tmp_path / "mistyped.json", tmp_path / "no" / "folder.json"):
        for attempt in (lambda p=path: burn(p, asked("r"), now_ms=NOW), lambda p=path: verify(p)):
            with pytest.raises(HoldoutRefusal, match="ledger init"):
                attempt()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["", ".", "/", "x/..", "a\0b"])
def test_i4_a_path_that_names_no_file_is_a_usage_error(path: str) -> None:
    with pytest.raises(InputError):
        burn(Path(path), asked("r"), now_ms=NOW)


def test_i8_symlinks_are_refused_and_not_replaced(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    path = ledger(real, 3, "run-1")
    for suffix in ("", ".head"):
        (tmp_path / f"burn.json{suffix}").symlink_to(f"{path}{suffix}")
    before = contents(path)
    with pytest.raises(HoldoutRefusal, match="symbolic link"):
        burn(tmp_path / "burn.json", asked("run-2"), now_ms=NOW)
    (tmp_path / "dangling.json").symlink_to(tmp_path / "nothing")
    with pytest.raises(HoldoutRefusal, match="symbolic link"):
        burn(tmp_path / "dangling.json", asked("run-2"), now_ms=NOW)
    with pytest.raises(HoldoutRefusal, match="symbolic link"):
        init(tmp_path / "dangling.json", budget=3)
    assert contents(path) == before
    assert (tmp_path / "burn.json").is_symlink()


def test_a_symlinked_head_is_refused(tmp_path: Path) -> None:
    path = ledger(tmp_path, 3, "run-1")
    head = tmp_path / "burn.json.head"
    head.rename(tmp_path / "moved")
    head.symlink_to(tmp_path / "moved")
    before = path.read_bytes()
    with pytest.raises(HoldoutRefusal, match="symbolic link"):
        burn(path, asked("run-2"), now_ms=NOW)
    assert path.read_bytes() == before
    assert head.is_symlink()


def test_a_symlink_in_place_of_the_temporary_is_not_followed(tmp_path: Path) -> None:
    path = ledger(tmp_path, 3, "run-1")
    (tmp_path / "victim").write_text("precious")
    (tmp_path / ".burn.json.tmp").symlink_to(tmp_path / "victim")
    burn(path, asked("run-2"), now_ms=NOW)
    assert (tmp_path / "victim").read_text() == "precious"
    assert not path.is_symlink()


def test_a_burn_leaves_nothing_but_the_ledger_and_its_head(tmp_path: Path) -> None:
    ledger(tmp_path, 3, "run-1")
    assert sorted(contents(tmp_path / "burn.json")) == ["burn.json", "burn.json.head"]


def test_a_folder_reached_through_a_link_is_the_same_ledger(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    path = ledger(tmp_path / "real", 1, "run-1")
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(HoldoutRefusal, match="spent"):
        burn(tmp_path / "link" / path.name, asked("run-2"), now_ms=NOW)


def test_what_is_no_plain_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    for name in ("fifo", "folder"):
        with pytest.raises(HoldoutRefusal, match="regular file"):
            burn(tmp_path / name, asked("r"), now_ms=NOW)


def test_a_second_name_of_the_ledger_is_refused(tmp_path: Path) -> None:
    path = ledger(tmp_path, 3, "run-1")
    os.link(path, tmp_path / "other.json")
    with pytest.raises(HoldoutRefusal, match="second name"):
        burn(path, asked("run-2"), now_ms=NOW)


def test_a_ledger_is_private_at_first_and_keeps_mode_and_owner(tmp_path: Path) -> None:
    old_umask = os.umask(0)
    try:
        path = ledger(tmp_path, 3, "run-1")
        names = ("burn.json", "burn.json.head")
        assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in names] == [0o600] * 2
        path.chmod(0o664)
        (tmp_path / "burn.json.head").chmod(0o640)
        if os.geteuid() == 0:
            os.chown(path, 1234, 2345)
        burn(path, asked("run-2"), now_ms=NOW)
    finally:
        os.umask(old_umask)
    info = path.stat()
    assert stat.S_IMODE(info.st_mode) == 0o664
    assert stat.S_IMODE((tmp_path / "burn.json.head").stat().st_mode) == 0o640
    if os.geteuid() == 0:
        assert (info.st_uid, info.st_gid) == (1234, 2345)


def refusal_of_a_burn(path: Path) -> str:
    try:
        burn(path, asked("run-2"), now_ms=NOW)
    except HoldoutRefusal as refusal:
        return refusal.line()
    return "burned"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a file of another user")
def test_a_burn_by_somebody_else_is_refused_rather_than_change_the_owner() -> None:
    with open_folder() as folder:
        path = ledger(folder, 3, "run-1")
        folder.chmod(0o777)
        for item in folder.iterdir():
            item.chmod(0o666)
        before = contents(path)
        told = as_nobody(lambda: refusal_of_a_burn(path))
        assert "owner or group could not be kept" in told
        assert contents(path) == before


def test_an_unreadable_ledger_is_refused() -> None:
    with open_folder() as folder:
        path = ledger(folder, 3, "run-1")
        path.chmod(0)
        assert "cannot be read" in as_nobody(lambda: refusal_of_a_burn(path))
        path.chmod(0o600)
        assert verify(path).head.count == 1


def test_a_folder_that_cannot_be_written_is_refused() -> None:
    with open_folder() as folder:
        path = ledger(folder, 3, "run-1")
        for item in folder.iterdir():
            item.chmod(0o444)
        folder.chmod(0o555)
        assert "cannot be written" in as_nobody(lambda: refusal_of_a_burn(path))
        assert verify(path).head.count == 1


def test_a_ledger_that_is_too_long_is_refused_unread_and_never_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = ledger(tmp_path, 3, "run-1")
    monkeypatch.setattr("runner.ledger.durable.MAX_BYTES", path.stat().st_size + 100)
    before = contents(path)
    with pytest.raises(HoldoutRefusal, match="would have more than"):
        burn(path, asked("run-2"), now_ms=NOW)
    assert contents(path) == before
    monkeypatch.setattr("runner.ledger.durable.MAX_BYTES", path.stat().st_size - 1)
    with pytest.raises(HoldoutRefusal, match="it has more than"):
        verify(path)


def test_a_held_lock_is_waited_for_and_then_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = ledger(tmp_path, 3)
    monkeypatch.setattr("runner.ledger.jsonfile.PATIENCE_SECONDS", 0.05)

    def second(name: str) -> None:
        if name == "verified":
            with pytest.raises(HoldoutRefusal, match="another process has held the lock"):
                burn(path, asked("run-2"), now_ms=NOW)

    burn(path, asked("run-1"), now_ms=NOW, step=second)
    assert verify(path).head.count == 1


def test_a_write_that_fails_is_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    path = ledger(tmp_path, 3, "run-1")
    before = contents(path)

    def full(name: str) -> None:
        if name == "ledger_temporary":
            raise OSError(28, "No space left on device")

    with pytest.raises(HoldoutRefusal, match="No space left"):
        burn(path, asked("run-2"), now_ms=NOW, step=full)
    assert contents(path) == before


def test_a_head_that_cannot_be_written_leaves_a_burn_that_counts(tmp_path: Path) -> None:
    path = ledger(tmp_path, 2, "run-1")

    def full(name: str) -> None:
        if name == "head_temporary":
            raise OSError(28, "No space left on device")

    with pytest.raises(HoldoutRefusal, match="No space left"):
        burn(path, asked("run-2"), now_ms=NOW, step=full)
    assert verify(path).interrupted
    with pytest.raises(HoldoutRefusal, match="spent"):
        burn(path, asked("run-3"), now_ms=NOW)
    assert not verify(path).interrupted
    assert burn(path, asked("run-2"), now_ms=NOW).head.count == 2


# --- starting one


@pytest.mark.parametrize("budget", [None, True, 2**53, -(2**60)])
def test_a_budget_that_is_none_is_a_usage_error(tmp_path: Path, budget: int | None) -> None:
    with pytest.raises(InputError):
        init(tmp_path / "burn.json", budget=budget)
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_is_never_started_over(tmp_path: Path) -> None:
    path = ledger(tmp_path, 3, "run-1")
    before = contents(path)
    with pytest.raises(HoldoutRefusal, match="never started over"):
        init(path, budget=9)
    assert contents(path) == before
    path.unlink()
    with pytest.raises(HoldoutRefusal, match="the ledger was removed"):
        init(path, budget=9)


def test_two_ledgers_have_different_heads(tmp_path: Path) -> None:
    one = init(tmp_path / "one.json", budget=3)
    other = init(tmp_path / "other.json", budget=3)
    assert one.head.sha256 != other.head.sha256


OLD = {
    "budget": 2,
    "records": [
        {"suite_ref": "s", "gt_version": "gt-1", "run_id": "old"},
        {"suite_ref": "", "gt_version": "", "run_id": "", "burned_at_ms": 5},
    ],
}


def test_a_ledger_of_an_older_tool_is_refused_until_it_is_adopted(tmp_path: Path) -> None:
    path = tmp_path / "burn.json"
    path.write_text(json.dumps(OLD))
    path.chmod(0o644)
    with pytest.raises(HoldoutRefusal, match="--adopt"):
        burn(path, asked("run-1"), now_ms=NOW)
    account = init(path, budget=None, adopt=True)
    assert (account.budget, account.head.count) == (2, 2)
    assert json.loads(path.read_bytes())["records"] == OLD["records"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    with pytest.raises(HoldoutRefusal, match="this run id was burned"):
        burn(path, asked("old"), now_ms=NOW)
    burn(path, asked("run-1"), now_ms=NOW)
    with pytest.raises(HoldoutRefusal, match="spent"):
        burn(path, asked("run-2"), now_ms=NOW)


def test_adopting_can_set_the_ceiling_that_the_older_tool_left_out(tmp_path: Path) -> None:
    path = tmp_path / "burn.json"
    path.write_text('{"budget": 0, "records": null}')
    assert init(path, budget=4, adopt=True).budget == 4
    assert verify(path).warnings == ()


@pytest.mark.parametrize(
    "data", [b"", b"{}", b'{"records": []}', b'{"budget": "1", "records": []}', b'{"Budget": 0}']
)
def test_what_is_no_ledger_is_not_adopted(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "burn.json"
    path.write_bytes(data)
    with pytest.raises(HoldoutRefusal):
        init(path, budget=None, adopt=True)
    assert path.read_bytes() == data


def test_adopting_launders_nothing(tmp_path: Path) -> None:
    path = ledger(tmp_path, 3, "run-1", "run-2")
    with pytest.raises(HoldoutRefusal):
        init(path, budget=9, adopt=True)
    edit(path, _drop_last)
    edit(path, lambda document: document.pop("chain"))
    with pytest.raises(HoldoutRefusal, match=r"1 burn\(s\) were removed"):
        init(path, budget=None, adopt=True)


def test_nothing_is_adopted_where_nothing_is(tmp_path: Path) -> None:
    with pytest.raises(HoldoutRefusal, match="nothing to adopt"):
        init(tmp_path / "burn.json", budget=3, adopt=True)


def test_a_reader_of_the_old_shape_reads_the_file(tmp_path: Path) -> None:
    """As lenient decoding does it: known members by name, the others passed over."""
    path = ledger(tmp_path, 3, "run-1", "run-2")
    document = json.loads(path.read_bytes())
    old = {name: document[name] for name in ("budget", "records")}
    assert [record["run_id"] for record in old["records"]] == ["run-1", "run-2"]
    assert all(
        set(record) == {"suite_ref", "gt_version", "run_id", "burned_at_ms"}
        for record in old["records"]
    )
    assert type(old["budget"]) is int
