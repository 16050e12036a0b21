"""Staging a tree: what is copied, what is refused, what is normalised."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.core.treehash import content_digest, directory_record, file_record, link_record
from runner.errors import PrerequisiteError, StagingRefused
from runner.host import staging
from runner.host.staging import EPOCH_NS, copy_survey, stage_tree
from runner.host.survey import leaves_tree, open_root, survey_tree
from runner.host.witness import take_manifest
from runner.model.tree import Limits, Staged
from tests.unit.host.worlds import (
    IS_ROOT,
    NOBODY,
    as_nobody,
    fill,
    in_mount_namespace,
    me,
    names_below,
    open_folder,
)

EMPTY_SHA = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return fill(tmp_path / "agents", {"learnings/a.md": "alpha", "b.txt": "beta"})


def stage(source: Path, limits: Limits | None = None, **more: object) -> Staged:
    destination = source.parent / "staging" / "copy"
    return stage_tree(source, destination, owner=me(), limits=limits, **more)  # type: ignore[arg-type]


def refusal(source: Path, limits: Limits | None = None, **more: object) -> StagingRefused:
    with pytest.raises(StagingRefused) as caught:
        stage(source, limits, **more)
    assert not (source.parent / "staging" / "copy").exists()
    assert "\n" not in caught.value.line()
    return caught.value


def test_files_folders_and_inner_links_are_copied_and_counted(source: Path) -> None:
    (source / "empty").mkdir()
    (source / "learnings" / "link.md").symlink_to("../b.txt")
    staged = stage(source)
    copy = source.parent / "staging" / "copy"
    assert names_below(copy) == names_below(source)
    assert (copy / "learnings" / "a.md").read_text() == "alpha"
    assert os.readlink(copy / "learnings" / "link.md") == "../b.txt"
    assert (staged.entries, staged.size) == (5, 9)


def test_the_digest_is_that_of_the_tree_hash(tmp_path: Path) -> None:
    source = fill(tmp_path / "s", {"x": ""})
    (source / "d").mkdir()
    (source / "l").symlink_to("x")
    (source / "x").chmod(0o700)
    expected = content_digest(
        [
            file_record(b"x", EMPTY_SHA, executable=True),
            directory_record(b"d"),
            link_record(b"l", b"x"),
        ]
    )
    assert stage(source).sha256 == expected


def test_owner_modes_and_times_are_normalised(source: Path) -> None:
    (source / "b.txt").chmod(0o4 | 0o600)
    (source / "run.sh").write_text("#!/bin/sh\n")
    (source / "run.sh").chmod(0o700)
    (source / "learnings").chmod(0o2770)
    owner = (NOBODY, NOBODY) if IS_ROOT else me()
    copy = source.parent / "staging" / "copy"
    stage_tree(source, copy, owner=owner)
    assert copy.parent.stat().st_mode & 0o777 == 0o700
    for path in (copy, *copy.rglob("*")):
        info = path.lstat()
        assert (info.st_uid, info.st_gid) == owner
        assert info.st_mtime_ns == EPOCH_NS
    assert (copy / "b.txt").stat().st_mode & 0o7777 == 0o644
    assert (copy / "run.sh").stat().st_mode & 0o7777 == 0o755
    assert (copy / "learnings").stat().st_mode & 0o7777 == 0o755


def test_the_same_tree_has_the_same_digest_under_other_modes_and_times(source: Path) -> None:
    first = stage(source)
    os.utime(source / "b.txt", (1, 1))
    (source / "b.txt").chmod(0o444)
    again = stage_tree(source, source.parent / "other" / "copy", owner=me())
    assert again == first


def test_hard_linked_files_become_separate_files(source: Path) -> None:
    os.link(source / "b.txt", source / "c.txt")
    stage(source)
    copy = source.parent / "staging" / "copy"
    assert (copy / "b.txt").stat().st_ino != (copy / "c.txt").stat().st_ino
    assert (copy / "c.txt").stat().st_nlink == 1


def test_names_with_newlines_and_invalid_utf8_are_copied(source: Path) -> None:
    root = os.fsencode(source)
    for name in (b"new\nline", b"bad\xff\xfe", b"-rf", b" "):
        with open(os.path.join(root, name), "wb") as file:
            file.write(name)
    stage(source)
    copy = os.fsencode(source.parent / "staging" / "copy")
    with open(os.path.join(copy, b"bad\xff\xfe"), "rb") as file:
        assert file.read() == b"bad\xff\xfe"
    assert b"new\nline" in os.listdir(copy)


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    server = socket.socket(socket.AF_UNIX)
    folder = os.open(path.parent, os.O_PATH)
    server.bind(f"/proc/self/fd/{folder}/{path.name}")
    os.close(folder)
    server.close()


def _device(path: Path) -> None:
    os.mknod(path, 0o600 | 0o020000, os.makedev(1, 5))


def _setuid(path: Path) -> None:
    path.write_text("x")
    path.chmod(0o4755)


def _setgid(path: Path) -> None:
    path.write_text("x")
    path.chmod(0o2755)


def _absolute(path: Path) -> None:
    path.symlink_to("/etc/hostname")


def _climbing(path: Path) -> None:
    path.symlink_to("../../outside")


def _returning(path: Path) -> None:
    path.symlink_to("../../agents/b.txt")


def _by_another(path: Path) -> None:
    # Each of the two looks harmless alone: `up` stays inside as long as it is read lexically.
    (path.parent / "deep").symlink_to(".")
    path.symlink_to("deep/../../outside")


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


@pytest.mark.parametrize(
    "make",
    [
        _fifo,
        _socket,
        pytest.param(_device, marks=pytest.mark.skipif(not IS_ROOT, reason="mknod needs root")),
        _setuid,
        _setgid,
        _absolute,
        _climbing,
        _returning,
        _by_another,
        _loop,
    ],
)
def test_unsafe_entries_refuse_the_tree(source: Path, make: Callable[[Path], None]) -> None:
    make(source / "learnings" / "evil")
    error = refusal(source)
    assert error.detail == "unsafe_entry"
    assert "learnings/evil" in error.line()
    assert error.exit_code == 5


def test_a_missing_root_and_a_file_as_root_are_missing(source: Path) -> None:
    assert refusal(source / "nope").detail == "missing"
    with pytest.raises(StagingRefused) as caught:
        stage_tree(source / "b.txt", source.parent / "staging" / "copy", owner=me())
    assert caught.value.detail == "missing"


def test_what_cannot_be_read_refuses_the_tree() -> None:
    with open_folder() as folder:
        source = fill(folder / "agents", {"secret": "x", "sub/y": "y"})
        if IS_ROOT:
            os.chown(folder, NOBODY, NOBODY)
        for path in (source, *source.rglob("*")):
            if IS_ROOT:
                os.chown(path, NOBODY, NOBODY)

        def attempt() -> str:
            try:
                stage_tree(source, folder / "out" / "copy", owner=(NOBODY, NOBODY))
            except StagingRefused as error:
                return error.detail
            return "staged"

        assert as_nobody(attempt) == "staged"
        os.rename(folder / "out", folder / "first")
        (source / "secret").chmod(0)
        assert as_nobody(attempt) == "unreadable"
        (source / "secret").chmod(0o600)
        (source / "sub").chmod(0)
        assert as_nobody(attempt) == "unreadable"


def test_a_hard_link_to_a_live_file_is_refused_under_any_name(source: Path) -> None:
    live = fill(source.parent / ".agents", {"learnings/private.md": "live"})
    os.link(live / "learnings" / "private.md", source / "harmless.md")
    assert stage(source).entries == 4
    forbidden = take_manifest(live).nodes()
    os.rename(source.parent / "staging", source.parent / "first")
    error = refusal(source, forbidden=forbidden)
    assert error.detail == "unsafe_entry"
    assert "harmless.md" in error.line()


@pytest.mark.parametrize("which", ["itself", "parent", "inside"])
def test_a_root_that_is_or_holds_or_lies_in_live_state_is_refused(
    tmp_path: Path, which: str
) -> None:
    live = fill(tmp_path / "repo" / ".agents", {"sub/x.md": "x"})
    source = {"itself": live, "parent": live.parent, "inside": live / "sub"}[which]
    forbidden = take_manifest(live).nodes()
    with pytest.raises(StagingRefused) as caught:
        stage_tree(source, tmp_path / "out" / "copy", owner=me(), forbidden=forbidden)
    assert caught.value.detail == "unsafe_entry"


@pytest.mark.skipif(not IS_ROOT, reason="bind mounts need root")
@pytest.mark.parametrize("kind", ["folder", "file", "tmpfs"])
def test_a_mount_below_the_root_is_refused(source: Path, kind: str) -> None:
    outside = fill(source.parent / "outside", {"secret": "s"})
    fill(source, {"hole/.keep": "", "file": ""})
    script = """
