"""Starting a command as the case user."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` costs 8 ms of enums
import errno
import os

from .procfs import open_first, shields_init

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    Launch = Callable[[bytes, list[bytes], dict[bytes, bytes]], int]

DEFAULT_PATH = b"/usr/local/bin:/usr/bin:/bin"
S_IFMT, S_IFDIR = 0o170000, 0o040000
# What Python ignores or handles in the agent must be at its default in a case.
DEFAULT_SIGNALS = tuple(n for n in range(1, 65) if n not in (9, 19, 32, 33))


class CaseUser:
    """The credentials of cases: the agent has them inside a `with`, and root's outside."""

    __slots__ = ("gid", "uid")

    def __init__(self, uid: int, gid: int) -> None:
        self.uid = uid
        self.gid = gid

    # Both changes leave the saved id 0, so that the way back needs no capability of its own.
    def __enter__(self) -> None:
        os.setresgid(self.gid, self.gid, 0)
        os.setresuid(self.uid, self.uid, 0)

    def __exit__(self, *exc: object) -> None:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)


class Spawner:
    """Starts commands with the plan's environment, as better victims of the OOM killer."""

    def __init__(self, user: CaseUser, env_names: list[str]) -> None:
        self.user = user
        self.env = {
            name: os.environb[name] for name in map(os.fsencode, env_names) if name in os.environb
        }
        self._score_fd = open_first("/proc/self/oom_score_adj", flags=os.O_RDWR)
        own = 0 if self._score_fd < 0 else int(os.pread(self._score_fd, 16, 0))
        self._own_score = b"%d" % own
        self._case_score = b"%d" % min(1000, own + 500)
        self._shielded = shields_init()

    def spawn(self, command: dict[str, Any]) -> tuple[int, str | None, list[int]]:
        """Start a command.

        Returns:
            (pid, start error or None, [stdout reader, stderr reader, stdin writer or -1]).
        """
        ours: list[int] = []
        theirs: list[int] = []
        self._inherit(self._case_score)
        try:
            with self.user:
                actions = plumb(ours, theirs, stdin=command.get("stdin") is not None)
                if self._shielded:
                    return *self._start(command, spawning(actions)), ours
            return *self._fork(command, actions), ours
        finally:
            self._inherit(self._own_score)
            for fd in theirs:
                os.close(fd)

    def _fork(
        self, command: dict[str, Any], actions: list[tuple[Any, ...]]
    ) -> tuple[int, str | None]:
        """Start a command by a child that takes the case user's ids; the agent keeps its own."""
        reader, writer = os.pipe()
        try:
            pid = os.fork()
        except OSError as error:
            os.close(writer)
            os.close(reader)
            return 0, start_error(error.errno, b"")
        if pid == 0:
            self._become(command, actions, writer)
        os.close(writer)
        said = os.read(reader, 64)  # its end is the exec, which closes the other side
        os.close(reader)
        if not said:
            return pid, None
        os.waitpid(pid, 0)
        return 0, said.decode("ascii")

    def _become(
        self, command: dict[str, Any], actions: list[tuple[Any, ...]], writer: int
    ) -> NoReturn:
        """In the child: become the case, or say why not."""
        try:
            # No way back, unlike the agent's own changes.
            os.setresgid(self.user.gid, self.user.gid, self.user.gid)
            os.setresuid(self.user.uid, self.user.uid, self.user.uid)
            os.setsid()
            failure = self._start(command, executing(actions))[1]
            os.write(writer, (failure or "not_startable").encode("ascii"))
        finally:
            os._exit(127)

    def _start(self, command: dict[str, Any], launch: Launch) -> tuple[int, str | None]:
        """Find the program and launch it, all with the case user's ids."""
        try:
            env = self.env
            if command.get("env"):
                env = dict(env)
                for name, value in command["env"].items():
                    env[encode(name)] = encode(value)
            argv = [encode(item) for item in command["argv"]]
            cwd = encode(command["cwd"])
        except ValueError:
            return 0, "bad_argument"
        try:
            os.chdir(cwd)
        except (OSError, ValueError):
            return 0, "bad_cwd"
        path = argv[0]
        try:
            path = locate(path, env)
            pid = launch(path, argv, env)
        except ValueError:
            return 0, "bad_argument"
        except OSError as error:
            return 0, start_error(error.errno, path)
        return pid, None

    def _inherit(self, score: bytes) -> None:
        """Set the OOM score that the next spawned process inherits."""
        if self._score_fd >= 0:
            try:
                os.pwrite(self._score_fd, score, 0)
            except OSError:
                os.close(self._score_fd)
                self._score_fd = -1


def spawning(actions: list[tuple[Any, ...]]) -> Launch:
    """Launches a child of this process, which stays what it is."""

    def launch(path: bytes, argv: list[bytes], env: dict[bytes, bytes]) -> int:
        return os.posix_spawn(
            path, argv, env, file_actions=actions, setsid=True, setsigmask=(),
            setsigdef=DEFAULT_SIGNALS,
        )  # fmt: skip

    return launch


def executing(actions: list[tuple[Any, ...]]) -> Launch:
    """Launches in the place of this process, which is a child made for it."""

    def launch(path: bytes, argv: list[bytes], env: dict[bytes, bytes]) -> int:
        for action in actions:
            if action[0] == os.POSIX_SPAWN_OPEN:
                os.dup2(os.open(action[2], action[3]), action[1])
            else:
                os.dup2(action[1], action[2])
        for number in DEFAULT_SIGNALS:
            _signal.signal(number, _signal.SIG_DFL)
        _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
        os.execve(path, argv, env)  # noqa: S606  no shell is wanted

    return launch


def plumb(ours: list[int], theirs: list[int], *, stdin: bool) -> list[tuple[Any, ...]]:
    """Make the pipes of an execution; returns what the new process does with its ends.

    Call with the case user's credentials: a case may open /dev/stdout by name.
    """
    for _ in range(2):
        reader, writer = os.pipe()
        ours.append(reader)
        theirs.append(writer)
    actions: list[tuple[Any, ...]] = [
        (os.POSIX_SPAWN_DUP2, theirs[0], 1),
        (os.POSIX_SPAWN_DUP2, theirs[1], 2),
    ]
    if not stdin:
        ours.append(-1)
        return [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0), *actions]
    reader, writer = os.pipe()
    ours.append(writer)
    theirs.append(reader)
    return [(os.POSIX_SPAWN_DUP2, reader, 0), *actions]


def locate(program: bytes, env: dict[bytes, bytes]) -> bytes:
    """The program as the case user's PATH has it.

    Raises:
        OSError: There is none; its errno is what exec would give.
    """
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
