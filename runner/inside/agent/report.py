"""What the agent sees from inside: of its confinement, the context root and the environment."""

from __future__ import annotations

import os
import sys

from .jsontext import json_flag, json_list, json_map, quote
from .link import READ_BYTES, Fatal
from .processes import sweep
from .procfs import interfaces, mounts, no_new_privs, parse_status, read_file, routes
from .treehash import small_digest, tree_digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .link import Link
    from .spawn import CaseUser, Spawner

PROBED = (
    "/", "/ao", "/ao-upper", "/bin", "/boot", "/context", "/context/agents", "/dev", "/dev/mqueue",
    "/dev/shm", "/etc", "/home", "/home/case", "/hooks", "/lib", "/media", "/mnt", "/opt", "/proc",
    "/proc/sys", "/root", "/run", "/sbin", "/srv", "/sys", "/sys/fs/cgroup", "/tmp", "/usr",
    "/usr/local", "/usr/local/bin", "/var", "/var/lib", "/var/tmp", "/workspace",
)  # fmt: skip


class Reporter:
    """Looks around before the first case, and at what must not have changed after the last."""

    def __init__(self, link: Link, spawner: Spawner, plan: dict[str, Any]) -> None:
        self._link = link
        self._spawner = spawner
        self._user = spawner.user
        self._context_root: str | None = plan["context_root"]
        self._hooks_directory: str | None = plan["hooks_directory"]
        self._scratch: list[str] = plan["scratch"]
        self._root_at_start: bool = plan["root_at_start"]

    def hello(self) -> bytes:
        """The report before the first case, as JSON."""
        own = parse_status(read_file("/proc/self/status"))
        case = case_status(self._spawner, self._link)
        sets = [b"CapInh", b"CapPrm", b"CapEff"]
        if b"CapAmb" in case:  # gVisor of 2022 has no ambient set and shows none
            sets.append(b"CapAmb")
        held = 0
        for name in sets:
            held |= int(case[name], 16)
        shown = []
        for target, kind, read_only in mounts():
            place = target.decode("utf-8", "backslashreplace")
            access = "ro" if read_only else "rw"
            shown.append(f"{place} {kind.decode('ascii', 'replace')} {access}")
        writable = writable_folders(self._user, self._link.nonce, self._scratch)
        return (
            b'{"agent_sha256":%s,"uid":%d,"case_uid":%d,"capabilities":"%s",'
            b'"case_capabilities":"%016x","no_new_privs":%s,"seccomp":%d,"interfaces":%s,'
            b'"routes":%d,"mounts":%s,"writable":%s,"context_root_sha256":%s,'
            b'"environment_sha256":%s,"kernel":%s,"python":"%d.%d.%d","hooks_directory_sha256":%s}'
            % (
                quote(agent_digest(self._link)),
                os.getuid(),
                self._user.uid,
                own[b"CapEff"].strip(),
                held,
                json_flag(no_new_privs(case)),
                int(case.get(b"Seccomp", b"0")),
                json_list(interfaces()),
                routes(),
                json_list(shown),
                json_list(writable),
                self.root_digest() if self._root_at_start else b"null",
                self.env_digests(),
                quote(os.uname().release),
                *sys.version_info[:3],
                self.hooks_digest(),
            )
        )

    def root_digest(self) -> bytes:
        """Content digest of the context root as the case user reads it, or null, as JSON."""
        return self._digest_of(self._context_root)

    def hooks_digest(self) -> bytes:
        """The same of the hooks directory."""
        return self._digest_of(self._hooks_directory)

    def _digest_of(self, folder: str | None) -> bytes:
        if folder is None:
            return b"null"
        with self._user:
            try:
                return quote(tree_digest(os.fsencode(folder), self._link))
            except OSError:
                return b"null"

    def env_digests(self) -> bytes:
        """Digests of the values of the environment that cases start with, as JSON."""
        digests = {}
        for name, value in self._spawner.env.items():
            digests[name.decode("utf-8", "replace")] = small_digest(value)
        return json_map(digests)


def agent_digest(link: Link) -> str:
    """Content digest of the folder that this agent was loaded from.

    All of it but the compiled files: Python runs those only if they were made from the sources
    beside them, and whether there are any for this Python makes no difference.
    """
    folder = os.fsencode(__file__).rpartition(b"/")[0]
    return tree_digest(folder, link, leave_out=b"__pycache__")


def case_status(spawner: Spawner, link: Link) -> dict[bytes, bytes]:
    """`/proc/self/status` of a process started as cases are."""
    command = {"argv": ["/bin/cat", "/proc/self/status"], "cwd": "/"}
    pid, failure, fds = spawner.spawn(command)
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
    sweep(link, pid, None)
    status = parse_status(text)
    ids = [int(item) for name in (b"Uid", b"Gid") for item in status.get(name, b"").split()]
    wanted = [spawner.user.uid] * 4 + [spawner.user.gid] * 4
    if ids != wanted or status.get(b"Groups", b"").strip():
        raise Fatal("case_user_wrong", "a case does not run as the plain case user")
    return status


def writable_folders(user: CaseUser, nonce: bytes, scratch: list[str]) -> list[str]:
    """Folders in which the case user can create a file.

    The workspace is asked, not tried: a file there would leave a trace in its upper layer.
    """
    found = []
    name = b"/.ao-probe-" + nonce[:16]
    targets = {target for target, _, _ in mounts()}
    with user:
        for path in sorted(targets.union(map(os.fsencode, [*PROBED, *scratch]))):
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
    return found
