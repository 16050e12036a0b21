"""What a case left behind in files, seen with the case user's eyes.

Everything here is called with the case user's credentials and no process of the case alive:
nothing can change between the looks.
"""

from __future__ import annotations

import binascii
import errno
import os

from .jsontext import json_text, parse_json, quote
from .procfs import PSEUDO, mounts
from .spawn import encode
from .treehash import Digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .link import Link

READ_BYTES = 64 << 10
MAX_USAGE = 4096
S_IFMT, S_IFDIR, S_IFREG = 0o170000, 0o040000, 0o100000
FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Snapshot:
    """Reports files: how many bytes of one are passed on and hashed is bounded."""

    def __init__(self, link: Link, *, file_bytes: int, hash_bytes: int) -> None:
        self._link = link
        self._file_limit = file_bytes
        self._hash_limit = hash_bytes
        self._pseudo = pseudo_devices()

    def report(self, case: int, index: int, path: str) -> None:
        """Report one file: state, size, leading bytes, digest."""
        state, size, kept, digest = "absent", 0, 0, None
        fd = -1
        try:
            raw = encode(path)
            seen = os.stat(raw)
            kind = seen.st_mode & S_IFMT
            if kind == S_IFDIR:
                state = "directory"
            elif kind != S_IFREG or seen.st_dev in self._pseudo:
                state = "other"  # never opened: a FIFO or device may block or act
            else:
                state = "unreadable"
                fd = os.open(raw, FILE)
                again = os.fstat(fd)
                if (again.st_dev, again.st_ino) == (seen.st_dev, seen.st_ino):
                    size = again.st_size
                    kept, digest, read = self._read_regular(fd, size, case, index)
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
        self._link.frame(body % (case, index, quote(state), size, kept, json_text(digest)))

    def _read_regular(
        self, fd: int, size: int, case: int, index: int
    ) -> tuple[int, str | None, bool]:
        """Pass the leading bytes on and hash the rest, up to the bound; beyond it no digest.

        Returns:
            (bytes passed on, digest of all bytes or None, whether reading went well).
        """
        whole = size <= self._hash_limit
        wanted = size if whole else min(size, self._file_limit)
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
            part = data[: max(0, self._file_limit - kept)]
            if part:
                kept += len(part)
                encoded = binascii.b2a_base64(part, newline=False)
                self._link.frame(b'"t":"data","c":%d,"i":%d,"d":"%s"' % (case, index, encoded))
                self._link.pace()
            self._link.check()
        return kept, digest.hex() if whole else None, True

    def usage(self, path: str) -> bytes:
        """What the case wrote to its usage file, as JSON: two counts, or null for anything odd."""
        fd = -1
        try:
            seen = os.stat(path)
            if seen.st_mode & S_IFMT != S_IFREG or seen.st_dev in self._pseudo:
                return b"null"
            fd = os.open(path, FILE)
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


def pseudo_devices() -> frozenset[int]:
    """Device numbers of proc, sysfs and their like, whose files are never opened."""
    found = set()
    for target, kind, _ in mounts():
        if kind in PSEUDO:
            try:
                found.add(os.stat(target).st_dev)
            except OSError:
                continue
    return frozenset(found)
