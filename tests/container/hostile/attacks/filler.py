"""Inside a leg: fill what can be written."""

from __future__ import annotations

import os
import sys

from tests.container.hostile.attacks.attempt import report

_CHUNK = bytes(1 << 20)


def _bytes(folder: str) -> int:
    """Write until nothing more fits; how much did."""
    size = 0
    descriptor = os.open(f"{folder}/full", os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        while True:
            size += os.write(descriptor, _CHUNK)
    except OSError:
        return size
    finally:
        os.close(descriptor)


def _inodes(folder: str) -> int:
    """Make files until no more can be made; how many could."""
    count = 0
    try:
        while True:
            os.close(os.open(f"{folder}/{count}", os.O_WRONLY | os.O_CREAT, 0o600))
            count += 1
    except OSError:
        return count


def main() -> None:
    """Fill the named folders with `bytes`, `inodes` or `both`."""
    what, *folders = sys.argv[1:]
    fills = {"bytes": [_bytes], "inodes": [_inodes], "both": [_bytes, _inodes]}[what]
    report({folder: [fill(folder) for fill in fills] for folder in folders})


if __name__ == "__main__":
    main()
