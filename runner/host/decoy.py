"""The positive control: mutations planted by another process in decoy trees, to be flagged.

A detector that was never seen to fire is no evidence. The planter is a process of its own, not a
child of the runner: it forks and its parent ends. It makes the trees, mutates them when it is
told, lives until the writes have been looked at, and takes the trees away when its standard input
ends, so that nothing is left when the runner is killed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from runner.errors import IntegrityError
from runner.host.inotify import below_any, existing_above
from runner.host.removal import remove
from runner.host.watch import Watch
from runner.model.livewatch import Decoy
from runner.model.tree import TreeManifest

PREFIX: Final = ".ao-eval-decoy-"
_PATIENCE: Final = 10.0

# Each write is of a kind that one attribute alone shows: content, mode, ctime, an entry, the inode.
# `.gitignore` keeps git from listing the tree while it is there. The pause is for kernels whose
# clock ticks every 10 ms: the files must not be as young as their mutation.
_PROGRAM: Final = r"""
import os, sys, time
if os.fork():
    os._exit(0)
tops = [os.fsencode(top) for top in sys.argv[1:]]
names = (b"content", b"mode", b"reverted", b"replaced")
def write(path, data, flags=os.O_CREAT | os.O_EXCL):
    file = os.open(path, os.O_WRONLY | flags, 0o600)
    os.write(file, data)
    os.close(file)
def clear():
    for top in tops:
        for name in (*names, b"new", b".gitignore"):
            try: os.unlink(top + b"/" + name)
            except OSError: pass
        for path in (top + b"/empty", top):
            try: os.rmdir(path)
            except OSError: pass
try:
    for top in tops:
        os.mkdir(top, 0o700)
        write(top + b"/.gitignore", b"*\n")
        for name in names:
            write(top + b"/" + name, b"before")
    os.write(1, b"%d\n" % os.getpid())
    if os.read(0, 1):
        time.sleep(0.02)
        for top in tops:
            old = os.stat(top + b"/reverted"), os.stat(top + b"/replaced")
            write(top + b"/content", b"behind", 0)
            os.chmod(top + b"/mode", 0o640)
            write(top + b"/reverted", b"behind", 0)
            write(top + b"/reverted", b"before", 0)
            os.utime(top + b"/reverted", ns=(old[0].st_atime_ns, old[0].st_mtime_ns))
            os.mkdir(top + b"/empty")
            write(top + b"/new", b"before")
            os.utime(top + b"/new", ns=(old[1].st_atime_ns, old[1].st_mtime_ns))
            os.rename(top + b"/new", top + b"/replaced")
        os.write(1, b"planted\n")
        while os.read(0, 1): pass
finally:
    clear()
