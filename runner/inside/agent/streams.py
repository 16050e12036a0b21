"""The output of one running execution on its way to the orchestrator."""

from __future__ import annotations

import binascii
import os
import select
import time

from .link import FLUSH_BYTES, FLUSH_SECONDS, IN, OUT, READ_BYTES
from .processes import pidfd_open, reap
from .treehash import Digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .link import Link

REAP_SECONDS = 0.02


class Stream:
    """Standard output or error of one execution: kept up to a limit, counted and hashed whole."""

    __slots__ = ("_digest", "_head", "_limit", "_link", "_pending", "_pending_size", "fd", "kept",
                 "size")  # fmt: skip

    def __init__(self, link: Link, head: bytes, fd: int, limit: int) -> None:
        self._link = link
        self._head = head
        self._limit = limit
        self._digest = Digest()
        self._pending: list[bytes] = []
        self._pending_size = 0
        self.fd = fd
        self.size = 0
        self.kept = 0

    def read(self) -> bool:
        """Read once; False at end-of-file or when nothing is there."""
        try:
            data = os.read(self.fd, READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            return False
        self.size += len(data)
        self._digest.update(data)
        room = self._limit - self.kept
        if room > 0:
            data = data[:room]
            self.kept += len(data)
            self._pending.append(data)
            self._pending_size += len(data)
            if self._pending_size >= FLUSH_BYTES:
                self.emit()
        return True

    def emit(self) -> None:
        """Turn what was kept since the last time into a frame."""
        if self._pending:
            data = binascii.b2a_base64(b"".join(self._pending), newline=False)
            self._pending = []
            self._pending_size = 0
            self._link.frame(b'%s,"d":"%s"' % (self._head, data))

    def facts(self) -> bytes:
        """`[size, kept, sha256]` as JSON."""
        return b'[%d,%d,"%s"]' % (self.size, self.kept, self._digest.hex().encode())


class Attendance:
    """Passes the output of one running execution on until its leader ends.

    Never waits for the end of a pipe: a daemon may hold it open for ever. An orchestrator that
    does not keep up stops the case's output, not the agent's watch over the deadline and the
    dead-man switch, and memory stays bounded.
    """

    __slots__ = ("_congested", "_flush_at", "_link", "_pid", "_poll", "_readers", "_reap_at",
                 "_stdin", "_streams", "_tick", "_unsent", "_watch", "ended", "status")  # fmt: skip

    def __init__(
        self, link: Link, pid: int, streams: list[Stream], stdin: int, data: bytes
    ) -> None:
        self._link = link
        self._pid = pid
        self._stdin = stdin
        self._unsent = memoryview(data)
        self._streams = streams
        self._readers = {stream.fd: stream for stream in streams}
        self._congested = False
        self.ended = False
        self.status: int | None = None
        self._poll = poll = select.poll()
        poll.register(0, IN)
        for fd in self._readers:
            poll.register(fd, IN)
        if stdin >= 0:
            os.set_blocking(stdin, False)
            poll.register(stdin, OUT)
        self._watch = pidfd_open(pid)
        self._tick = 0.002
        if self._watch >= 0:
            self._tick = REAP_SECONDS
            poll.register(self._watch, IN)
        now = time.monotonic()
        self._reap_at, self._flush_at = now + self._tick, now + FLUSH_SECONDS

    def until(self, deadline: float) -> bool:
        """Attend until the leader ends; False when the deadline came first."""
        now = time.monotonic()
        while now < deadline:
            for fd, _ in self._poll.poll(int(min(deadline - now, self._tick) * 1000) + 1):
                self._event(fd)
            if self.ended:
                return True
            now = time.monotonic()
            if now >= self._reap_at:
                # Orphans are ours, and unreaped ones count against the container's pids limit.
                self._reap_at = now + self._tick
                self.status = reap(self._pid)
                if self.status is not None:
                    return True
            self._pass_on(now)
        return False

    def _event(self, fd: int) -> None:
        if fd in self._readers:
            if not self._readers[fd].read():
                self._poll.unregister(fd)
                del self._readers[fd]
        elif fd == self._watch:
            self.ended = True
        elif fd == 0:
            self._link.heard()
        elif fd == self._stdin:
            self._unsent = feed(fd, self._unsent)
            if not self._unsent:
                self._poll.unregister(fd)
                os.close(fd)
                self._stdin = -1

    def _pass_on(self, now: float) -> None:
        link = self._link
        if now >= self._flush_at and not self._congested:
            self._flush_at = now + FLUSH_SECONDS
            for stream in self._streams:
                stream.emit()
        elif link.size < FLUSH_BYTES and not self._congested:
            return
        behind = not link.push()
        if behind == self._congested:
            return
        self._congested = behind
        for fd in self._readers:
            self._poll.modify(fd, 0 if behind else IN)
        if behind:
            self._poll.register(1, OUT)
        else:
            self._poll.unregister(1)

    def close(self) -> None:
        """Let go of the descriptors that only attending needs."""
        for fd in (self._watch, self._stdin):
            if fd >= 0:
                os.close(fd)


def feed(fd: int, data: memoryview) -> memoryview:
    """Write to a case's standard input without blocking; empty when it needs no more."""
    try:
        while data:
            data = data[os.write(fd, data) :]
    except BlockingIOError:
        return data
    except OSError:
        return data[:0]  # the case closed it
    return data
