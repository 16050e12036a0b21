"""Whether a mount source reaches a live root."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runner.host.absence import reaches
from runner.host.mounts import MountPoint, parse_mount, place
from tests.unit.host.worlds import IS_ROOT, fill, in_mount_namespace


@pytest.fixture
def live(tmp_path: Path) -> Path:
    return fill(tmp_path / "repo" / ".agents", {"sub/x.md": "x"})


def test_the_root_itself_its_parents_and_its_insides_reach_it(live: Path) -> None:
    assert reaches(live, live) == "equals"
    assert reaches(live.parent, live) == "contains"
    assert reaches(Path("/"), live) == "contains"
    assert reaches(live / "sub", live) == "inside"
    assert reaches(live / "sub" / "x.md", live) == "inside"


def test_neighbours_and_namesakes_do_not(live: Path, tmp_path: Path) -> None:
    (tmp_path / "repo" / ".agents-copy").mkdir()
    assert reaches(tmp_path / "repo" / ".agents-copy", live) is None
    assert reaches(tmp_path / "staging", live) is None


def test_links_on_either_side_are_seen_through(live: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(live)
    assert reaches(tmp_path / "alias", live) == "equals"
    assert reaches(live / "sub", tmp_path / "alias") == "inside"


def test_a_hard_link_to_a_live_file_as_root_equals_it(live: Path, tmp_path: Path) -> None:
    os.link(live / "sub" / "x.md", tmp_path / "other.md")
    assert reaches(tmp_path / "other.md", live / "sub" / "x.md") == "equals"


def test_an_absent_live_root_is_reached_by_what_would_hold_it(tmp_path: Path) -> None:
    absent = tmp_path / "repo" / ".agents"
    assert reaches(tmp_path, absent) == "contains"
    assert reaches(absent, absent) == "equals"
    assert reaches(tmp_path / "elsewhere", absent) is None


@pytest.mark.skipif(not IS_ROOT, reason="bind mounts need root")
@pytest.mark.parametrize(
    "bound, at, source, expected",
    [
        (".agents", "hidden", "hidden", "equals"),
        (".agents/sub", "hidden", "hidden", "inside"),
        (".", "hidden", "hidden", "contains"),
        (".agents", "box/inner", "box", "contains"),
        (".agents/sub", "box/inner", "box", "contains"),
        ("outside", ".agents/sub", "outside", "inside"),
        ("outside", ".agents/sub", ".", "contains"),
        ("outside", "box/inner", "box", "None"),
    ],
)
def test_bind_mounts_do_not_hide_a_live_root(
    tmp_path: Path, bound: str, at: str, source: str, expected: str
) -> None:
    repo = fill(tmp_path / "repo", {".agents/sub/x": "x", "outside/y": "y"})
    for name in ("hidden", "box/inner"):
        (tmp_path / name).mkdir(parents=True)
    paths = [
        repo / bound,
        repo / at if at.startswith(".agents") else tmp_path / at,
        repo / source if source in ("outside", ".") else tmp_path / source,
        repo / ".agents",
    ]
    script = """
import subprocess, sys
from pathlib import Path
from runner.host.absence import reaches
bound, at, source, live = map(Path, sys.argv[1:])
subprocess.run(["mount", "--bind", bound, at], check=True)
print(reaches(source, live))
"""
    assert in_mount_namespace(script, *paths) == expected


def test_octal_escapes_of_the_mount_table_are_undone() -> None:
    line = rb"36 35 98:0 /a\040b /mnt\012x\134 rw - ext4 /dev/root rw"
    assert parse_mount(line) == MountPoint("98:0", b"/a b", b"/mnt\nx\\")


def test_the_place_of_a_path_is_that_of_the_innermost_and_last_mount() -> None:
    table = (
        MountPoint("8:1", b"/", b"/"),
        MountPoint("8:2", b"/vol", b"/data"),
        MountPoint("8:3", b"/", b"/data"),
    )
    assert place(b"/data/x/y", table) == ("8:3", b"/x/y")
    assert place(b"/database", table) == ("8:1", b"/database")
    assert place(b"/data", table) == ("8:3", b"/")