"""


def places(roots: Iterable[tuple[str, bytes]], candidates: Sequence[Path]) -> tuple[Decoy, ...]:
    """Where decoys belong: one for each file system that holds a live root.

    Args:
        roots: Name and real path of every live root; they need not exist.
        candidates: Folders in which one may lie, best first. The folder above a live root is the
            last choice; what lies in a live root is none.

    Returns:
        Decoys that are yet to be made. Where no place is on the file system of a root, the first
        candidate stands for it, and the decoy says so.
    """
    named = list(roots)
    live = tuple(real for _, real in named)
    groups: dict[int, list[tuple[str, bytes]]] = {}
    for name, real in named:
        groups.setdefault(_device(real), []).append((name, real))
    found: list[Decoy] = []
    nowhere: list[Decoy] = []
    for device, members in groups.items():
        above = [Path(os.fsdecode(existing_above(real))) for _, real in members]
        free = [place for place in (*candidates, *above) if _usable(place, live)]
        same = [place for place in free if os.stat(place).st_dev == device]
        names = tuple(name for name, _ in members)
        if not free:
            nowhere.append(Decoy(b"", names, same_filesystem=False, note="no place is writable"))
            continue
        place = (same or free)[0]
        made = os.fsencode(f"{os.path.realpath(place)}/{PREFIX}{secrets.token_hex(8)}")
        found.append(Decoy(made, names, same_filesystem=bool(same)))
    return (*found, *nowhere)


def _device(real: bytes) -> int:
    return os.stat(real if os.path.exists(real) else existing_above(real)).st_dev


def _usable(place: Path, live: tuple[bytes, ...]) -> bool:
    real = os.fsencode(os.path.realpath(place))
    return os.path.isdir(real) and os.access(real, os.W_OK | os.X_OK) and not below_any(real, live)


def run_control(
    decoys: Sequence[Decoy], watch: Watch, take_manifest: Callable[[Path], TreeManifest]
) -> tuple[Decoy, ...]:
    """Make the decoys, have them mutated, look at them before and after, and take them away.

    Args:
        decoys: From `places`.
        watch: The watch of the live roots; the decoys are added to it.
        take_manifest: The witness of the live roots.

    Returns:
        The same decoys with what was found. What goes wrong is their note: such a control has
        not fired.
    """
    placed = [item for item in decoys if item.path]
    nowhere = [item for item in decoys if not item.path]
    return (*_planted(placed, watch, take_manifest), *nowhere)


def _planted(
    decoys: Sequence[Decoy], watch: Watch, take_manifest: Callable[[Path], TreeManifest]
) -> tuple[Decoy, ...]:
    if not decoys:
        return ()
    planter: subprocess.Popen[bytes] | None = None
    try:
        planter = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _PROGRAM, *(os.fsdecode(d.path) for d in decoys)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        return _control(decoys, watch, take_manifest, planter)
    except (OSError, ValueError, IntegrityError) as error:
        return tuple(_failed(item, f"{type(error).__name__}: {error}") for item in decoys)
    finally:
        if planter is not None:
            _dismiss(planter)
        for item in decoys:
            remove(Path(os.fsdecode(item.path)))


def _control(
    decoys: Sequence[Decoy],
    watch: Watch,
    take_manifest: Callable[[Path], TreeManifest],
    planter: subprocess.Popen[bytes],
) -> tuple[Decoy, ...]:
    pid = int(_line(planter))
    before, notes = [], []
    for item in decoys:
        notes.append(_cover(item, watch))
        before.append(take_manifest(Path(os.fsdecode(item.path))))
    assert planter.stdin is not None  # noqa: S101 - made with pipes
    os.write(planter.stdin.fileno(), b"\n")
    _line(planter)
    watched = watch.settle()
    return tuple(
        Decoy(
            path=item.path,
            roots=item.roots,
            same_filesystem=item.same_filesystem,
            planter=pid,
            before=first,
            after=take_manifest(Path(os.fsdecode(item.path))),
            touches=watch.touches(item.path) if watched and not note else None,
            lost=watch.lost,
            note=note,
        )
        for item, first, note in zip(decoys, before, notes, strict=True)
    )


def _cover(item: Decoy, watch: Watch) -> str:
    """Add a decoy to the watch. Elsewhere than on the file system of its roots that may fail."""
    try:
        watch.cover(item.path)
    except OSError as error:
        if item.same_filesystem:
            raise
        return f"{watch.method} cannot watch it: {error.strerror}"
    return ""


def _failed(item: Decoy, note: str) -> Decoy:
    return Decoy(item.path, item.roots, item.same_filesystem, note=note)


def _line(planter: subprocess.Popen[bytes]) -> bytes:
    """The next line of the planter.

    Raises:
        TimeoutError: It says nothing.
        ValueError: It ended.
    """
    assert planter.stdout is not None  # noqa: S101 - made with pipes
    descriptor, deadline, line = planter.stdout.fileno(), time.monotonic() + _PATIENCE, b""
    while not line.endswith(b"\n"):
        if not _readable(descriptor, deadline):
            raise TimeoutError("the process that plants mutations does not answer")
        data = os.read(descriptor, 64)
        if not data:
            raise ValueError("the process that plants mutations ended")
        line += data
    return line


def _dismiss(planter: subprocess.Popen[bytes]) -> None:
    """End of input tells it to clear up; end of output says that it did."""
    assert planter.stdin is not None  # noqa: S101 - made with pipes
    assert planter.stdout is not None  # noqa: S101 - made with pipes
    with contextlib.suppress(OSError):
        planter.stdin.close()
    descriptor, deadline = planter.stdout.fileno(), time.monotonic() + _PATIENCE
    while _readable(descriptor, deadline) and os.read(descriptor, 64):
        pass
    planter.stdout.close()
    planter.wait()


def _readable(descriptor: int, deadline: float) -> bool:
    ready = select.poll()
    ready.register(descriptor, select.POLLIN)
    return bool(ready.poll(max(0.0, deadline - time.monotonic()) * 1000))
