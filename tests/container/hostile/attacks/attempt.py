"""Inside a leg: what an attempt came to. The modules of this folder run in legs, on the stdlib."""

from __future__ import annotations

import ctypes
import errno
import json
import os
from collections.abc import Callable, Mapping

DONE = "done"
LIBC = ctypes.CDLL(None, use_errno=True)


def tried(action: Callable[[], object]) -> str:
    """`done`, or the name of the errno."""
    try:
        action()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, type(error).__name__)
    return DONE


def called(name: str, *arguments: object) -> str:
    """A function of libc: `done` unless it returned -1."""
    ctypes.set_errno(0)
    return _outcome(int(getattr(LIBC, name)(*map(_c, arguments))))


def system_call(number: int, *arguments: object) -> str:
    """A system call by its number: `done` unless it returned -1."""
    ctypes.set_errno(0)
    LIBC.syscall.restype = ctypes.c_long
    return _outcome(int(LIBC.syscall(ctypes.c_long(number), *map(_c, arguments))))


def opened(path: str | bytes, flags: int) -> str:
    """Whether a path can be opened; nothing is written to it."""
    return tried(lambda: os.close(os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY, 0o600)))


def apart(action: Callable[[], str]) -> str:
    """What came of an attempt in a process of its own: what it gained is gone with it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, action().encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return text or "died"


def report(facts: Mapping[str, object]) -> None:
    """Print what was found as one JSON document."""
    print(json.dumps(facts, sort_keys=True))


def _outcome(result: int) -> str:
    return DONE if result != -1 else errno.errorcode.get(ctypes.get_errno(), "none")


def _c(argument: object) -> object:
    return ctypes.c_long(argument) if isinstance(argument, int) else argument
