"""Output that would act on a terminal, a browser or a parser reaches none of them raw."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import threading
import xml.etree.ElementTree as ET

import pytest

from tests.container.hostile.attacks.noise import NOISE
from tests.container.hostile.besieged import LEGS, SECONDS, Besieged
from tests.container.projects import PATIENCE, Project, case

pytestmark = [pytest.mark.container, pytest.mark.timeout(SECONDS + 60)]

OURS = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\x1b\[[0-9]*[AK]|\x1b\[2K")
"""What our own reports and progress send: colours, the cursor, erased lines."""


def _raw(text: str, allowed: str = "\n") -> set[str]:
    return {char for char in text if not char.isprintable() and char not in allowed}


def test_output_is_stored_byte_for_byte(besieged: Besieged) -> None:
    text = b"".join(data + b" " for data in NOISE.values())
    for leg in LEGS:
        for stream in ("stdout", "stderr"):
            # Byte for byte per descriptor: the order of the two streams is their own.
            assert besieged.output("siege", leg, "noise", stream) == text


def test_no_document_or_report_holds_a_control_character(besieged: Besieged) -> None:
    top = besieged.directory("siege")
    files = [path for path in top.rglob("*") if path.is_file() and "cases" not in path.parts]
    assert len(files) >= 9
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert _raw(text, "\n\xa0") == set(), path  # our own reports join words
        assert "<script>OWNED" not in text or path.suffix == ".json"
        assert "<img src=x" not in text or path.suffix == ".json"
    assert "OWNED" in (top / "scorecard.json").read_text(encoding="utf-8")  # the control
    ET.parse(top / "junit.xml")
    assert "<!DOCTYPE" not in (top / "junit.xml").read_text(encoding="utf-8")


def test_what_is_printed_holds_no_control_character_and_no_command_of_a_ci_service(
    besieged: Besieged,
) -> None:
    for text in (besieged.run.result.stdout, besieged.run.result.stderr):
        assert _raw(text) == set()
        assert not [line for line in text.splitlines() if line.startswith("::")]


def _all(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def test_a_terminal_is_never_written_raw(project: Project) -> None:
    """Names that a suite, a root and its context file give reach the screen as well."""
    noise = "".join(_all(data) for name, data in NOISE.items() if name != "invalid")
    path = project.suite(
        case("noise", "exit 1", title=noise),
        case("needs-hint", 'grep -q HELPFUL "$AO_AGENTS_DIR"/learnings/*', objective=noise),
        name="demo",
        description=noise,
    )
    suite = json.loads(path.read_text(encoding="utf-8"))
    suite["name"] = noise
    path.write_text(json.dumps(suite), encoding="utf-8")
    helpful = project.root("on") / "learnings" / "\x1b]0;OWNED\x07.md"
    for side in ("on", "off"):
        (project.root(side) / "learnings" / helpful.name).write_text("HELPFUL\n")
    artifact = {"path": f"learnings/{helpful.name}", "role": "helpful", "tokens": []}
    context = {"schema_version": 1, "label": "label", "artifacts": [artifact]}
    (project.root("on").parent / "context.json").write_text(json.dumps(context), encoding="utf-8")
    os.symlink("/etc/passwd", project.repo / "\x1b[2Jlink")

    shown = _on_a_terminal(project, "ab", str(path))
    assert "\x1b[" in shown  # colours: it is a terminal
    assert "needs-hint" in shown
    assert "OWNED" in shown
    assert _raw(OURS.sub("", shown), "\r\n") == set()


def test_the_path_of_the_evidence_is_not_written_raw(project: Project) -> None:
    # A repository may choose it: by the `out_dir` of its configuration file.
    project.write({"ao-eval.toml": 'out_dir = "runs/\\u001b]0;OWNED\\u0007"\n'})
    result = project.ao_eval("ab", project.suite(case("one", "true")))
    assert result.code == 0, result.stderr
    assert _raw(result.stdout) == set()


def _on_a_terminal(project: Project, *arguments: str) -> str:
    master, slave = pty.openpty()
    seen = bytearray()

    def read() -> None:
        while True:
            try:
                data = os.read(master, 65536)
            except OSError:
                return
            if not data:
                return
            seen.extend(data)

    reader = threading.Thread(target=read)
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "runner", *arguments],
            cwd=project.repo,
            env=project.environment(TERM="xterm-256color", COLUMNS="100", LINES="40"),
            stdin=subprocess.DEVNULL,
            stdout=slave,
            stderr=slave,
        )
        os.close(slave)
        reader.start()
        process.wait(timeout=PATIENCE)
        reader.join(timeout=PATIENCE)
    finally:
        os.close(master)
    assert process.returncode in {0, 5}, bytes(seen[-2000:])
    return _all(bytes(seen))
