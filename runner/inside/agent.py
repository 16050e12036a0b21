"""The leg agent: PID 1 of a leg container, runs the cases of one plan and reports what it saw.

Standard library only, imports nothing of ours, Python >= 3.9: this one file is all of the product
that enters a leg. It is one file on purpose (one digest, one thing to read), and it avoids imports
that cost milliseconds at every container start (`json`, `signal`, `stat`, `hashlib` until needed).
The protocol and the reasons are in docs/adr/0003-agent-protocol.md; `runner.core.wire` is the
other side of it, `runner.core.treehash` the reference of the digest at the end of this file.

Two rules hold everything together. The agent is root with SETUID, SETGID and KILL, and takes the
credentials of the case user only around a spawn and for looking at what cases left: a case can
neither kill it, nor trace it, nor write to its output. And it never waits without also watching
its standard input: end-of-file there means that the orchestrator is gone, and so is the agent.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` costs 8 ms of enums
import binascii
import errno
import os
import select
import sys
import time

try:
    from _sha256 import sha256 as small_sha256  # type: ignore[import-not-found]
except ImportError:  # Python >= 3.12
    try:
        from _sha2 import sha256 as small_sha256  # type: ignore[import-not-found]
    except ImportError:
        from hashlib import sha256 as small_sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EXIT_FATAL = 95
EXIT_ORPHANED = 96
EXIT_REFUSED = 97

MARKER = "AO_AGENT_CONTAINER"
AGENT_TARGET = "/ao"
MAX_PLAN = 64 << 20
MAX_FRAME = 256 << 10
FLUSH_BYTES = 48 << 10
FLUSH_SECONDS = 0.05
READ_BYTES = 64 << 10
SMALL_HASH = 32 << 10
REAP_SECONDS = 0.02
SWEEP_SECONDS = 30.0
MAX_USAGE = 4096
DEFAULT_PATH = b"/usr/local/bin:/usr/bin:/bin"

IN, OUT = select.POLLIN, select.POLLOUT
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
S_IFMT, S_IFDIR, S_IFREG, S_IFLNK = 0o170000, 0o040000, 0o100000, 0o120000
SIGINT, SIGKILL = 2, 9
# What Python ignores or handles in the agent must be at its default in a case.
DEFAULT_SIGNALS = tuple(n for n in range(1, 65) if n not in (9, 19, 32, 33))
PSEUDO = frozenset(
    b"proc sysfs cgroup cgroup2 mqueue devpts debugfs tracefs securityfs bpf pstore".split()
)
PROBED = (
    "/", "/ao", "/ao-upper", "/bin", "/boot", "/context", "/context/agents", "/dev", "/dev/mqueue",
    "/dev/shm", "/etc", "/home", "/home/case", "/hooks", "/lib", "/media", "/mnt", "/opt", "/proc",
    "/proc/sys", "/root", "/run", "/sbin", "/srv", "/sys", "/sys/fs/cgroup", "/tmp", "/usr",
    "/usr/local", "/usr/local/bin", "/var", "/var/lib", "/var/tmp", "/workspace",
)  # fmt: skip


class Fatal(Exception):
    """The leg cannot go on; `args[0]` is a bare token, `args[1]` a sentence."""


# ---------------------------------------------------------------------------------------- JSON


class _Context:
    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def parse_json(text: str) -> Any:
    """Parse one JSON document with the C scanner alone: importing `json` costs 10 ms."""
    text = text.strip(" \t\r\n")
    try:
        from _json import make_scanner

        scan = make_scanner(_Context())  # type: ignore[arg-type]
    except (ImportError, AttributeError, TypeError):  # another Python than the usual ones
        import json

        return json.loads(text)
    try:
        value, end = scan(text, 0)
    except StopIteration:
        raise ValueError("not JSON") from None
    if end != len(text):
        raise ValueError("extra data after JSON")
    return value


def quote(text: str) -> bytes:
    """A JSON string literal, ASCII only."""
    try:
        from _json import encode_basestring_ascii
    except ImportError:
        import json

        return json.dumps(text).encode("ascii")
    literal: str = encode_basestring_ascii(text)
    return literal.encode("ascii")


def json_map(values: dict[str, str]) -> bytes:
    """A JSON object of strings, ordered by name."""
    return b"{%s}" % b",".join(quote(k) + b":" + quote(values[k]) for k in sorted(values))


def json_list(values: list[str]) -> bytes:
    """A JSON array of strings."""
    return b"[%s]" % b",".join(map(quote, values))


def json_text(value: str | None) -> bytes:
    """A JSON string or null."""
    return b"null" if value is None else quote(value)


def json_flag(value: object) -> bytes:
    """A JSON boolean or null."""
    return b"null" if value is None else b"true" if value else b"false"


# ------------------------------------------------------------------------------------ container


def read_file(path: str) -> bytes:
    """The whole of a small file; empty when it cannot be read (procfs entries may be missing)."""
    try:
        with open(path, "rb", buffering=0) as stream:
            return stream.read()
    except OSError:
        return b""


def mounts() -> list[tuple[bytes, bytes, bool]]:
    """(target, file system type, read-only) of every mount, from mountinfo."""
    found = []
    for line in read_file("/proc/self/mountinfo").split(b"\n"):
        left, _, right = line.partition(b" - ")
        fields, source = left.split(b" "), right.split(b" ")
        if len(fields) < 6 or len(source) < 3:
            continue
        target = fields[4]
        for escape, char in ((b"\\040", b" "), (b"\\011", b"\t"), (b"\\012", b"\n")):
            target = target.replace(escape, char)
        target = target.replace(b"\\134", b"\\")
        read_only = b"ro" in fields[5].split(b",") or b"ro" in source[2].split(b",")
        found.append((target, source[0], read_only))
    return sorted(found)


def contained() -> bool:
    """Whether `kill(-1)` reaches the processes of a leg container and nothing else.

    PID 1, the marker of the container's configuration, a read-only root and the agent's folder
    as a read-only mount of its own: no host's init, no `docker exec`, no shell has all four.
    """
    if os.getpid() != 1 or os.environ.get(MARKER) != "1":
        return False
    top = {target: read_only for target, _, read_only in mounts()}  # the last mount wins
    return top.get(b"/", False) and top.get(AGENT_TARGET.encode(), False)


# ----------------------------------------------------------------------------------------- link


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


class Digest:
    """SHA-256 of a stream: the small module's for little data, OpenSSL's for much."""

    __slots__ = ("_large", "_parts", "_size")

    def __init__(self) -> None:
        self._large: Any = None
        self._parts: list[bytes] = []
        self._size = 0

    def update(self, data: bytes) -> None:
        """Add bytes."""
        if self._large is None:
            self._parts.append(data)
            self._size += len(data)
            if self._size <= SMALL_HASH:
                return
            import hashlib  # 5 ms, and eight times as fast

            self._large = hashlib.sha256()
            data = b"".join(self._parts)
            self._parts = []
        self._large.update(data)

    def hex(self) -> str:
        """Hexadecimal digest of all bytes so far."""
        done = self._large or small_sha256(b"".join(self._parts))
        text: str = done.hexdigest()
        return text


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


# ------------------------------------------------------------------------------------ execution


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


class Agent:
    """One plan in one container."""

    def __init__(self, link: Link, plan: dict[str, Any]) -> None:
        self.link = link
        self.plan = plan
        self.uid: int = plan["uid"]
        self.gid: int = plan["gid"]
        self.stream_limit: int = plan["limits"]["stream_bytes"]
        self.file_limit: int = plan["limits"]["file_bytes"]
        self.hash_limit: int = plan["limits"]["hash_bytes"]
        self.env = {
            name: os.environb[name]
            for name in (os.fsencode(n) for n in plan["env_names"])
            if name in os.environb
        }
        self.pseudo_devices = set()
        for target, kind, _ in mounts():
            if kind in PSEUDO:
                try:
                    self.pseudo_devices.add(os.stat(target).st_dev)
                except OSError:
                    continue
        self.oom_fd = open_first(
            "/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory.events"
        )
        self.oom_seen = self.oom_kills()
        # Cases are better victims of the OOM killer than their agent.
        self.score_fd = open_first("/proc/self/oom_score_adj", flags=os.O_RDWR)
        own_score = 0 if self.score_fd < 0 else int(os.pread(self.score_fd, 16, 0))
        self.own_score = b"%d" % own_score
        self.case_score = b"%d" % min(1000, own_score + 500)
        self.ipc_fds = [
            fd for fd in map(open_first, ("/proc/sysvipc/shm", "/proc/sysvipc/sem",
                                          "/proc/sysvipc/msg")) if fd >= 0
        ]  # fmt: skip
        self.scratch: list[tuple[int, os.stat_result]] = []
        self.upper_fd = -1
        self.upper_seen: tuple[int, int, int] | None = None
        self.upper_touched = False

    # Both changes leave the saved id 0, so that the way back needs no capability of its own.
    def as_case(self) -> None:
        """Take the credentials of the case user."""
        os.setresgid(self.gid, self.gid, 0)
        os.setresuid(self.uid, self.uid, 0)

    def as_root(self) -> None:
        """Take root's credentials back."""
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)

    def oom_kills(self) -> int | None:
        """The container's OOM kill counter; None when the kernel does not show it."""
        if self.oom_fd < 0:
            return None
        try:
            fields = os.pread(self.oom_fd, 4096, 0).split()
            return int(fields[fields.index(b"oom_kill") + 1])
        except (OSError, ValueError, IndexError):
            return None

    def inherit(self, score: bytes) -> None:
        """Set the OOM score that the next spawned process inherits."""
        if self.score_fd >= 0:
            try:
                os.pwrite(self.score_fd, score, 0)
            except OSError:
                os.close(self.score_fd)
                self.score_fd = -1

    def locate(self, program: bytes, env: dict[bytes, bytes]) -> bytes:
        """The program as the case user's PATH has it, or a start error token as OSError text."""
        if b"/" in program:
            return program
        error = errno.ENOENT
        for folder in env.get(b"PATH", DEFAULT_PATH).split(b":"):
            path = (folder or b".") + b"/" + program
            if os.access(path, os.X_OK):
                if os.stat(path).st_mode & S_IFMT != S_IFDIR:
                    return path
                error = errno.EACCES
            elif os.access(path, os.F_OK):
                error = errno.EACCES
        raise OSError(error, "program")

    def spawn(self, command: dict[str, Any]) -> tuple[int, str | None, list[int]]:
        """Start a command as the case user.

        Returns:
            (pid, start error or None, [stdout reader, stderr reader, stdin writer or -1]).
        """
        text = command.get("stdin")
        pid, failure = 0, None
        ours: list[int] = []
        theirs: list[int] = []
        self.inherit(self.case_score)
        self.as_case()
        try:
            # Pipes belong to the case user: a case may open /dev/stdout by name.
            for _ in range(2):
                reader, writer = os.pipe()
                ours.append(reader)
                theirs.append(writer)
            actions: list[tuple[Any, ...]] = [
                (os.POSIX_SPAWN_DUP2, theirs[0], 1),
                (os.POSIX_SPAWN_DUP2, theirs[1], 2),
            ]
            if text is None:
                ours.append(-1)
                actions.insert(0, (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0))
            else:
                reader, writer = os.pipe()
                ours.append(writer)
                theirs.append(reader)
                actions.insert(0, (os.POSIX_SPAWN_DUP2, reader, 0))
            try:
                env = self.env
                if command.get("env"):
                    env = dict(env)
                    for name, value in command["env"].items():
                        env[encode(name)] = encode(value)
                argv = [encode(item) for item in command["argv"]]
                cwd = encode(command["cwd"])
            except ValueError:
                return 0, "bad_argument", ours
            try:
                os.chdir(cwd)
            except (OSError, ValueError):
                return 0, "bad_cwd", ours
            path = argv[0]
            try:
                path = self.locate(argv[0], env)
                pid = os.posix_spawn(
                    path, argv, env, file_actions=actions, setsid=True, setsigmask=(),
                    setsigdef=DEFAULT_SIGNALS,
                )  # fmt: skip
            except ValueError:
                failure = "bad_argument"
            except OSError as error:
                failure = start_error(error.errno, path)
        finally:
            self.as_root()
            self.inherit(self.own_score)
            for fd in theirs:
                os.close(fd)
        return pid, failure, ours

    def execute(self, case: int, number: int, command: dict[str, Any], timeout: int) -> bytes:
        """Run one command from start to the last process killed; returns its facts as JSON."""
        link = self.link
        started = time.monotonic()
        pid, failure, fds = self.spawn(command)
        streams = []
        for name, fd in ((1, fds[0]), (2, fds[1])):
            os.set_blocking(fd, False)
            head = b'"t":"out","c":%d,"x":%d,"f":%d' % (case, number, name)
            streams.append(Stream(link, head, fd, self.stream_limit))
        timed_out = False
        status, stragglers = 0, 0
        if failure is None:
            data = command["stdin"].encode("utf-8", "surrogatepass") if fds[2] >= 0 else b""
            attendance = Attendance(link, pid, streams, fds[2], data)
            timed_out = not attendance.until(started + timeout)
            attendance.close()
            status, stragglers = self.sweep(pid, attendance.status)
        elif fds[2] >= 0:
            os.close(fds[2])
        for stream in streams:
            while stream.read():
                link.pace()
            os.close(stream.fd)
            stream.emit()
        kills = self.oom_kills()
        oom = None if kills is None or self.oom_seen is None else kills > self.oom_seen
        self.oom_seen = kills
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

    def sweep(self, leader: int, status: int | None) -> tuple[int, int]:
        """Kill and reap every process of the container but the agent.

        Returns:
            (wait status of the leader, rounds after its end that still found something alive).
        """
        rounds = 0
        give_up = 0.0
        while True:
            found = reap(leader)  # first: kill(-1) counts zombies as processes
            status = found if status is None else status
            try:
                os.kill(-1, SIGKILL)
            except ProcessLookupError:
                return status or 0, rounds
            if status is not None:
                rounds += 1
            if not give_up:
                give_up = time.monotonic() + SWEEP_SECONDS
            elif time.monotonic() > give_up:
                raise Fatal("unkillable", "processes of a case survive SIGKILL")
            self.link.check()
            time.sleep(0.0002)

    # -------------------------------------------------------------------- what a case left behind

    def snapshot(self, case: int, index: int, path: str) -> None:
        """Report one file as the case user sees it.

        Call with the case user's credentials and no process of the case alive: nothing can change
        between the looks.
        """
        state, size, kept, digest = "absent", 0, 0, None
        fd = -1
        try:
            raw = encode(path)
            seen = os.stat(raw)
            kind = seen.st_mode & S_IFMT
            if kind == S_IFDIR:
                state = "directory"
            elif kind != S_IFREG or seen.st_dev in self.pseudo_devices:
                state = "other"  # never opened: a FIFO or device may block or act
            else:
                state = "unreadable"
                flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
                fd = os.open(raw, flags)
                again = os.fstat(fd)
                if (again.st_dev, again.st_ino) == (seen.st_dev, seen.st_ino):
                    size = again.st_size
                    kept, digest, read = self.read_regular(fd, size, case, index)
                    state = "regular" if read else "unreadable"
        except ValueError:
            state = "absent"  # a name that cannot exist
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                state = "unreadable"
        finally:
            if fd >= 0:
                os.close(fd)
        body = b'"t":"file","c":%d,"i":%d,"st":%s,"z":%d,"kp":%d,"h":%s'
        self.link.frame(body % (case, index, quote(state), size, kept, json_text(digest)))

    def read_regular(
        self, fd: int, size: int, case: int, index: int
    ) -> tuple[int, str | None, bool]:
        """Pass the leading bytes on and hash the rest, up to the bound; beyond it no digest.

        Returns:
            (bytes passed on, digest of all bytes or None, whether reading went well).
        """
        whole = size <= self.hash_limit
        wanted = size if whole else min(size, self.file_limit)
        digest = Digest()
        done = kept = 0
        while done < wanted:
            try:
                data = os.read(fd, min(READ_BYTES, wanted - done))
            except OSError:
                data = b""
            if not data:
                return kept, None, False
            done += len(data)
            digest.update(data)
            part = data[: max(0, self.file_limit - kept)]
            if part:
                kept += len(part)
                encoded = binascii.b2a_base64(part, newline=False)
                self.link.frame(b'"t":"data","c":%d,"i":%d,"d":"%s"' % (case, index, encoded))
                self.link.pace()
            self.link.check()
        return kept, digest.hex() if whole else None, True

    def usage(self) -> bytes:
        """What the case wrote to its usage file, as JSON: two counts, or null for anything odd."""
        path = self.plan["usage_file"]
        fd = -1
        try:
            seen = os.stat(path)
            if seen.st_mode & S_IFMT != S_IFREG or seen.st_dev in self.pseudo_devices:
                return b"null"
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
            data = os.read(fd, MAX_USAGE + 1)
            if len(data) > MAX_USAGE:
                return b"null"
            found = parse_json(data.decode("utf-8"))
            counts = {}
            for name in ("tokens", "tool_calls"):
                if name in found:
                    count = found[name]
                    if type(count) is not int or not 0 <= count < 1 << 53:
                        return b"null"
                    counts[name] = count
            if type(found) is not dict or not counts:
                return b"null"
            return b"{%s}" % b",".join(b'"%s":%d' % (k.encode(), v) for k, v in counts.items())
        except (OSError, ValueError, TypeError, RecursionError):
            return b"null"
        finally:
            if fd >= 0:
                os.close(fd)

    def open_scratch(self) -> None:
        """Hold every scratch folder open: a case may take its mode bits away, not the handle."""
        self.as_case()
        try:
            for path in [*self.plan["scratch"], "/dev/mqueue"]:
                try:
                    fd = os.open(path, DIRECTORY)
                except FileNotFoundError:
                    continue
                self.scratch.append((fd, os.fstat(fd)))
        finally:
            self.as_root()

    def empty_scratch(self) -> bool:
        """Empty the scratch folders and reset their own attributes, as the case user.

        Returns:
            False when something stays: the next case needs a fresh container.
        """
        clean = True
        for fd, first in self.scratch:
            try:
                owned = first.st_uid == self.uid
                if owned and os.fstat(fd).st_mode != first.st_mode:
                    os.fchmod(fd, first.st_mode & 0o7777)  # else nothing below can be removed
                clean = clear_folder(fd, self.link) and clean
                if owned:
                    for name in list_attributes(fd):
                        os.removexattr(fd, name)
                    if os.fstat(fd).st_mtime_ns != first.st_mtime_ns:
                        os.utime(fd, ns=(first.st_mtime_ns, first.st_mtime_ns))
            except OSError:
                clean = False
        for fd in self.ipc_fds:
            try:
                if os.pread(fd, 4096, 0).count(b"\n") > 1:  # more than the heading
                    clean = False
            except OSError:
                clean = False
        return clean

    def open_upper(self) -> None:
        """Remember the workspace's upper layer as it is before the first case."""
        if self.plan["upper"] is None:
            return
        self.as_case()
        try:
            self.upper_fd = os.open(self.plan["upper"], DIRECTORY)
            self.upper_seen = stamp(self.upper_fd)
            with os.scandir(self.upper_fd) as entries:
                self.upper_touched = any(True for _ in entries)
        finally:
            self.as_root()
        if self.upper_touched and not self.plan["share_workspace"]:
            raise Fatal("workspace_not_clean", "the workspace was written to before the first case")

    def wrote_workspace(self) -> bool | None:
        """Whether the case wrote to the workspace; None when that cannot be told.

        Every change of an overlay shows in its upper layer's root: a new entry, or for a change
        that was taken back the folder's own times and mode. Once there are entries, a write
        below them does not, so after the first write of a shared workspace only True is certain.
        """
        if self.upper_fd < 0:
            return None
        now = stamp(self.upper_fd)
        changed = now != self.upper_seen
        self.upper_seen = now
        if changed:
            self.upper_touched = True
            return True
        return None if self.upper_touched else False

    def run_case(self, case: dict[str, Any], *, last: bool) -> str | None:
        """Run one case; returns why the next one needs a fresh container, or None."""
        link, index = self.link, case["index"]
        command, timeout = case["command"], case["timeout_seconds"]
        link.frame(b'"t":"start","c":%d' % index)
        facts = b"null" if command is None else self.execute(index, 0, command, timeout)
        usage = b"null"
        self.as_case()
        try:
            for number, path in enumerate(case["files"]):
                self.snapshot(index, number, path)
            if command is not None and self.plan["usage_file"] is not None:
                usage = self.usage()
        finally:
            self.as_root()
        for number, probe in enumerate(case["probes"], 1):
            body = b'"t":"exec","c":%d,"x":%d,"e":%s'
            link.frame(body % (index, number, self.execute(index, number, probe, timeout)))
        ran = command is not None or bool(case["probes"])
        clean, wrote = True, False if not ran else self.wrote_workspace()
        if ran and not (last and self.plan["hold_seconds"]):
            os.chdir("/")
            self.as_case()
            try:
                clean = self.empty_scratch()
            finally:
                self.as_root()
        body = b'"t":"end","c":%d,"e":%s,"u":%s,"w":%s'
        link.frame(body % (index, facts, usage, json_flag(wrote)))
        link.pace()
        if wrote is not False and not self.plan["share_workspace"]:
            return "dirty"
        return None if clean else "leftover"

    # ---------------------------------------------------------------------------- what it reports

    def root_digest(self) -> str | None:
        """Content digest of the context root as the case user reads it; None when it cannot."""
        root = self.plan["context_root"]
        if root is None:
            return None
        self.as_case()
        try:
            return tree_digest(os.fsencode(root), self.link)
        except OSError:
            return None
        finally:
            self.as_root()

    def env_digests(self) -> bytes:
        """Digests of the values of the environment that cases start with."""
        digests = {}
        for name, value in self.env.items():
            digests[name.decode("utf-8", "replace")] = small_sha256(value).hexdigest()
        return json_map(digests)

    def case_status(self) -> dict[bytes, bytes]:
        """`/proc/self/status` of a process started as cases are."""
        command = {"argv": ["/bin/cat", "/proc/self/status"], "cwd": "/"}
        pid, failure, fds = self.spawn(command)
        if failure is not None:
            raise Fatal("probe_failed", "/bin/cat cannot be started as the case user: " + failure)
        text = b""
        while True:
            data = os.read(fds[0], READ_BYTES)
            if not data:
                break
            text += data
        os.close(fds[0])
        os.close(fds[1])
        self.sweep(pid, None)
        status = parse_status(text)
        ids = [int(item) for name in (b"Uid", b"Gid") for item in status.get(name, b"").split()]
        if ids != [self.uid] * 4 + [self.gid] * 4 or status.get(b"Groups", b"").strip():
            raise Fatal("case_user_wrong", "a case does not run as the plain case user")
        return status

    def writable(self) -> list[str]:
        """Folders in which the case user can create a file.

        The workspace is asked, not tried: a file there would leave a trace in its upper layer.
        """
        found = []
        name = b"/.ao-probe-" + self.link.nonce[:16]
        targets = {target for target, _, _ in mounts()}
        self.as_case()
        try:
            for path in sorted(targets.union(map(os.fsencode, [*PROBED, *self.plan["scratch"]]))):
                text = path.decode("utf-8", "backslashreplace")
                if path == b"/workspace" or path.startswith(b"/workspace/"):
                    if os.access(path, os.W_OK):
                        found.append(text)
                    continue
                try:
                    made = path.rstrip(b"/") + name
                    os.close(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC))
                    found.append(text)
                    os.unlink(made)
                except OSError:
                    continue
        finally:
            self.as_root()
        return found

    def hello(self) -> None:
        """Report what is seen from inside, before the first case."""
        own, case = parse_status(read_file("/proc/self/status")), self.case_status()
        sets = (b"CapInh", b"CapPrm", b"CapEff", b"CapAmb")
        held = 0
        for name in sets:
            held |= int(case[name], 16)
        shown = []
        for target, kind, read_only in mounts():
            place = target.decode("utf-8", "backslashreplace")
            access = "ro" if read_only else "rw"
            shown.append(f"{place} {kind.decode('ascii', 'replace')} {access}")
        self.link.frame(
            b'"t":"hello","r":{"agent_sha256":%s,"uid":%d,"case_uid":%d,"capabilities":"%s",'
            b'"case_capabilities":"%016x","no_new_privs":%s,"seccomp":%d,"interfaces":%s,'
            b'"routes":%d,"mounts":%s,"writable":%s,"context_root_sha256":%s,'
            b'"environment_sha256":%s,"kernel":%s,"python":"%d.%d.%d"}'
            % (
                quote(small_sha256(read_file(sys.argv[0])).hexdigest()),
                os.getuid(),
                self.uid,
                own[b"CapEff"].strip(),
                held,
                json_flag(case.get(b"NoNewPrivs", b"0").strip() == b"1"),
                int(case.get(b"Seccomp", b"0")),
                json_list(interfaces()),
                routes(),
                json_list(shown),
                json_list(self.writable()),
                json_text(self.root_digest()),
                self.env_digests(),
                quote(os.uname().release),
                *sys.version_info[:3],
            )
        )
        self.link.push()

    def run(self) -> None:
        """The whole leg: hello, the cases, bye."""
        self.hello()
        self.open_scratch()
        self.as_case()
        try:
            if not self.empty_scratch():
                raise Fatal("scratch_not_clean", "scratch cannot be emptied before the first case")
        finally:
            self.as_root()
        self.open_upper()
        cases = self.plan["cases"]
        reason, done = "done", 0
        for case in cases:
            done += 1
            why = self.run_case(case, last=done == len(cases))
            if why is not None and done < len(cases):
                reason = why
                break
        self.link.frame(
            b'"t":"bye","w":"%s","ctx":%s,"env":%s,"n":%d'
            % (reason.encode(), json_text(self.root_digest()), self.env_digests(), done)
        )
        self.link.flush()
        if reason == "done" and self.plan["hold_seconds"]:
            hold(self.plan["hold_seconds"])


