"""Differences of manifests: nothing recorded can change unseen."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from runner.core.treediff import differences, summarise
from runner.model.tree import ATTRIBUTES, TreeEntry, TreeManifest, pack_row, path_text, unpack_row

NUMBERS = (0o100644, 1000, 1000, 5, 2049, 77, 10, 20, 1)
CONTENT = hashlib.sha256(b"x").digest()


def manifest(rows: dict[bytes, bytes], *, present: bool = True) -> TreeManifest:
    paths = tuple(sorted(rows))
    return TreeManifest(b"/live", present, paths, tuple(rows[path] for path in paths), "0" * 64)


def row(kind: bytes = b"f", content: bytes = CONTENT, xattrs: bytes = b"", **numbers: int) -> bytes:
    names = TreeEntry._fields[2:11]
    values = [numbers.get(name, NUMBERS[index]) for index, name in enumerate(names)]
    return pack_row(kind, tuple(values), content, xattrs)  # type: ignore[arg-type]


def test_equal_manifests_do_not_differ() -> None:
    one = manifest({b".": row(b"d", b""), b"a": row()})
    assert differences(one, one).total == 0


def test_added_removed_and_modified_entries_are_told_apart() -> None:
    before = manifest({b"a": row(), b"b": row(), b"c": row()})
    after = manifest({b"b": row(mtime=11, ctime=21), b"c": row(), b"d": row()})
    found = differences(before, after)
    assert [(change.path, change.kind, change.attributes) for change in found.changes] == [
        ("a", "removed", ()),
        ("b", "modified", ("mtime", "ctime")),
        ("d", "added", ()),
    ]


def test_write_and_revert_is_a_change_of_ctime_alone() -> None:
    found = differences(manifest({b"a": row()}), manifest({b"a": row(ctime=21)}))
    assert found.changes[0].attributes == ("ctime",)
    assert found.changes[0].kind == "modified"


def test_a_twin_under_the_same_name_is_recreated() -> None:
    found = differences(manifest({b"a": row()}), manifest({b"a": row(inode=78)}))
    assert (found.changes[0].kind, found.changes[0].attributes) == ("recreated", ("inode",))


def test_every_recorded_attribute_is_compared() -> None:
    for field, name in ATTRIBUTES:
        if field == "kind":
            other = row(b"p")
        elif field in ("content", "xattrs"):
            other = row(**{field: hashlib.sha256(b"y").digest()})  # type: ignore[arg-type]
        else:
            other = row(b"f", CONTENT, b"", **{field: 99})
        found = differences(manifest({b"a": row()}), manifest({b"a": other}))
        assert found.changes[0].attributes == (name,)
    assert {field for field, _ in ATTRIBUTES} == set(TreeEntry._fields) - {"path"}


def test_appearance_of_an_absent_root_is_a_change() -> None:
    before = manifest({}, present=False)
    found = differences(before, manifest({b".": row(b"d", b"")}))
    assert [(change.path, change.kind) for change in found.changes] == [(".", "added")]


def test_the_list_is_bounded_and_the_count_is_not() -> None:
    after = manifest({b"%04d" % index: row() for index in range(1000)})
    found = differences(manifest({}), after, limit=3)
    assert (found.total, len(found.changes)) == (1000, 3)


def test_the_summary_counts_bytes_of_files_only() -> None:
    summary = summarise(manifest({b".": row(b"d", b""), b"a": row(), b"p": row(b"p", b"")}))
    assert (summary.entries, summary.size, summary.present) == (3, 5, True)


u64 = st.integers(0, 2**64 - 1)
u32 = st.integers(0, 2**32 - 1)
i64 = st.integers(-(2**63), 2**63 - 1)
digest = st.one_of(st.just(b""), st.binary(min_size=32, max_size=32))


@given(
    kind=st.sampled_from([b"f", b"d", b"l", b"p", b"s", b"c", b"b"]),
    numbers=st.tuples(u32, u32, u32, u64, u64, u64, i64, i64, u64),
    content=digest,
    xattrs=digest,
)
def test_rows_are_read_as_they_were_packed(
    kind: bytes,
    numbers: tuple[int, int, int, int, int, int, int, int, int],
    content: bytes,
    xattrs: bytes,
) -> None:
    entry = unpack_row(b"p", pack_row(kind, numbers, content, xattrs))
    assert entry == TreeEntry(b"p", kind.decode(), *numbers, content, xattrs)


names = st.binary(min_size=1, max_size=4)


@given(
    before=st.dictionaries(names, st.integers(0, 3)),
    after=st.dictionaries(names, st.integers(0, 3)),
)
def test_differences_are_exactly_the_unequal_paths(
    before: dict[bytes, int], after: dict[bytes, int]
) -> None:
    one = manifest({path: row(size=size) for path, size in before.items()})
    other = manifest({path: row(size=size) for path, size in after.items()})
    expected = {p for p in before.keys() | after.keys() if before.get(p) != after.get(p)}
    found = differences(one, other, limit=1000)
    assert [change.path for change in found.changes] == [path_text(p) for p in sorted(expected)]


@given(one=st.binary(), other=st.binary())
def test_path_text_is_one_printable_line_and_different_for_different_paths(
    one: bytes, other: bytes
) -> None:
    text = path_text(one)
    assert text.isprintable()
    text.encode("utf-8")
    assert (text == path_text(other)) == (one == other)
