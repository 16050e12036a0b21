"""Can this machine run legs? Only looks; never installs or starts anything."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from typing import Literal, NamedTuple

from runner.app.images import base_image, leg_reference
from runner.app.request import Surroundings
from runner.app.workspace import choose_mode
from runner.engine.docker_engine import DockerEngine
from runner.errors import AoEvalError
from runner.host.filesystem import filesystem_type

_ENOUGH_DISK = 2 << 30


class Check(NamedTuple):
    """One thing that was looked at."""

    name: str
    state: Literal["ok", "note", "missing"]
    found: str


def examine(surroundings: Surroundings) -> tuple[Check, ...]:
    """Look at everything that a run needs, in the order in which a run needs it."""
    return tuple(_checks(surroundings))


def _checks(surroundings: Surroundings) -> Iterator[Check]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Check("python", "ok" if sys.version_info >= (3, 11) else "missing", version)
    git = shutil.which("git")
    yield Check("git", "ok" if git else "note", git or "not found: whole folders are staged")
    base = surroundings.staging_base
    try:
        free = shutil.disk_usage(base).free
        state: Literal["ok", "note"] = "ok" if free >= _ENOUGH_DISK else "note"
        kind = filesystem_type(base)
        yield Check("staging", state, f"{base} ({kind}, {free >> 30} GiB free)")
    except OSError as error:
        yield Check("staging", "missing", f"{base}: {error.strerror}; set AO_EVAL_STAGING_DIR")
    try:
        engine = DockerEngine.connect(surroundings.environment)
        info = engine.info()
    except AoEvalError as error:
        yield Check("engine", "missing", error.line())
        return
    yield Check(
        "engine",
        "ok" if engine.endpoint.local else "missing",
        f"docker {info.version}, API {info.api_version}, {engine.endpoint.url} "
        f"({engine.endpoint.source})" + ("" if engine.endpoint.local else ": remote"),
    )
    runtimes = ", ".join(info.runtimes)
    yield Check("runtimes", "ok", f"{runtimes}; default {info.default_runtime}")
    recursive = engine.api >= (1, 44)
    yield Check(
        "read-only binds",
        "ok" if recursive else "note",
        "recursive is demanded" if recursive else "recursive cannot be demanded before API 1.44",
    )
    seccomp = any("seccomp" in item for item in info.security)
    yield Check(
        "seccomp", "ok" if seccomp else "missing", ", ".join(info.security) or "none reported"
    )
    mode = choose_mode(base, filesystem_type(base), info, local=engine.endpoint.local)
    yield Check("workspace", "ok", mode)
    reference = leg_reference(base_image(surroundings.environment))
    try:
        image = engine.image(reference)
    except AoEvalError as error:
        yield Check("leg image", "missing", error.line())
        return
    yield Check(
        "leg image",
        "ok" if image else "missing",
        f"{reference} {image.id}" if image else f"{reference}: run `ao-eval images build`",
    )