def encode(text: str) -> bytes:
    """Text of the plan as bytes for the kernel; ValueError for what it cannot take."""
    if "\0" in text:
        raise ValueError("embedded null character")
    return text.encode("utf-8", "surrogateescape")


def start_error(number: int | None, path: bytes) -> str:
    """Bare token for an errno of exec. A script without its interpreter gives ENOENT too."""
    if number in (errno.ENOENT, errno.ENOTDIR):
        return "not_executable" if os.access(path, os.F_OK) and b"/" in path else "not_found"
    if number in (errno.EACCES, errno.EPERM, errno.ENOEXEC, errno.ELOOP, errno.EISDIR):
        return "not_executable"
    if number == errno.E2BIG:
        return "arguments_too_large"
    if number in (errno.EAGAIN, errno.ENOMEM, errno.ENFILE, errno.EMFILE):
        return "no_resources"
    return "not_startable"


def pidfd_open(pid: int) -> int:
    """A descriptor that is readable when the process ends; -1 where the kernel has none."""
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):
        return -1


def reap(leader: int) -> int | None:
    """Reap every zombie; returns the leader's wait status if it was among them."""
    status = None
    try:
        while True:
            pid, found = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return status
            if pid == leader:
                status = found
    except ChildProcessError:
        return status


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


