"""Inside a leg: become root of a user name space, and turn the file system over for everybody."""

from __future__ import annotations

from tests.container.hostile.attacks.attempt import called, report

_USER, _MOUNT = 0x10000000, 0x00020000


def main() -> None:
    """Report how far it came."""
    report(
        {
            "user": called("unshare", _USER),
            "pivot_root": called("pivot_root", b"/tmp", b"/tmp"),
            "chroot": called("chroot", b"/tmp"),
            "mount": called("mount", b"tmpfs", b"/context", b"tmpfs", 0, None),
            "private": called("unshare", _MOUNT),
        }
    )


if __name__ == "__main__":
    main()
