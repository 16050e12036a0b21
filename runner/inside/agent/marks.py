"""Telling a read trace on the host which phase begins: by opening a file that only root can."""

from __future__ import annotations

import os


class Marks:
    """Files of one folder, one for each phase; `runner.core.readtrace` has their grammar.

    Args:
        folder: Where they are mounted; None when nothing is traced.
    """

    __slots__ = ("_folder",)

    def __init__(self, folder: str | None) -> None:
        self._folder = None if folder is None else folder.encode("ascii") + b"/"

    def enter(self, phase: bytes) -> None:
        """Open the mark of a phase. One that cannot be opened is missed on the host, not here."""
        if self._folder is not None:
            try:
                os.close(os.open(self._folder + phase, os.O_RDONLY | os.O_CLOEXEC))
            except OSError:
                return
