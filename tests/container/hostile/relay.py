"""A socket between the command and the engine: it can act when a request passes."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from pathlib import Path


class Relay:
    """Leads to the engine; what goes there is shown first.

    Args:
        path: Where to listen.
        target: The engine's socket.
        shown: Called with the bytes of the command, before they are passed on.
    """

    def __init__(self, path: Path, target: str, shown: Callable[[bytes], None]) -> None:
        self.address = f"unix://{path}"
        self._target = target
        self._shown = shown
        self._open: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(32)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.socket(socket.AF_UNIX)
                self._open += [near, far]
                far.connect(self._target)
                for one, other, shown in ((near, far, True), (far, near, False)):
                    arguments = (one, other, shown)
                    threading.Thread(target=self._pump, args=arguments, daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, shown: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if shown:
                    self._shown(data)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """End every connection."""
        for item in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                item.shutdown(socket.SHUT_RDWR)
            item.close()
