"""Standard input and output: the orchestrator at the other end, and how the agent ends."""

from __future__ import annotations

import binascii
import os
import select
import time

EXIT_FATAL = 95
EXIT_ORPHANED = 96
EXIT_REFUSED = 97

MAX_PLAN = 64 << 20
MAX_FRAME = 256 << 10
FLUSH_BYTES = 48 << 10
FLUSH_SECONDS = 0.05
READ_BYTES = 64 << 10
IN, OUT = select.POLLIN, select.POLLOUT


class Fatal(Exception):
    """The leg cannot go on; `args[0]` is a bare token, `args[1]` a sentence."""


class Link:
    """Standard input and output: the orchestrator.

    Every frame carries the nonce, the next sequence number and a CRC chained over all frames.
    """

    __slots__ = ("_crc", "_parts", "_poll", "_sequence", "flush_at", "nonce", "size")

    def __init__(self) -> None:
        self.nonce = b""
        self.size = 0
        self.flush_at = 0.0
        self._sequence = 0
        self._crc = 0
        self._parts: list[bytes] = []
        self._poll = select.poll()
        self._poll.register(0, IN)
        os.set_blocking(1, False)

    def read_plan(self) -> str:
        """The first line of standard input. End-of-file before it: nobody wants a leg."""
        parts: list[bytes] = []
        size = 0
        while True:
            data = os.read(0, 1 << 20)
            if not data:
                os._exit(EXIT_ORPHANED)
            head, newline, _ = data.partition(b"\n")
            parts.append(head)
            size += len(head)
            if size > MAX_PLAN:
                raise Fatal("plan_too_large", "the plan is larger than 64 MiB")
            if newline:
                return b"".join(parts).decode("utf-8")

    def heard(self) -> None:
        """Standard input is readable: end-of-file is the dead-man switch, the rest is ignored."""
        if not os.read(0, READ_BYTES):
            os._exit(EXIT_ORPHANED)  # as PID 1: the kernel kills every other process

    def check(self) -> None:
        """Look at standard input without waiting; for loops that may take long."""
        if self._poll.poll(0):
            self.heard()

    def frame(self, body: bytes) -> None:
        """Queue one frame; `body` is the inside of the JSON object after nonce and sequence."""
        line = b'{"n":"%s","s":%d,%s' % (self.nonce, self._sequence, body)
        if len(line) > MAX_FRAME - 32:
            raise Fatal("frame_too_large", "a frame is larger than 256 KiB")
        self._sequence += 1
        self._crc = binascii.crc32(line, self._crc)
        line = b'%s,"k":"%08x"}\n' % (line, self._crc)
        if not self.size:
            self.flush_at = time.monotonic() + FLUSH_SECONDS
        self._parts.append(line)
        self.size += len(line)

    def push(self) -> bool:
        """Write what fits without blocking; True when nothing is left."""
        if not self.size:
            return True
        data = memoryview(b"".join(self._parts))
        try:
            while data:
                data = data[os.write(1, data) :]
        except BlockingIOError:
            self._parts = [bytes(data)]
            self.size = len(data)
            return False
        except OSError:
            os._exit(EXIT_ORPHANED)  # nobody reads any more
        self._parts = []
        self.size = 0
        return True

    def flush(self) -> None:
        """Write everything, watching standard input while the reader is slow."""
        while not self.push():
            self._poll.register(1, OUT)
            events = self._poll.poll()
            self._poll.unregister(1)
            if any(fd == 0 for fd, _ in events):
                self.heard()

    def pace(self) -> None:
        """Flush when enough bytes or milliseconds have come together."""
        if self.size >= FLUSH_BYTES or (self.size and time.monotonic() >= self.flush_at):
            self.flush()