def open_first(*paths: str, flags: int = os.O_RDONLY) -> int:
    """The first of some kernel files that can be opened, or -1."""
    for path in paths:
        try:
            return os.open(path, flags | os.O_CLOEXEC)
        except OSError:
            continue
    return -1


def stamp(fd: int) -> tuple[int, int, int]:
    """What changes when anything is done to a folder or its entries."""
    seen = os.fstat(fd)
    return seen.st_mtime_ns, seen.st_ctime_ns, seen.st_mode


def list_attributes(fd: int) -> list[str]:
    """Extended attributes; none where the file system has none."""
    try:
        return os.listxattr(fd)
    except OSError:
        return []


def clear_folder(fd: int, link: Link) -> bool:
    """Remove everything below an open folder; True when it is empty.

    Sub-folders are hoisted into the folder itself before they are removed, so neither depth nor
    path length matters, and two descriptors suffice. The new names carry the nonce: nobody can
    have taken them.
    """
    serial = 0
    while True:
        empty, progress = True, False
        with os.scandir(fd) as entries:
            for entry in entries:
                empty = False
                serial += 1
                if serial & 1023 == 0:
                    link.check()
                try:
                    if not entry.is_dir(follow_symlinks=False):
                        os.unlink(entry.name, dir_fd=fd)
                        progress = True
                        continue
                    os.chmod(entry.name, 0o700, dir_fd=fd)
                    inner = os.open(entry.name, DIRECTORY, dir_fd=fd)
                    try:
                        with os.scandir(inner) as children:
                            for child in children:
                                serial += 1
                                if serial & 1023 == 0:
                                    link.check()
                                if child.is_dir(follow_symlinks=False):
                                    os.chmod(child.name, 0o700, dir_fd=inner)
                                    name = f"ao-{link.nonce.decode()}-{serial}"
                                    os.rename(child.name, name, src_dir_fd=inner, dst_dir_fd=fd)
                                else:
                                    os.unlink(child.name, dir_fd=inner)
                                progress = True
                    finally:
                        os.close(inner)
                    os.rmdir(entry.name, dir_fd=fd)
                    progress = True
                except OSError:
                    continue  # whether it matters shows in the next pass
        if empty or not progress:
            return empty


