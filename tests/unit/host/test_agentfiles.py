"""The agent's staged folder: deterministic, bound to its sources, told by one digest."""

from __future__ import annotations

import hashlib
import marshal
import os
import py_compile
import subprocess
import sys
from pathlib import Path

import pytest

from runner.core.confine import AGENT_COMMAND
from runner.core.treehash import content_digest, file_record
from runner.host.agentfiles import agent_files, stage_agent

SOURCES = Path(__file__).resolve().parents[3] / "runner" / "inside" / "agent"


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def load(folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """Start the agent as a leg does, from another folder; it refuses, loaded as a whole."""
    command = [item.replace("'/ao'", repr(str(folder))) for item in AGENT_COMMAND[1:]]
    done = subprocess.run(
        [sys.executable, *flags, *command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={},
    )
    assert done.returncode == 97, done.stderr
    assert "agent: refused" in done.stderr
    return done


def test_the_folder_holds_the_sources_and_each_of_them_compiled(tmp_path: Path) -> None:
    digest = stage_agent(tmp_path / "ao")
    sources = {f"agent/{path.name}": path.read_bytes() for path in SOURCES.glob("*.py")}
    staged = tree(tmp_path / "ao")
    compiled = {name for name in staged if name.endswith(".pyc")}
    assert {name: data for name, data in staged.items() if name not in compiled} == sources
    tag = sys.implementation.cache_tag
    assert compiled == {f"agent/__pycache__/{Path(name).stem}.{tag}.pyc" for name in sources}
    records = [
        file_record(Path(name).name.encode(), hashlib.sha256(data).hexdigest(), executable=False)
        for name, data in sources.items()
    ]
    assert digest == content_digest(records) == agent_files().sha256


def test_compiled_files_are_what_python_itself_compiles(tmp_path: Path) -> None:
    stage_agent(tmp_path / "ao")
    for source in (tmp_path / "ao" / "agent").glob("*.py"):
        made = py_compile.compile(
            str(source),
            cfile=str(tmp_path / "made.pyc"),
            dfile=f"/ao/agent/{source.name}",
            doraise=True,
            optimize=0,
            invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH,
        )
        assert made is not None
        name = f"{source.stem}.{sys.implementation.cache_tag}.pyc"
        ours = (source.parent / "__pycache__" / name).read_bytes()
        theirs = Path(made).read_bytes()
        assert ours[:16] == theirs[:16]
        # Every field of the code, written alike: `py_compile` marks shared strings.
        codes = [marshal.loads(data[16:]) for data in (ours, theirs)]
        assert marshal.dumps(codes[0], 0) == marshal.dumps(codes[1], 0)


@pytest.mark.parametrize("seed, before", [("1", ""), ("2", "import json, pydantic, docker")])
def test_another_process_makes_the_same_bytes(tmp_path: Path, seed: str, before: str) -> None:
    stage_agent(tmp_path / "here")
    script = (
        f"{before}\nimport sys\nfrom pathlib import Path\n"
        "from runner.host.agentfiles import stage_agent\nstage_agent(Path(sys.argv[1]))"
    )
    subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "there")],
        env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(SOURCES.parents[2])},
        timeout=60,
        check=True,
    )
    assert tree(tmp_path / "there") == tree(tmp_path / "here")


def test_nothing_of_this_machine_is_in_the_compiled_files() -> None:
    for data in agent_files().compiled.values():
        assert os.fsencode(SOURCES) not in data
        assert b"/ao/agent/" in data


def test_a_python_of_this_version_runs_the_compiled_files(tmp_path: Path) -> None:
    stage_agent(tmp_path / "ao")
    text = load(tmp_path / "ao", "-v").stderr
    for name in agent_files().sources:
        stem = name.removesuffix(".py")
        assert f"code object from '{tmp_path}/ao/agent/__pycache__/{stem}." in text


def test_a_compiled_file_is_not_run_for_another_source(tmp_path: Path) -> None:
    package = tmp_path / "ao" / "agent"
    stage_agent(tmp_path / "ao")
    seen = (package / "main.py").stat()
    changed = (
        (package / "main.py").read_bytes().replace(b"agent: refused: this", b"agent: refused: THIS")
    )
    (package / "main.py").write_bytes(changed)
    os.utime(package / "main.py", ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert (package / "main.py").stat().st_size == seen.st_size
    assert "agent: refused: THIS" in load(tmp_path / "ao").stderr


def test_everybody_can_read_the_folder_whatever_the_umask_is(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        stage_agent(tmp_path / "ao")
    finally:
        os.umask(before)
    for path in [tmp_path / "ao", *(tmp_path / "ao").rglob("*")]:
        assert path.stat().st_mode & 0o777 == (0o755 if path.is_dir() else 0o644)


def test_every_module_of_the_agent_stays_small() -> None:
    assert all(len(data.splitlines()) < 250 for data in agent_files().sources.values())
