"""A stranger's directory: listed, hashed, and never followed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
from pathlib import Path

import pytest

from runner.errors import InputError
from runner.host.evidencefiles import Changed, EvidenceFiles


def test_regular_files_are_hashed_at_any_depth(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").write_bytes(b"x" * 3_000_000)
    (tmp_path / "top").write_bytes(b"")
    found = EvidenceFiles(tmp_path)
    assert set(found.files) == {"a/b/c", "top"}
    assert found.files["a/b/c"].size == 3_000_000
    assert found.digests["top"] == hashlib.sha256(b"").hexdigest()
    assert found.refused == {}
    assert found.read("a/b/c") == b"x" * 3_000_000
    found.close()


def test_everything_else_is_refused_by_name_and_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"s")
    inside = tmp_path / "in"
    inside.mkdir()
    (inside / "link").symlink_to(outside / "secret")
    (inside / "folder").symlink_to(outside)
    (inside / "dangling").symlink_to("nowhere")
    os.mkfifo(inside / "pipe")
    (inside / "empty").mkdir()
    (inside / "odd\nname").write_bytes(b"")
    (inside / "back\\slash").write_bytes(b"")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(inside / "socket"))
        found = EvidenceFiles(inside)
    assert found.files == {}
    assert found.refused == {
        "link": "a symbolic link",
        "folder": "a symbolic link",
        "dangling": "a symbolic link",
        "pipe": "a FIFO",
        "empty": "an empty folder",
        "odd\\x0aname": "a name that none of our files has",
        "back\\\\slash": "a name that none of our files has",
        "socket": "a socket",
    }
    found.close()


def test_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")).write_bytes(b"")
    found = EvidenceFiles(tmp_path)
    assert found.refused == {"\\xff": "a name that none of our files has"}
    found.close()


def test_what_lies_too_deep_is_refused(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d"] * 20)
    deep.mkdir(parents=True)
    (deep / "file").write_bytes(b"")
    found = EvidenceFiles(tmp_path)
    assert found.files == {}
    assert list(found.refused.values()) == ["nested too deeply"]
    found.close()


def test_a_file_that_changes_after_it_was_listed_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for name in ("grown", "other", "gone", "link", "folder/inner"):
        (tmp_path / name).write_bytes(b"before")
    found = EvidenceFiles(tmp_path)
    (tmp_path / "grown").write_bytes(b"before, and after")
    (tmp_path / "other").write_bytes(b"BEFORE")
    (tmp_path / "gone").unlink()
    (tmp_path / "link").rename(tmp_path / "target")
    (tmp_path / "link").symlink_to("target")
    (tmp_path / "folder").rename(tmp_path / "moved")
    (tmp_path / "folder").symlink_to("moved")
    for name in ("grown", "other", "gone", "link", "folder/inner"):
        with pytest.raises(Changed):
            found.read(name)
    found.close()


def test_the_directory_itself_may_be_named_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "file").write_bytes(b"x")
    (tmp_path / "latest").symlink_to("run")
    found = EvidenceFiles(tmp_path / "latest")
    assert set(found.files) == {"file"}
    found.close()


@pytest.mark.parametrize("name", ["missing", "file"])
def test_what_is_no_directory_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InputError, match="cannot be read"):
        EvidenceFiles(tmp_path / name)


def test_a_folder_that_was_named_by_mistake_is_refused_before_anything_in_it_is_read(
    tmp_path: Path,
) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 40)  # hashing it would take an hour
    with pytest.raises(InputError, match="no evidence directory"):
        EvidenceFiles(tmp_path, marks=("scorecard.json", "attestation.dsse.json"))
    (tmp_path / "huge").unlink()
    (tmp_path / "scorecard.json").write_bytes(b"{}")
    with contextlib.closing(EvidenceFiles(tmp_path, marks=("scorecard.json", "other"))) as found:
        assert set(found.files) == {"scorecard.json"}