def parse_status(text: bytes) -> dict[bytes, bytes]:
    """Fields of /proc/PID/status."""
    return dict(line.split(b":", 1) for line in text.split(b"\n") if b":" in line)


def interfaces() -> list[str]:
    """Names of the network interfaces."""
    lines = read_file("/proc/net/dev").split(b"\n")[2:]
    return sorted(line.split(b":")[0].strip().decode("ascii", "replace") for line in lines if line)


def routes() -> int:
    """Number of IPv4 and IPv6 routes that do not go through the loopback interface."""
    four = read_file("/proc/net/route").split(b"\n")[1:]
    six = read_file("/proc/net/ipv6_route").split(b"\n")
    count = sum(1 for line in four if line.strip() and line.split()[0] != b"lo")
    return count + sum(1 for line in six if line.strip() and line.split()[-1] != b"lo")


def tree_digest(root: bytes, link: Link) -> str:
    """Content digest `ao-tree-v1` of the tree below `root`; `runner.core.treehash` defines it.

    Raises:
        OSError: Something cannot be read, or is neither file, folder nor link.
    """
    records = []
    waiting = [b""]
    while waiting:
        folder = waiting.pop()
        with os.scandir(root + b"/" + folder) as entries:
            for entry in entries:
                link.check()
                path = folder + entry.name
                kind, execute, content = b"f", b"-", b""
                if entry.is_symlink():
                    kind = b"l"
                    content = small_sha256(os.readlink(entry.path)).hexdigest().encode()
                elif entry.is_dir(follow_symlinks=False):
                    kind = b"d"
                    waiting.append(path + b"/")
                else:
                    content, executable = file_digest(entry.path)
                    execute = b"x" if executable else b"-"
                head = kind + execute + len(path).to_bytes(4, "big")
                records.append((path, head, content))
    total = Digest()
    total.update(b"ao-tree-v1\0")
    for path, head, content in sorted(records):
        total.update(head + path + content)
    return total.hex()


