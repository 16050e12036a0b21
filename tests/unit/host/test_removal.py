"""Removal of what hostile programs left behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runner.host.removal import remove
from tests.unit.host.worlds import IS_ROOT, NOBODY, as_nobody, fill, in_mount_namespace, open_folder


def test_a_tree_a_file_a_link_and_nothing_are_removed(tmp_path: Path) -> None:
    tree = fill(tmp_path / "tree", {"a/b/c": "x", "d": "y", "e/f/g/h": ""})
    other = fill(tmp_path / "other", {"x": "x"})
    (tree / "out").symlink_to(other)
    (tmp_path / "link").symlink_to(other)
    for path in (tree, tmp_path / "link", tmp_path / "nothing", tmp_path / "no" / "thing"):
        assert remove(path) == ()
        assert not os.path.lexists(path)
    assert (other / "x").exists()
    assert remove(other / "x") == ()


def test_names_of_any_bytes_and_special_files_are_removed(tmp_path: Path) -> None:
    tree = fill(tmp_path / "tree", {"-rf/x": "", "a\nb/y": ""})
    root = os.fsencode(tree)
    os.makedirs(os.path.join(root, b"\xff\xfe", b"\xfd"))
    os.mkfifo(os.path.join(root, b"\xff\xfe", b"\xfc"))
    assert remove(tree) == ()
    assert not tree.exists()


def test_folders_of_mode_zero_are_removed_by_their_owner() -> None:
    with open_folder() as folder:
        tree = fill(folder / "tree", {"work/work/x": "x", "ro/y": "y"})
        folder.chmod(0o777)
        if IS_ROOT:
            for path in (tree, *tree.rglob("*")):
                os.chown(path, NOBODY, NOBODY)
        (tree / "work" / "work").chmod(0)
        (tree / "work").chmod(0)
        (tree / "ro").chmod(0o555)
        tree.chmod(0o500)
        assert as_nobody(lambda: repr(remove(tree))) == "()"
        assert not tree.exists()


def test_a_tree_deeper_than_paths_and_descriptors_allow_is_removed(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    folder = os.open(tree, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("deep", dir_fd=folder)
        deeper = os.open("deep", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = deeper
    os.close(folder)
    assert remove(tree) == ()
    assert not tree.exists()


@pytest.mark.skipif(not IS_ROOT, reason="bind mounts need root")
def test_a_mount_below_or_at_the_tree_is_not_entered_and_is_named(tmp_path: Path) -> None:
    tree = fill(tmp_path / "tree", {"a/hole/.keep": "", "b": "", "file": ""})
    outside = fill(tmp_path / "outside", {"precious": "p", "sub/precious": "p"})
    script = """
import subprocess, sys
from pathlib import Path
from runner.host.removal import remove
tree, outside = Path(sys.argv[1]), Path(sys.argv[2])
subprocess.run(["mount", "--bind", outside, tree / "a" / "hole"], check=True)
subprocess.run(["mount", "--bind", outside / "precious", tree / "file"], check=True)
print(len(remove(tree)) > 0, (outside / "precious").exists(), (tree / "b").exists())
other = tree.parent / "point"
other.mkdir()
subprocess.run(["mount", "--bind", outside, other], check=True)
print(len(remove(other)) > 0, (outside / "sub" / "precious").exists())
"""
    assert in_mount_namespace(script, tree, outside).split() == [
        "True", "True", "False", "True", "True",
    ]  # fmt: skip
    assert remove(tree) == ()


def test_what_cannot_be_removed_is_named_on_one_line() -> None:
    with open_folder() as folder:
        fill(folder / "tree", {"a\nb": ""})
        folder.chmod(0o555)
        problems = as_nobody(lambda: "|".join(remove(folder / "tree")))
        assert "tree" in problems
        assert "\n" not in problems
