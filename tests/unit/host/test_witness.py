"""Manifests of live roots: complete, and no mutation escapes two of them."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.core.treediff import differences, summarise
from runner.errors import IntegrityError
from runner.host import witness
from runner.host.staging import stage_tree
from runner.host.witness import take_manifest
from tests.unit.host.worlds import IS_ROOT, NOBODY, as_nobody, fill, me, open_folder


@pytest.fixture
def live(tmp_path: Path) -> Path:
    return fill(tmp_path / ".agents", {"a.md": "alpha", "sub/b.md": "beta"})


def _same_size(live: Path) -> None:
    (live / "a.md").write_text("ALPHA")


def _chmod(live: Path) -> None:
    (live / "a.md").chmod(0o640)


def _touch_back(live: Path) -> None:
    info = (live / "a.md").stat()
    os.utime(live / "a.md", ns=(info.st_atime_ns, info.st_mtime_ns))


def _empty_folder(live: Path) -> None:
    (live / "sub" / "new").mkdir()


def _identical_twin(live: Path) -> None:
    (live / "twin").write_text("alpha")
    (live / "twin").chmod((live / "a.md").stat().st_mode)
    os.rename(live / "twin", live / "a.md")


def _write_and_revert(live: Path) -> None:
    info = (live / "a.md").stat()
    (live / "a.md").write_text("other")
    (live / "a.md").write_text("alpha")
    os.utime(live / "a.md", ns=(info.st_atime_ns, info.st_mtime_ns))


def _come_and_go(live: Path) -> None:
    (live / "sub" / "x").touch()
    (live / "sub" / "x").unlink()


def _link_elsewhere(live: Path) -> None:
    os.link(live / "a.md", live.parent / "elsewhere")


def _xattr(live: Path) -> None:
    os.setxattr(live / "a.md", "user.note", b"1")


def _rename(live: Path) -> None:
    os.rename(live / "a.md", live / "z.md")


def _remove(live: Path) -> None:
    (live / "sub" / "b.md").unlink()


def _file_to_folder(live: Path) -> None:
    (live / "a.md").unlink()
    (live / "a.md").mkdir()


@pytest.mark.parametrize(
    "mutate",
    [
        _same_size,
        _chmod,
        _touch_back,
        _empty_folder,
        _identical_twin,
        _write_and_revert,
        _come_and_go,
        _link_elsewhere,
        _xattr,
        _rename,
        _remove,
        _file_to_folder,
    ],
)
def test_every_mutation_is_seen(live: Path, mutate: Callable[[Path], None]) -> None:
    before = take_manifest(live)
    mutate(live)
    after = take_manifest(live)
    assert differences(before, after).total > 0
    assert before.sha256 != after.sha256


def test_reading_changes_nothing(live: Path) -> None:
    before = take_manifest(live)
    for path in live.rglob("*.md"):
        path.read_bytes()
    after = take_manifest(live)
    assert after == before
    assert differences(before, after).total == 0


def test_write_and_revert_leaves_the_content_digest_but_not_the_witness(live: Path) -> None:
    before = take_manifest(live)
    _write_and_revert(live)
    after = take_manifest(live)
    assert summarise(before).content_sha256 == summarise(after).content_sha256
    assert [change.attributes for change in differences(before, after).changes] == [("ctime",)]


def test_the_content_digest_is_that_of_staging(live: Path, tmp_path: Path) -> None:
    (live / "l").symlink_to("a.md")
    (live / "a.md").chmod(0o755)
    staged = stage_tree(live, tmp_path / "out" / "copy", owner=me())
    assert summarise(take_manifest(live)).content_sha256 == staged.sha256


def test_an_absent_root_is_a_state_and_its_creation_a_mutation(tmp_path: Path) -> None:
    root = tmp_path / "no" / ".agents"
    before = take_manifest(root)
    assert (before.present, len(before)) == (False, 0)
    assert take_manifest(root) == before
    root.mkdir(parents=True)
    after = take_manifest(root)
    assert after.present
    assert after.sha256 != before.sha256
    assert [change.path for change in differences(before, after).changes] == ["."]


def test_special_files_are_recorded_without_being_opened(live: Path) -> None:
    os.mkfifo(live / "pipe")
    server = socket.socket(socket.AF_UNIX)
    folder = os.open(live, os.O_PATH)
    server.bind(f"/proc/self/fd/{folder}/sock")
    os.close(folder)
    server.close()
    (live / "dangling").symlink_to("/nowhere")
    kinds = {entry.path: entry.kind for entry in take_manifest(live).entries()}
    assert (kinds[b"pipe"], kinds[b"sock"], kinds[b"dangling"]) == ("p", "s", "l")


def test_links_are_recorded_not_followed(live: Path, tmp_path: Path) -> None:
    fill(tmp_path / "big", {"x": "x"})
    (live / "out").symlink_to(tmp_path / "big")
    paths = take_manifest(live).paths
    assert b"out" in paths
    assert b"out/x" not in paths


def test_a_root_that_is_a_link_is_watched_with_its_target(live: Path, tmp_path: Path) -> None:
    named = tmp_path / "named"
    named.symlink_to(live)
    before = take_manifest(named)
    assert b"a.md" in before.paths
    assert before.root == os.fsencode(os.path.realpath(live))
    other = fill(tmp_path / "other", {"a.md": "alpha"})
    named.unlink()
    named.symlink_to(other)
    assert "" in {change.path for change in differences(before, take_manifest(named)).changes}


def test_names_of_any_bytes_are_recorded(live: Path) -> None:
    with open(os.path.join(os.fsencode(live), b"new\nline\xff"), "wb"):
        pass
    assert b"new\nline\xff" in take_manifest(live).paths


def test_an_unreadable_entry_ends_the_manifest_and_is_named() -> None:
    with open_folder() as folder:
        live = fill(folder / ".agents", {"ok": "ok", "sub/secret": "s"})
        for path in (live, *live.rglob("*")):
            if IS_ROOT:
                os.chown(path, NOBODY, NOBODY)

        def attempt() -> str:
            try:
                return f"{len(take_manifest(live))} entries"
            except IntegrityError as error:
                return error.line()

        assert as_nobody(attempt) == "4 entries"
        (live / "sub" / "secret").chmod(0)
        assert "sub/secret" in as_nobody(attempt)
        (live / "sub").chmod(0)
        assert "sub" in as_nobody(attempt)


def test_a_file_of_another_user_is_read_without_noatime() -> None:
    with open_folder() as folder:
        live = fill(folder / ".agents", {"root.md": "readable by all"})
        assert as_nobody(lambda: str(len(take_manifest(live)))) == "2"


def test_a_file_that_never_holds_still_ends_the_manifest(live: Path) -> None:
    stop = threading.Event()
    big = live / "busy"
    big.touch()
    os.truncate(big, 64 << 20)  # long enough to read that a busy machine lets the writer in

    def write() -> None:
        with big.open("r+b") as file:
            while not stop.is_set():
                file.seek(0)
                file.write(os.urandom(64))
                file.flush()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with pytest.raises(IntegrityError, match="keeps changing"):
            take_manifest(live)
    finally:
        stop.set()
        writer.join()


def test_a_file_swapped_for_a_link_or_fifo_after_it_was_listed_is_not_followed(live: Path) -> None:
    (live / "link").symlink_to("a.md")
    (live / "folder").symlink_to("sub")
    os.mkfifo(live / "pipe")
    folder = os.open(live, os.O_RDONLY)
    try:
        with pytest.raises(OSError, match="symbolic links"):
            witness._file_row(folder, b"link", b"/live", b"link")
        with pytest.raises(OSError, match="Not a directory"):
            witness._open(b"folder", witness._DIRECTORY_FLAGS, folder)
        with pytest.raises(witness._Changed):
            witness._file_row(folder, b"pipe", b"/live", b"pipe")
    finally:
        os.close(folder)


def test_a_tree_deeper_than_the_bound_is_an_error_not_a_crash(live: Path) -> None:
    folder = os.open(live, os.O_RDONLY)
    for _ in range(witness.MAX_DEPTH + 5):
        os.mkdir("d", dir_fd=folder)
        deeper = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = deeper
    os.close(folder)
    with pytest.raises(IntegrityError, match="deeper"):
        take_manifest(live)


def test_nodes_hold_every_entry_and_the_root(live: Path) -> None:
    nodes = take_manifest(live).nodes()
    for path in (live, *live.rglob("*")):
        info = path.lstat()
        assert (info.st_dev, info.st_ino) in nodes


def test_no_descriptor_is_left_open(live: Path) -> None:
    count = len(os.listdir("/proc/self/fd"))
    take_manifest(live)
    assert len(os.listdir("/proc/self/fd")) == count
