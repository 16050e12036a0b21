"""A kept container can be entered, and reaping takes what is dead and nothing else."""

from __future__ import annotations

import shlex
import subprocess

import pytest

from runner.core.confine import LABEL
from tests.container.projects import CASE_USER, WAITING, Project, case

pytestmark = pytest.mark.container


def test_a_kept_container_is_entered_by_the_printed_command_and_reaped(project: Project) -> None:
    path = project.suite(
        case("kept", "echo trace > /tmp/trace; echo more > made-here"), case("other", "true")
    )
    result = project.ao_eval("run", path, "--variant", "context_on", "--case", "kept", "--keep")
    assert result.code == 0, result.stderr
    assert [item["case_id"] for item in result.record()["case_results"]] == ["kept"]
    (line,) = (line for line in result.stdout.splitlines() if line.startswith("docker exec"))
    command = shlex.split(line)
    assert command.pop(2) == "-it"
    look = (
        "id -u; pwd; cat /tmp/trace made-here; (cd $AO_AGENTS_DIR/learnings; echo *); "
        "echo $AO_CONTEXT_VARIANT"
    )
    entered = subprocess.run(
        [*command, "-c", look],
        env=project.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert entered.returncode == 0, entered.stderr
    assert entered.stdout.split() == [
        str(CASE_USER),
        "/workspace/evals",
        "trace",
        "more",
        "hint.md",
        "other.md",
        "context_on",
    ]
    assert len(project.containers()) == 1

    reaped = project.ao_eval("reap")
    assert reaped.code == 0, reaped.stderr
    assert reaped.stdout.startswith("removed ")
    assert project.leftovers() == []


def test_keeping_prints_one_document_with_json(project: Project) -> None:
    path = project.suite(case("kept", "true"))
    result = project.ao_eval("run", path, "--case", "kept", "--keep", "--json")
    assert result.code == 0, result.stderr
    assert result.document["case_results"][0]["case_id"] == "kept"
    assert "docker exec -it" in result.stderr
    assert project.ao_eval("reap").code == 0
    assert project.leftovers() == []


def test_reaping_leaves_a_live_run_alone(project: Project) -> None:
    path = project.suite(case("waits", WAITING), case("after", "true"))
    running = project.start("ab", path)
    containers = running.waiting(2)
    reaped = project.ao_eval("reap")
    assert reaped.code == 0, reaped.stderr
    assert "live runs" in reaped.stdout
    assert sorted(project.containers()) == sorted(containers)
    running.release()
    result = running.finish()
    assert result.code == 0, result.stderr
    assert result.card["pairing"]["valid_pairs"] == 2


def test_reaping_leaves_what_is_not_ours_alone(project: Project) -> None:
    client = project.engine._client
    name = "not-of-ours-but-alike"
    alike = project.staging / "ao-eval-main"
    alike.mkdir()
    client.create_volume(name=name, labels={f"{LABEL}-like": "1"})
    try:
        assert project.ao_eval("reap").code == 0
        assert name in {item["Name"] for item in client.volumes()["Volumes"]}
        assert alike.is_dir()
    finally:
        client.remove_volume(name)
        alike.rmdir()
