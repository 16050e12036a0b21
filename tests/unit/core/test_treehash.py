"""The content digest of a tree, and that the agent's copy of it agrees."""

from __future__ import annotations

import os
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.core.treehash import (
    TreeRecord,
    content_digest,
    directory_record,
    encode_record,
    file_record,
    link_record,
)
from runner.inside.agent.link import Link
from runner.inside.agent.treehash import tree_digest

X = sha256(b"x").hexdigest()
names = st.binary(min_size=1, max_size=6).filter(
    lambda name: b"/" not in name and b"\0" not in name and name not in (b".", b"..")
)
trees = st.recursive(
    st.one_of(
        st.tuples(st.just("f"), st.binary(max_size=40), st.booleans()),
        st.tuples(st.just("l"), st.binary(min_size=1, max_size=9).filter(lambda t: b"\0" not in t)),
    ),
    lambda inner: st.dictionaries(names, inner, max_size=5),
    max_leaves=12,
)


class NoLink(Link):
    """Nobody to watch."""

    def __init__(self) -> None:
        pass

    def check(self) -> None:
        pass


def build(root: bytes, tree: dict[bytes, Any]) -> list[TreeRecord]:
    """Make the tree on disk; its records come from the description, not from the disk."""
    made = []
    for name, node in tree.items():
        path = root + b"/" + name
        if isinstance(node, dict):
            os.mkdir(path)
            made.append(directory_record(name))
            made += [
                record._replace(path=name + b"/" + record.path) for record in build(path, node)
            ]
        elif node[0] == "l":
            os.symlink(node[1], path)
            made.append(link_record(name, node[1]))
        else:
            Path(os.fsdecode(path)).write_bytes(node[1])
            os.chmod(path, 0o755 if node[2] else 0o644)
            digest = sha256(node[1]).hexdigest()
            made.append(file_record(name, digest, executable=node[2]))
    return made


@settings(max_examples=60, deadline=None)
@given(tree=st.dictionaries(names, trees, max_size=5))
def test_the_agents_copy_agrees_with_the_reference(tree: dict[bytes, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        records = build(os.fsencode(folder), tree)
        assert tree_digest(os.fsencode(folder), NoLink()) == content_digest(records)


def test_the_algorithm_is_what_its_description_says() -> None:
    records = [
        file_record(b"b", sha256(b"hello").hexdigest(), executable=True),
        directory_record(b"a"),
        link_record(b"a/l", b"../b"),
    ]
    expected = b"ao-tree-v1\0" + b"d-\0\0\0\x01a"
    expected += b"l-\0\0\0\x03a/l" + sha256(b"../b").hexdigest().encode()
    expected += b"fx\0\0\0\x01b" + sha256(b"hello").hexdigest().encode()
    assert content_digest(records) == sha256(expected).hexdigest()
    assert content_digest([]) == sha256(b"ao-tree-v1\0").hexdigest()


@settings(deadline=None)
@given(st.permutations([directory_record(b"a"), directory_record(b"a/b"), directory_record(b"a-"),
                        directory_record(b"\xff")]))  # fmt: skip
def test_the_order_of_records_makes_no_difference(records: list[TreeRecord]) -> None:
    assert content_digest(records) == content_digest(sorted(records))


@pytest.mark.parametrize(
    "other",
    [
        [file_record(b"a", X, executable=True)],
        [file_record(b"b", X, executable=False)],
        [file_record(b"a", sha256(b"y").hexdigest(), executable=False)],
        [TreeRecord(b"a", "l", executable=False, sha256=X)],
        [file_record(b"a", X, executable=False), directory_record(b"d")],
        [],
    ],
)
def test_every_difference_changes_the_digest(other: list[TreeRecord]) -> None:
    assert content_digest(other) != content_digest([file_record(b"a", X, executable=False)])


@pytest.mark.parametrize(
    "record",
    [
        directory_record(b""), directory_record(b"/a"), directory_record(b"a/"),
        directory_record(b"a//b"), directory_record(b"./a"), directory_record(b"a/.."),
        directory_record(b"a\0"), file_record(b"a", "", executable=False),
        file_record(b"a", X.upper(), executable=False), file_record(b"a", X[1:], executable=False),
        TreeRecord(b"a", "d", executable=True, sha256=""),
        TreeRecord(b"a", "d", executable=False, sha256=X),
    ],
)  # fmt: skip
def test_records_that_are_none_are_refused(record: TreeRecord) -> None:
    with pytest.raises(ValueError, match=r"not a|digest does not"):
        encode_record(record)


def test_two_records_for_one_path_are_refused() -> None:
    with pytest.raises(ValueError, match="two records"):
        content_digest([directory_record(b"a"), file_record(b"a", X, executable=False)])


@pytest.mark.parametrize("kind", ["fifo", "unreadable"])
def test_the_agent_refuses_what_has_no_record(tmp_path: Path, kind: str) -> None:
    if kind == "fifo":
        os.mkfifo(tmp_path / "fifo")
        target = tmp_path
    else:
        target = tmp_path / "missing"
    with pytest.raises(OSError, match=r"regular file|No such file"):
        tree_digest(os.fsencode(target), NoLink())
