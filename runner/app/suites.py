"""Find and load suites."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from runner.core.strictjson import MAX_BYTES
from runner.core.suitefile import check_fixtures, looks_like_suite, read_suite
from runner.errors import InputError
from runner.model.suite import SuiteFile


def read_bytes(path: Path) -> bytes:
    """A whole file, within the bound of the reader.

    Raises:
        InputError: It cannot be read, or is too large.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InputError(f"cannot be read: {reason}", where=str(path)) from error
    if len(data) > MAX_BYTES:
        raise InputError(f"is larger than {MAX_BYTES >> 20} MiB", where=str(path))
    return data


def load_suite(path: Path) -> SuiteFile:
    """Read one suite, and check the fixtures whose digest it declares.

    Raises:
        InputError: It is not a suite that the reader accepts.
    """
    loaded = read_suite(read_bytes(path), str(path))
    folder = path.resolve().parent
    check_fixtures(loaded, lambda relative: _digest(folder / relative))
    return loaded


def _digest(path: Path) -> str | None:
    """SHA-256 of a regular file; None when there is none."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def find_suites(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Suites that the arguments name: files as they are, folders by what lies in them.

    In a folder (not below it) a JSON object with both `cases` and `scoring` is a suite; other files
    are passed over.

    Raises:
        InputError: A path does not exist, or a folder holds no suite.
    """
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        inside = [
            file
            for file in sorted(path.glob("*.json"))
            if file.is_file() and looks_like_suite(read_bytes(file))
        ]
        if not inside:
            raise InputError("holds no suite", where=str(path), remedy="name a suite file")
        found += inside
    return tuple(dict.fromkeys(found))
