"""Trees, users and mount namespaces that the tests of this folder need."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534
IS_ROOT = os.geteuid() == 0


def fill(root: Path, files: dict[str, str]) -> Path:
    """Write files below a root, making folders on the way."""
    root.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def me() -> tuple[int, int]:
    """Owner for staging that needs no privilege."""
    return os.geteuid(), os.getegid()


def names_below(root: Path) -> set[str]:
    """Relative paths of everything below a root."""
    return {str(path.relative_to(root)) for path in root.rglob("*")}


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that other users may enter (pytest's own may not)."""
    folder = Path(tempfile.mkdtemp(prefix="open-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        subprocess.run(["chmod", "-R", "u+rwX", str(folder)], check=False)
        shutil.rmtree(folder, ignore_errors=True)


def as_nobody(action: Callable[[], str]) -> str:
    """Run an action in a child process as an unprivileged user; returns its text.

    When the tests themselves are unprivileged the action runs as is.
    """
    if not IS_ROOT:
        return action()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reader)
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            os.write(writer, action().encode())
            code = 0
        except BaseException as error:  # noqa: BLE001 - told to the parent
            os.write(writer, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        text = answer.read().decode()
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, text
    return text


def in_mount_namespace(script: str, *arguments: Path) -> str:
    """Run a Python script in a private mount namespace; its arguments are `sys.argv[1:]`."""
    done = subprocess.run(
        ["unshare", "--mount", sys.executable, "-c", script, *map(str, arguments)],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
