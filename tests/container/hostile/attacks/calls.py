"""Inside a leg: system calls that change the container, the kernel, or other processes.

Each is called so that it would do no harm where it is permitted after all.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
from collections.abc import Callable

from tests.container.hostile.attacks.attempt import (
    apart,
    called,
    opened,
    report,
    system_call,
    tried,
)

_NAMESPACES = {
    "mount": 0x00020000,
    "cgroup": 0x02000000,
    "uts": 0x04000000,
    "ipc": 0x08000000,
    "user": 0x10000000,
    "pid": 0x20000000,
    "net": 0x40000000,
}
_ATTACH, _SEIZE = 16, 0x4206
_X86_64: dict[str, tuple[int, *tuple[object, ...]]] = {
    "keyctl": (250, 0, -3, 1),
    "add_key": (248, b"user", b"ao", b"x", 1, -3),
    "request_key": (249, b"user", b"ao", None, -3),
    "bpf": (321, 0, b"\0" * 128, 128),
    "perf_event_open": (298, b"\0" * 128, -1, 0, -1, 0),
    "init_module": (175, None, 0, b""),
    "finit_module": (313, -1, b"", 0),
    "kexec_load": (246, 0, 0, None, 0),
    "reboot": (169, 0, 0, 0, None),
    "open_by_handle_at": (304, -100, b"\0" * 128, 0),
    "quotactl": (179, 0, None, 0, None),
    "iopl": (172, 3),
    "ioperm": (173, 0, 1, 1),
    "fanotify_init": (300, 0, 0),
    "userfaultfd": (323, 0),
    "move_pages": (279, 1, 0, None, None, None, 0),
    "kcmp": (312, 1, os.getpid(), 2, 0, 0),
    "open_tree": (428, -100, b"/", 1),
    "fsopen": (430, b"tmpfs", 0),
    "mount_setattr": (442, -100, b"/", 0, b"\0" * 32, 32),
    "lookup_dcookie": (212, 0, b"\0" * 64, 64),
    "clone3 with a user namespace": (435, ctypes.create_string_buffer(
        _NAMESPACES["user"].to_bytes(8, "little") + bytes(80), 88), 88),
}  # fmt: skip
"""Those without a function in libc, by number."""


def _on_the_agent() -> dict[str, str]:
    """PID 1 is the agent."""
    signals = {
        f"signal {number}": tried(lambda number=number: os.kill(1, number))  # type: ignore[misc]
        for number in range(1, signal.NSIG)
        if number not in (32, 33)
    }
    files = {
        f"{mode} {name}": opened(f"/proc/1/{name}", flags)
        for name in ("mem", "fd/0", "fd/1", "cwd", "root", "environ", "oom_score_adj", "maps")
        for mode, flags in (("read", os.O_RDONLY), ("write", os.O_WRONLY))
    }
    return {
        **signals,
        **files,
        "attach": called("ptrace", _ATTACH, 1, 0, 0),
        "seize": called("ptrace", _SEIZE, 1, 0, 0),
        "priority": tried(lambda: os.setpriority(os.PRIO_PROCESS, 1, 19)),
        "affinity": tried(lambda: os.sched_setaffinity(1, {0})),
        "limits": called("prlimit", 1, 7, b"\0" * 16, None),
        "read memory": _memory("process_vm_readv"),
        "write memory": _memory("process_vm_writev"),
    }


def _memory(function: str) -> str:
    """One byte of the agent's; where its program begins on most machines."""
    own = ctypes.create_string_buffer(1)
    local = struct.pack("QQ", ctypes.addressof(own), 1)
    return called(function, 1, local, 1, struct.pack("QQ", 0x400000, 1), 1, 0)


def _calls() -> dict[str, Callable[[], str]]:
    found: dict[str, Callable[[], str]] = {
        f"unshare {name}": lambda flag=flag: called("unshare", flag)  # type: ignore[misc]
        for name, flag in _NAMESPACES.items()
    }
    for name in ("mnt", "net", "pid", "ipc", "uts", "cgroup"):
        found[f"setns {name}"] = lambda name=name: _entered(name)  # type: ignore[misc]
    found |= {
        "mount": lambda: called("mount", b"tmpfs", b"/tmp", b"tmpfs", 0, None),
        "mount proc": lambda: called("mount", b"proc", b"/tmp", b"proc", 0, None),
        "umount": lambda: called("umount2", b"/proc", 2),
        "pivot_root": lambda: called("pivot_root", b"/tmp", b"/tmp"),
        "chroot": lambda: tried(lambda: os.chroot("/tmp")),
        "mknod": lambda: tried(lambda: os.mknod("/tmp/node", 0o060666, os.makedev(8, 0))),
        "mknod memory": lambda: tried(lambda: os.mknod("/tmp/node", 0o020666, os.makedev(1, 1))),
        "setuid": lambda: tried(lambda: os.setuid(0)),
        "setresuid": lambda: tried(lambda: os.setresuid(-1, -1, 0)),
        "setgid": lambda: tried(lambda: os.setgid(0)),
        "setgroups": lambda: tried(lambda: os.setgroups([0])),
        "sethostname": lambda: called("sethostname", b"other", 5),
        "setdomainname": lambda: called("setdomainname", b"other", 5),
        "acct": lambda: called("acct", None),
        "swapon": lambda: called("swapon", b"/dev/null", 0),
        "swapoff": lambda: called("swapoff", b"/dev/null"),
        "syslog": lambda: called("klogctl", 3, b"\0" * 64, 64),
        "clock": lambda: called("clock_settime", 0, (0).to_bytes(16, "little")),
        "nice": lambda: tried(lambda: os.setpriority(os.PRIO_PROCESS, 0, -5)),
        "realtime": lambda: tried(
            lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        ),
        "oom score": lambda: tried(_lower_own_score),
    }
    if os.uname().machine == "x86_64":
        for name, call in _X86_64.items():
            found[name] = lambda call=call: system_call(*call)  # type: ignore[misc]
    return found


def main() -> None:
    """Report what each call came to, each in a process of its own."""
    calls = {name: apart(action) for name, action in _calls().items()}
    report({"calls": calls, "agent": _on_the_agent()})


def _entered(kind: str) -> str:
    """The agent's namespace; it has the same, but nobody may look."""
    try:
        descriptor = os.open(f"/proc/self/ns/{kind}", os.O_RDONLY)
    except FileNotFoundError:
        return "ENOENT"
    try:
        return called("setns", descriptor, 0)
    finally:
        os.close(descriptor)


def _lower_own_score() -> None:
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
        score.write("-1000")


if __name__ == "__main__":
    main()
