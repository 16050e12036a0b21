"""The agent as the folder that every leg mounts: its sources, and the same compiled.

A leg starts some 30 ms earlier from compiled files. They are bound to their sources (PEP 552,
checked): a Python that finds another source beside one, or is of another version than this one,
runs the source. So the sources alone are what the agent is, and what its digest covers.
"""

from __future__ import annotations

import importlib.resources
import importlib.util
import marshal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import CodeType, MappingProxyType
from typing import Final

from runner.core.confine import AGENT, AGENT_PACKAGE
from runner.core.treehash import content_digest, file_record

_HASHED_AND_CHECKED: Final = 0b11
_FIRST_FORMAT: Final = 0
_CACHE_TAG: Final = sys.implementation.cache_tag


@dataclass(frozen=True)
class AgentFiles:
    """The agent of this version of the product, the same bytes every time.

    Attributes:
        sources: Content of each source, by file name.
        compiled: Content of each compiled file, by the file name that this Python looks for.
        sha256: Content digest of the sources; the agent computes it from what it runs.
    """

    sources: Mapping[str, bytes]
    compiled: Mapping[str, bytes]
    sha256: str


@cache
def agent_files() -> AgentFiles:
    """Read and compile the agent, once in a process."""
    package = importlib.resources.files("runner").joinpath("inside", AGENT_PACKAGE)
    sources = {
        item.name: item.read_bytes()
        for item in sorted(package.iterdir(), key=lambda item: item.name)
        if item.name.endswith(".py")
    }
    compiled = {
        f"{name.removesuffix('.py')}.{_CACHE_TAG}.pyc": _compile(name, source)
        for name, source in sources.items()
    }
    records = [
        file_record(name.encode(), sha256(source).hexdigest(), executable=False)
        for name, source in sources.items()
    ]
    digest = content_digest(records)
    return AgentFiles(MappingProxyType(sources), MappingProxyType(compiled), digest)


def _compile(name: str, source: bytes) -> bytes:
    """The compiled file of a source that will lie in the container."""
    path = f"{AGENT}/{AGENT_PACKAGE}/{name}"
    code = compile(source, path, "exec", dont_inherit=True, optimize=0)
    flags = _HASHED_AND_CHECKED.to_bytes(4, "little")
    return importlib.util.MAGIC_NUMBER + flags + importlib.util.source_hash(source) + _bytes(code)


def _bytes(code: CodeType) -> bytes:
    """Code as bytes that depend on nothing else.

    Later formats, and so `py_compile`, mark what else in the process has a reference to a string.
    """
    try:
        return marshal.dumps(code, _FIRST_FORMAT)
    except ValueError:  # Python >= 3.14 has constants that only its newest format knows
        return marshal.dumps(code)


def stage_agent(destination: Path) -> str:
    """Write the folder that is mounted as the agent.

    Args:
        destination: Folder to make; its parent must exist.

    Returns:
        Content digest of the agent.

    Raises:
        OSError: It could not be written.
    """
    files = agent_files()
    package = destination / AGENT_PACKAGE
    cached = package / "__pycache__"
    for folder in (destination, package, cached):
        folder.mkdir()
        # Whatever the umask is: the agent is root without the right to pass over mode bits.
        folder.chmod(0o755)
    for folder, contents in ((package, files.sources), (cached, files.compiled)):
        for name, data in contents.items():
            target = folder / name
            target.write_bytes(data)
            target.chmod(0o644)
    return files.sha256
