"""Clean-up that a signal does not cut short."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

_WISHES = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def undisturbed() -> Generator[None]:
    """Hold a wish to stop back until the block is done; then it is handled as it would have been.

    A second wish gets through at once: a clean-up may hang. Python runs signal handlers in the main
    thread only; elsewhere nothing has to be held back.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []

    def hold(number: int, frame: FrameType | None) -> None:
        handler = before[signal.Signals(number)]
        if held and callable(handler):
            handler(number, frame)
        held.append(number)

    before = {number: signal.signal(number, hold) for number in _WISHES}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if held:
            signal.raise_signal(held[0])
