"""One command from its start to the last process killed."""

from __future__ import annotations

import os
import time

from .jsontext import json_flag, json_text
from .processes import sweep
from .procfs import open_first
from .streams import Attendance, Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .link import Link
    from .spawn import Spawner


class Executor:
    """Runs commands one after the other; nothing of one is alive when the next starts."""

    def __init__(self, link: Link, spawner: Spawner) -> None:
        self._link = link
        self._spawner = spawner
        self._oom = OomCounter()

    def execute(self, head: bytes, command: dict[str, Any], timeout: int, limit: int) -> bytes:
        """Run one command to its end; returns its facts as JSON.

        Args:
            head: Leading fields of the frames with its output: type, case and which execution.
            command: The command as the plan has it.
            timeout: Seconds until everything is killed.
            limit: Bytes of each output stream that are passed on.
        """
        link = self._link
        started = time.monotonic()
        pid, failure, fds = self._spawner.spawn(command)
        streams = []
        for name, fd in ((1, fds[0]), (2, fds[1])):
            os.set_blocking(fd, False)
            streams.append(Stream(link, b'%s,"f":%d' % (head, name), fd, limit))
        timed_out = False
        status, stragglers = 0, 0
        if failure is None:
            data = command["stdin"].encode("utf-8", "surrogatepass") if fds[2] >= 0 else b""
            attendance = Attendance(link, pid, streams, fds[2], data)
            timed_out = not attendance.until(started + timeout)
            attendance.close()
            status, stragglers = sweep(link, pid, attendance.status)
        elif fds[2] >= 0:
            os.close(fds[2])
        for stream in streams:
            while stream.read():
                link.pace()
            os.close(stream.fd)
            stream.emit()
        oom = self._oom.risen()
        code = sign = b"null"
        if failure is None:
            if os.WIFSIGNALED(status):
                sign = b"%d" % os.WTERMSIG(status)
            else:
                code = b"%d" % os.WEXITSTATUS(status)
        return b'{"x":%s,"g":%s,"to":%s,"oom":%s,"err":%s,"ms":%d,"st":%d,"o":%s,"e":%s}' % (
            code,
            sign,
            json_flag(timed_out),
            json_flag(oom),
            json_text(failure),
            round((time.monotonic() - started) * 1000),
            stragglers,
            streams[0].facts(),
            streams[1].facts(),
        )


class OomCounter:
    """The container's own count of OOM kills."""

    __slots__ = ("_fd", "_seen")

    def __init__(self) -> None:
        self._fd = open_first(
            "/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory.events"
        )
        self._seen = self._read()

    def risen(self) -> bool | None:
        """Whether it rose since the last look; None when the kernel does not show it."""
        kills, seen = self._read(), self._seen
        self._seen = kills
        return None if kills is None or seen is None else kills > seen

    def _read(self) -> int | None:
        if self._fd < 0:
            return None
        try:
            fields = os.pread(self._fd, 4096, 0).split()
            return int(fields[fields.index(b"oom_kill") + 1])
        except (OSError, ValueError, IndexError):
            return None
