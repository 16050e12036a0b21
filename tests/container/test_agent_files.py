"""The agent's folder in real containers: which files run, and that the digest tells."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from runner.host.agentfiles import agent_files
from tests.container import agent_leg
from tests.container.agent_leg import Outcome, run, sh

pytestmark = pytest.mark.container


@pytest.fixture(autouse=True)
def _image(leg_image: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_leg, "IMAGE", leg_image)


def same_python(out: Outcome) -> bool:
    inside = tuple(map(int, out.hello.report.python.split(".")[:2]))
    return inside == sys.version_info[:2]


def test_the_compiled_files_run_where_the_python_is_the_same(tmp_path: Path) -> None:
    out = run(tmp_path, sh("echo x"), verbose=True)
    text = bytes(out.stderr).decode()
    for name in agent_files().sources:
        path = f"/ao/agent/{name}\n"
        if same_python(out):
            path = f"'/ao/agent/__pycache__/{name.removesuffix('.py')}."
        assert f"code object from {path}" in text


def test_a_python_of_another_version_runs_the_sources(tmp_path: Path) -> None:
    def other(package: Path) -> None:
        for path in (package / "__pycache__").iterdir():
            path.rename(
                path.with_name(path.name.replace(sys.implementation.cache_tag, "cpython-1"))
            )

    out = run(tmp_path, sh("echo x"), tamper=other, verbose=True)
    text = bytes(out.stderr).decode()
    assert all(f"code object from /ao/agent/{name}\n" in text for name in agent_files().sources)
    assert (out.output(), out.bye.reason) == (b"x\n", "done")
    assert out.hello.report.agent_sha256 == agent_files().sha256


def test_without_compiled_files_the_agent_is_the_same(tmp_path: Path) -> None:
    out = run(tmp_path, sh("echo x"), tamper=lambda package: shutil.rmtree(package / "__pycache__"))
    assert (out.output(), out.bye.reason) == (b"x\n", "done")
    assert out.hello.report.agent_sha256 == agent_files().sha256


def test_a_source_that_is_not_the_staged_one_is_run_and_shows_in_the_digest(
    tmp_path: Path,
) -> None:
    def change(package: Path) -> None:
        path = package / "leg.py"
        path.write_bytes(path.read_bytes().replace(b'return "done", done', b'return "DONE", done'))

    with agent_leg.Leg(tmp_path, [agent_leg.case(sh("true"))], tamper=change) as leg:
        leg.send_plan()
        raw = b"".join(data for stream, data in leg.frames() if stream == 1)
    assert b'"w":"DONE"' in raw
    assert agent_files().sha256.encode() not in raw


@pytest.mark.parametrize("name", ["json.py", "other.so", "extra/__init__.py", "scratch.pyc"])
def test_whatever_else_lies_beside_the_sources_shows_in_the_digest(
    tmp_path: Path, name: str
) -> None:
    def add(package: Path) -> None:
        (package / name).parent.mkdir(exist_ok=True)
        (package / name).write_bytes(b"")

    report = run(tmp_path, None, tamper=add).hello.report
    assert report.agent_sha256 != agent_files().sha256
