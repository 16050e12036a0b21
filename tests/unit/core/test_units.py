"""Units of the difference between two roots, and roots that mix them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.core.treehash import TreeRecord, content_digest, directory_record, file_record
from runner.core.units import entries, groups, mixed, records, units
from runner.model.contextfile import ContextArtifact, ContextFile
from runner.model.tree import path_bytes, path_text


def tree(spec: Mapping[str, str | None]) -> tuple[TreeRecord, ...]:
    """Path -> content; None for a directory. Folders above are made."""
    found: dict[bytes, TreeRecord] = {}
    for path, content in spec.items():
        parts = path.split("/")
        for depth in range(1, len(parts)):
            folder = "/".join(parts[:depth]).encode()
            found[folder] = directory_record(folder)
        raw = path.encode()
        if content is None:
            found[raw] = directory_record(raw)
        else:
            digest = hashlib.sha256(content.encode()).hexdigest()
            found[raw] = file_record(raw, digest, executable=False)
    return tuple(found[path] for path in sorted(found))


OFF = tree({"keep.md": "same", "gone/old.md": "old", "both.md": "one", "hollow": None})
ON = tree({"keep.md": "same", "learnings/a.md": "a", "both.md": "two", "hollow/x": "x"})


def test_units_are_the_entries_that_the_roots_do_not_share() -> None:
    context = ContextFile(
        schema_version=1,
        label="on",
        artifacts=(ContextArtifact(path="learnings/a.md", role="helpful"),),
    )
    found = [(unit.path, unit.change, unit.role) for unit in units(OFF, ON, (context, None))]
    assert found == [
        ("both.md", "changed", None),
        ("gone/old.md", "removed", None),
        ("hollow", "removed", None),
        ("hollow/x", "added", None),
        ("learnings/a.md", "added", "helpful"),
    ]


def test_a_root_with_no_unit_is_the_off_root_and_one_with_all_the_on_root() -> None:
    every = [unit.path for unit in units(OFF, ON)]
    assert tuple(item.record for item in mixed(OFF, ON, ())) == OFF
    assert tuple(item.record for item in mixed(OFF, ON, every)) == ON


def test_one_unit_changes_one_entry_and_the_folders_that_it_needs() -> None:
    found = {item.record.path: item.source for item in mixed(OFF, ON, ["learnings/a.md"])}
    assert found.pop(b"learnings") == found.pop(b"learnings/a.md") == "context_on"
    assert set(found) == {record.path for record in OFF}


def test_leaving_out_the_only_entry_of_a_folder_leaves_out_the_folder() -> None:
    others = [unit.path for unit in units(OFF, ON) if unit.path != "learnings/a.md"]
    assert b"learnings" not in {item.record.path for item in mixed(OFF, ON, others)}


def test_what_cannot_lie_side_by_side_is_one_group_and_is_refused_apart() -> None:
    off, on = tree({"a": "file"}), tree({"a/x": "below"})
    assert groups(units(off, on), 10) == (("a", "a/x"),)
    with pytest.raises(ValueError, match="a file and a folder"):
        mixed(off, on, ["a/x"])


def test_many_units_are_grouped_folder_by_folder_down_to_one_group() -> None:
    on = tree({f"l/{folder}/{name}": "x" for folder in "abc" for name in "123"} | {"top": "x"})
    found = units((), on)
    assert len(groups(found, 10)) == 10
    assert [len(group) for group in groups(found, 5)] == [3, 3, 3, 1]
    assert [len(group) for group in groups(found, 2)] == [9, 1]
    assert [len(group) for group in groups(found, 1)] == [10]


_names = st.sampled_from(["a", "b", "a/x", "a/y", "b/x/z", "c", "c/d"])


@st.composite
def _trees(draw: st.DrawFn) -> tuple[TreeRecord, ...]:
    spec: dict[str, str | None] = {}
    for path in draw(st.lists(_names, unique=True)):
        clash = any(path.startswith(f"{other}/") for other, text in spec.items() if text)
        clash = clash or any(other.startswith(f"{path}/") for other in spec)
        if not clash:
            spec[path] = draw(st.sampled_from(["1", "2", None]))
    return tree(spec)


@given(off=_trees(), on=_trees(), most=st.integers(1, 8), data=st.data())
def test_any_choice_of_groups_gives_a_tree_and_the_ends_are_the_roots(
    off: tuple[TreeRecord, ...], on: tuple[TreeRecord, ...], most: int, data: st.DataObject
) -> None:
    found = units(off, on)
    made = groups(found, most)
    assert sorted(path for group in made for path in group) == sorted(unit.path for unit in found)
    assert len(made) <= most
    chosen = data.draw(st.lists(st.sampled_from(made), unique=True)) if made else []
    mix = mixed(off, on, {path for group in chosen for path in group})
    content_digest(item.record for item in mix)
    paths = {item.record.path: item.record.kind for item in mix}
    for path in paths:
        folder = path.rpartition(b"/")[0]
        assert not folder or paths[folder] == "d"
    every = {unit.path for unit in found}
    assert content_digest(item.record for item in mixed(off, on, every)) == content_digest(on)
    assert content_digest(item.record for item in mixed(off, on, ())) == content_digest(off)


@given(st.binary(min_size=1).filter(lambda raw: b"/" not in raw))
def test_a_path_of_any_bytes_is_written_and_read_again(raw: bytes) -> None:
    assert path_bytes(path_text(raw)) == raw


@pytest.mark.parametrize("text", ["a\\", "\\q", "\\x4", "\\xZZ"])
def test_what_is_no_escaped_path_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not an escaped path"):
        path_bytes(text)


def test_entries_and_records_are_each_others_inverse() -> None:
    assert records(entries(ON)) == ON
