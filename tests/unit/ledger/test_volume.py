"""A network file system is refused by name, and an unknown one too."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runner.errors import HoldoutRefusal
from runner.ledger.jsonfile import burn
from runner.ledger.volume import LOCAL, filesystem_of, require_local
from tests.unit.ledger.burns import NOW, asked


def told(folder: Path, descriptor: int, line: str) -> str:
    (folder / "fdinfo").mkdir(exist_ok=True)
    (folder / "fdinfo" / str(descriptor)).write_text("pos:\t0\nflags:\t0100000\nmnt_id:\t41\n")
    (folder / "mountinfo").write_text(
        f"4 1 8:1 / / rw - ext4 /dev/a rw\n{line}\n141 1 0:9 / /x rw - tmpfs t rw\n"
    )
    return filesystem_of(descriptor, folder)


@pytest.mark.parametrize(
    "kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "fuse.sshfs", "fuse.gcsfuse", "virtiofs"]
)
def test_network_file_systems_are_no_local_ones(tmp_path: Path, kind: str) -> None:
    line = f"41 22 0:50 / /mnt rw,relatime shared:1 master:2 - {kind} server:/x rw,addr=10.0.0.1"
    assert told(tmp_path, 7, line) == kind
    assert kind not in LOCAL


def test_the_mount_is_found_by_its_id_with_and_without_optional_fields(tmp_path: Path) -> None:
    assert told(tmp_path, 7, "41 22 8:2 / /a\\040b rw - xfs /dev/b rw") == "xfs"
    assert told(tmp_path, 7, "41 22 8:2 / /nfs rw shared:9 - btrfs /dev/b rw") == "btrfs"


def test_what_cannot_be_told_is_unknown(tmp_path: Path) -> None:
    assert filesystem_of(7, tmp_path) == "unknown"
    assert told(tmp_path, 7, "42 22 8:2 / /x rw - xfs /dev/b rw") == "unknown"
    assert told(tmp_path, 7, "41 22 8:2 / /x rw") == "unknown"
    assert "unknown" not in LOCAL


def test_the_folder_of_these_tests_is_local(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        require_local(descriptor, "here")
    finally:
        os.close(descriptor)


def test_a_burn_on_a_file_system_that_is_not_known_to_be_local_names_it() -> None:
    with pytest.raises(HoldoutRefusal, match="type proc, which is not known to be local"):
        burn(Path("/proc/self/burn.json"), asked("run-1"), now_ms=NOW)