def file_digest(path: bytes) -> tuple[bytes, bool]:
    """(hexadecimal digest, owner may execute) of a regular file; OSError for anything else."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(fd).st_mode
        if mode & S_IFMT != S_IFREG:
            raise OSError(errno.EINVAL, "not a regular file")
        digest = Digest()
        while True:
            data = os.read(fd, READ_BYTES)
            if not data:
                return digest.hex().encode(), bool(mode & 0o100)
            digest.update(data)
    finally:
        os.close(fd)


def hold(seconds: int) -> None:
    """Stay for a user who wants to look around: reap, kill nothing, mind nobody."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        reap(0)
        time.sleep(0.2)


def main() -> int:
    """Run as PID 1 of a leg container, or refuse."""
    if not contained():
        os.write(2, b"agent: refused: this is not PID 1 of a leg container\n")
        return EXIT_REFUSED
    _signal.signal(SIGINT, _signal.SIG_IGN)
    link = Link()
    try:
        plan = parse_json(link.read_plan())
        if plan["v"] != 1:
            raise Fatal("version", "the plan is of another protocol version")
        link.nonce = plan["nonce"].encode("ascii")
        if os.getuid() != 0 or plan["uid"] == 0 or plan["gid"] == 0:
            raise Fatal("credentials", "the agent must be root and its cases must not")
        os.umask(0o022)
        os.setgroups([])
        Agent(link, plan).run()
        return 0
    except Exception as error:  # noqa: BLE001  # PID 1 must say why it ends
        token = error.args[0] if isinstance(error, Fatal) else "internal"
        text = error.args[1] if isinstance(error, Fatal) else repr(error)[:2000]
        os.write(2, b"agent: %s: %s\n" % (token.encode(), text.encode("utf-8", "replace")))
        if link.nonce:
            link.frame(b'"t":"fatal","w":"%s","m":%s' % (token.encode(), quote(text)))
            link.flush()
        return EXIT_FATAL


if __name__ == "__main__":
    os._exit(main())
