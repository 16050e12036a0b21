"""The hijacked connection that carries a container's standard streams."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Iterator

_HEADER = struct.Struct(">BxxxL")
_CHUNK = 256 * 1024


class DockerAttachment:
    """One attached container. Not thread-safe: one reader, one writer.

    Args:
        connection: Socket of the upgraded connection; owned from now on.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._socket.settimeout(None)

    def send(self, data: bytes) -> None:
        """Write all of `data` to standard input."""
        self._socket.settimeout(30)
        self._socket.sendall(data)

    def chunks(self, deadline: float) -> Iterator[tuple[int, bytes]]:
        """Yield `(stream, data)` until the streams end.

        Args:
            deadline: `time.monotonic()` value.

        Raises:
            TimeoutError: The deadline passed.
            OSError: The connection broke in the middle of a frame.
        """
        buffer = bytearray()
        while True:
            while len(buffer) >= _HEADER.size:
                stream, length = _HEADER.unpack_from(buffer)
                if len(buffer) < _HEADER.size + length:
                    break
                yield stream, bytes(buffer[_HEADER.size : _HEADER.size + length])
                del buffer[: _HEADER.size + length]
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._socket.settimeout(left)
            data = self._socket.recv(_CHUNK)
            if not data:
                if buffer:
                    raise ConnectionResetError("the stream ended inside a frame")
                return
            buffer += data

    def close(self) -> None:
        """Close both directions; the container sees end-of-file on its standard input."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