import subprocess, sys
from pathlib import Path
from runner.errors import StagingRefused
from runner.host.staging import stage_tree
source, outside, kind = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
mount = {
    "folder": ["--bind", str(outside), str(source / "hole")],
    "file": ["--bind", str(outside / "secret"), str(source / "file")],
    "tmpfs": ["-t", "tmpfs", "none", str(source / "hole")],
}[kind]
stage_tree(source, source.parent / "before" / "copy", owner=(0, 0))
subprocess.run(["mount", *mount], check=True)
try:
    stage_tree(source, source.parent / "after" / "copy", owner=(0, 0))
    print("staged")
except StagingRefused as error:
    print(error.detail, (source.parent / "after" / "copy").exists())
"""
    assert in_mount_namespace(script, source, outside, Path(kind)) == "unsafe_entry False"


def test_a_sparse_file_of_a_terabyte_is_refused_before_it_is_read(source: Path) -> None:
    with (source / "huge").open("wb") as file:
        file.truncate(1 << 40)
    begun = time.monotonic()
    error = refusal(source)
    assert error.detail == "unsafe_entry"
    assert time.monotonic() - begun < 5


def test_two_hundred_thousand_entries_are_refused_in_bounded_time(tmp_path: Path) -> None:
    source = tmp_path / "many"
    source.mkdir()
    one = source / "0"
    one.touch()
    folder = os.open(source, os.O_RDONLY)
    try:
        # Hard links are entries as good as any, and cheap to make (65,000 a file on ext4).
        for index in range(1, 200_000):
            if index % 30_000 == 0:
                one = source / str(index)
                one.touch()
            else:
                os.link(one, str(index), dst_dir_fd=folder)
    finally:
        os.close(folder)
    begun = time.monotonic()
    error = refusal(source)
    assert error.detail == "unsafe_entry"
    assert time.monotonic() - begun < 20


@pytest.mark.parametrize(
    "limits, word",
    [
        (Limits(entries=2), "entry more"),
        (Limits(size=8), "larger"),
        (Limits(depth=1), "deeper"),
    ],
)
def test_each_bound_refuses_just_beyond_it(source: Path, limits: Limits, word: str) -> None:
    assert word in refusal(source, limits).line()


def test_a_tree_exactly_at_the_bounds_is_staged(source: Path) -> None:
    assert stage(source, Limits(entries=3, size=9, depth=2)).entries == 3


def test_an_existing_destination_is_never_written_to(source: Path) -> None:
    taken = fill(source.parent / "staging" / "copy", {"mine": "mine"})
    with pytest.raises(PrerequisiteError):
        stage(source)
    assert names_below(taken) == {"mine"}


def test_excluded_paths_are_absent_with_everything_below(source: Path) -> None:
    stage(source, exclude=[b"learnings"])
    assert names_below(source.parent / "staging" / "copy") == {"b.txt"}


def _swap_file_for_link(source: Path) -> None:
    (source / "b.txt").unlink()
    (source / "b.txt").symlink_to("/etc/passwd")


def _swap_folder_for_link(source: Path) -> None:
    os.rename(source / "learnings", source.parent / "moved")
    (source / "learnings").symlink_to(source.parent / "moved")


def _swap_file_for_fifo(source: Path) -> None:
    (source / "b.txt").unlink()
    os.mkfifo(source / "b.txt")


def _rewrite(source: Path) -> None:
    (source / "b.txt").write_text("BETA")


def _replace_by_twin(source: Path) -> None:
    (source / "new").write_text("beta")
    os.rename(source / "new", source / "b.txt")


def _remove(source: Path) -> None:
    (source / "b.txt").unlink()


def _add(source: Path) -> None:
    (source / "learnings" / "late.md").write_text("late")


@pytest.mark.parametrize(
    "change",
    [
        _swap_file_for_link,
        _swap_folder_for_link,
        _swap_file_for_fifo,
        _rewrite,
        _replace_by_twin,
        _remove,
        _add,
    ],
)
def test_a_change_between_survey_and_copy_refuses_the_tree(
    source: Path, change: Callable[[Path], None]
) -> None:
    destination = source.parent / "staging" / "copy"
    with open_root(source) as root:
        survey = survey_tree(root, Limits(), ())
        change(source)
        with pytest.raises(StagingRefused) as caught:
            copy_survey(root, survey, destination, owner=me())
    assert caught.value.detail == "unreadable"
    assert not destination.exists()


def test_a_file_is_compared_both_before_and_after_it_is_read(source: Path) -> None:
    with open_root(source) as root, (source.parent / "sink").open("wb") as sink:
        entry = next(one for one in survey_tree(root, Limits(), ()).found if one.path == b"b.txt")
        copy = staging._Copy(root, me(), strict_directories=True)
        reader = copy._open_file(entry, b"b.txt", root.descriptor)
        try:
            (source / "b.txt").write_text("BETA")
            with pytest.raises(StagingRefused, match="changed"):
                copy._pour(entry, reader, sink.fileno())
        finally:
            os.close(reader)
        with pytest.raises(StagingRefused, match="changed"):
            copy._open_file(entry, b"b.txt", root.descriptor)


def test_a_root_swapped_for_a_link_after_it_was_opened_is_not_followed(source: Path) -> None:
    other = fill(source.parent / "other", {"secret": "s"})
    destination = source.parent / "staging" / "copy"
    with open_root(source) as root:
        survey = survey_tree(root, Limits(), ())
        os.rename(source, source.parent / "away")
        source.symlink_to(other)
        with pytest.raises(StagingRefused):
            copy_survey(root, survey, destination, owner=me())
    assert not destination.exists()


def _resolve(start: str, tree: Path) -> bool:
    """Whether the kernel, asked step by step, ever stands outside the tree."""
    return not Path(os.path.realpath(tree / start)).is_relative_to(tree)


_part = st.sampled_from(["a", "b", "..", ".", "", "c"])


@given(
    targets=st.dictionaries(
        st.sampled_from(["a", "b", "d/a", "d/c"]),
        st.lists(_part, min_size=1, max_size=5).map("/".join).filter(bool),
        min_size=1,
    )
)
def test_a_link_judged_inside_is_inside_for_the_kernel_too(
    tmp_path_factory: pytest.TempPathFactory, targets: dict[str, str]
) -> None:
    tree = Path(os.path.realpath(tmp_path_factory.mktemp("links"))) / "deep" / "tree"
    (tree / "d").mkdir(parents=True)
    (tree / "c").mkdir()
    links = {name.encode(): target.encode() for name, target in targets.items()}
    for name, target in targets.items():
        (tree / name).symlink_to(target)
    for path, link in links.items():
        if not leaves_tree(path, link, links):
            assert not _resolve(path.decode(), tree)
