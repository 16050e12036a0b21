"""The documented loop: compile, grade, ingest, word for word as the page has it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from runner.contracts.judge import problem
from tests.container.outcomes.commands import TOP, Outcomes, says_the_marker

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.container, pytest.mark.timeout(600)]


def documented() -> str:
    """The shell block of the page."""
    page = (TOP / "docs" / "outcomes.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    return str(block)


def commands_on_path(folder: Path) -> str:
    """A PATH that begins with `ao-eval` and `python3` as the page calls them."""
    folder.mkdir()
    for name, arguments in (("ao-eval", "-m runner"), ("python3", "")):
        script = folder / name
        call = f'exec "{sys.executable}" {arguments} "$@"'
        script.write_text(f"#!/bin/sh\n{call}\n", encoding="utf-8")
        script.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def test_the_loop_of_the_page_ends_in_a_verdict_and_one_burn(
    outcomes: Outcomes, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    done = subprocess.run(
        ["bash", "-euc", documented()],
        cwd=TOP,
        env=outcomes.environment(PATH=commands_on_path(tmp_path / "bin"), DIR=str(kept)),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "WARN" not in done.stderr
    verdict = json.loads((kept / "verdict.json").read_bytes())
    assert problem("council-verdict.v4", verdict) is None
    assert (verdict["verdict"], verdict["burn_ledger_head"]["count"]) == ("PASS", 1)
    assert "1 burns, budget 3" in done.stdout
    manifest = json.loads((kept / "runs" / "refunds-7" / "manifest.json").read_bytes())
    assert "agentops-42" in manifest["notes"]
    out = "".join(path.read_text("utf-8") for path in kept.rglob("*") if path.is_file())
    assert says_the_marker(out + done.stdout + done.stderr) == []
