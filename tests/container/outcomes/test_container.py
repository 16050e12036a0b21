"""The outcomes container, looked at from inside while it works on a real command."""

from __future__ import annotations

import functools
import json
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.bench.scan import answers, criteria
from tests.container.hostile.neighbours import neighbourhood
from tests.container.outcomes.commands import (
    COMPILE,
    HERE,
    INGEST,
    JUDGE_HASH,
    MARKER,
    Json,
    Outcomes,
    finish,
    says_the_marker,
    stated,
    take_copy,
)
from tests.container.projects import CASE_USER

if TYPE_CHECKING:
    from runner.engine.docker_engine import DockerEngine
    from tests.container.outcomes.conftest import MakeOutcomes

pytestmark = [pytest.mark.container, pytest.mark.timeout(600)]

ALWAYS = {"/", "/proc", "/dev", "/dev/pts", "/sys", "/sys/fs/cgroup", "/dev/mqueue", "/dev/shm"}
"""Mounts that every container has, also `/proc/…`, `/sys/…` masks and three files in /etc."""
TAMPERINGS = ("network", "capability", "root", "writable_input", "another_mount")
ENGINE_FILES = {"/etc/resolv.conf", "/etc/hostname", "/etc/hosts"}
SCRATCH = {"/tmp", "/dev/shm", "/dev/mqueue"}


class Neighbour(NamedTuple):
    """TCP servers, of another container and of the host, and a container that can reach them.

    The host is the engine's: what runs there in a container without a network of its own.
    """

    addresses: tuple[str, ...]
    visitor: str


class Inside(NamedTuple):
    """What a working container sees, and what the engine says about it."""

    seen: Json
    inspected: Json


def probe(engine: DockerEngine, container: str, *addresses: str) -> Json:
    """Run the probe in a running container, as the user of that container."""
    client = engine._client
    program = (HERE / "probe.py").read_text(encoding="utf-8")
    made = client.exec_create(container, ["python3", "-I", "-c", program, *addresses])
    printed = client.exec_start(made["Id"])
    assert client.exec_inspect(made["Id"])["ExitCode"] == 0, printed
    seen: Json = json.loads(printed)
    return seen


@pytest.fixture(scope="module")
def neighbour(engine: DockerEngine, leg_image: str) -> Iterator[Neighbour]:
    """A TCP server in another container, and one on the engine's host."""
    from testcontainers.core.config import testcontainers_config
    from testcontainers.core.container import DockerContainer

    # Its helper comes from a registry; leaving the block below removes what there is to remove.
    testcontainers_config.ryuk_disabled = True
    visitor = DockerContainer(leg_image).with_kwargs(entrypoint=["sleep", "600"])
    with visitor as visiting, neighbourhood(engine, leg_image) as found:
        addresses = tuple(
            f"{host}:{item.port}"
            for item in found
            for host in item.addresses
            if ":" not in host and host != "127.0.0.1"
        )
        assert len(addresses) == 2, addresses
        yield Neighbour(addresses, str(visiting.get_wrapped_container().id))


@pytest.fixture(scope="module")
def slow_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A compile input and a holdout file that keep a container busy for many seconds."""
    folder, randomness = tmp_path_factory.mktemp("slow"), Random(7)
    some = criteria(randomness, 300_000)
    many = [
        {**item, "id": f"c{n}-{item['id']}", "description": f"Item {n}. {item['description']}"}
        for n in range(12)
        for item in some
    ]
    made = {
        "split": "holdout",
        "task": {"id": "slow", "description": "Answer."},
        "criteria": many,
        "judge_content_hash": JUDGE_HASH,
    }
    (folder / "input.json").write_text(json.dumps(made), encoding="utf-8")
    lines = (json.dumps({"target": text}) for text in answers(randomness, 80_000))
    (folder / "holdout.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return folder


@contextmanager
def at_work(outcomes: Outcomes, *arguments: object) -> Iterator[str]:
    """A command whose container works; yields the id. Ended by SIGINT, it leaves nothing."""
    process = outcomes.start("outcomes", *arguments)
    yield outcomes.running(process)
    process.send_signal(signal.SIGINT)
    done = finish(process)
    assert done.code == 130, "the command was over before it was looked at"
    assert done.stdout == ""
    assert "SIGINT" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert outcomes.leftovers() == []


def look(outcomes: Outcomes, neighbour: Neighbour, *arguments: object) -> Inside:
    """Look at a command's container from inside and from outside."""
    with at_work(outcomes, *arguments) as container:
        inspected = dict(outcomes.engine.inspect(container))
        return Inside(probe(outcomes.engine, container, *neighbour.addresses), inspected)


@pytest.fixture(scope="module")
def compiling(
    make_outcomes: MakeOutcomes,
    tmp_path_factory: pytest.TempPathFactory,
    slow_files: Path,
    neighbour: Neighbour,
) -> Inside:
    """The container of a compile."""
    outcomes = make_outcomes(tmp_path_factory.mktemp("compiling"))
    holdout = outcomes.write("holdout.jsonl", json.dumps({"target": MARKER}))
    files = ("--holdout-file", slow_files / "holdout.jsonl", "--holdout-file", holdout)
    return look(outcomes, neighbour, "compile", slow_files / "input.json", *files)


@pytest.fixture(scope="module")
def ingesting(
    make_outcomes: MakeOutcomes,
    tmp_path_factory: pytest.TempPathFactory,
    slow_files: Path,
    neighbour: Neighbour,
) -> Inside:
    """The container of an ingest with a ledger and a manifest."""
    outcomes = make_outcomes(tmp_path_factory.mktemp("ingesting"))
    ledger = outcomes.ledger()
    files = (
        "--burn-ledger", ledger, "--manifest-out", outcomes.folder / "runs",
        *(("--holdout-file", slow_files / "holdout.jsonl") * 4),
    )  # fmt: skip
    found = look(
        outcomes, neighbour, "ingest", INGEST / "score-holdout-pass.json", *stated(), *files
    )
    assert outcomes.burns(ledger) == 0
    return found


@pytest.fixture(params=["compiling", "ingesting"])
def inside(request: pytest.FixtureRequest) -> Inside:
    """Each of the two."""
    found: Inside = request.getfixturevalue(request.param)
    return found


def test_an_ordinary_container_reaches_what_ours_must_not(
    engine: DockerEngine, neighbour: Neighbour
) -> None:
    """The positive control: the probe says so when there is a way."""
    seen = probe(engine, neighbour.visitor, *neighbour.addresses)
    assert seen["reached"] == dict.fromkeys(neighbour.addresses, "done")
    assert len(seen["interfaces"]) > 1
    assert seen["routes"] > 0
    assert "/opt" in seen["writable"]


def test_nothing_but_loopback_is_there_and_no_neighbour_or_host_can_be_reached(
    inside: Inside, neighbour: Neighbour
) -> None:
    seen = inside.seen
    assert seen["interfaces"] == ["lo"]
    assert seen["routes"] == 0
    assert set(seen["reached"]) == set(neighbour.addresses)
    assert set(seen["reached"].values()) == {"OSError"}, seen["reached"]
    assert seen["resolved"] == "gaierror"
    assert seen["sockets"] == []


def test_it_is_no_root_has_no_capability_and_cannot_get_one(inside: Inside) -> None:
    seen = inside.seen
    assert seen["ids"][0] == CASE_USER
    assert len(set(seen["ids"][:3])) == 1
    assert 0 not in seen["ids"]
    assert set(seen["groups"]) <= {seen["ids"][3]}
    assert {int(text, 16) for text in seen["capabilities"]} == {0}
    assert (seen["no_new_privileges"], seen["seccomp"]) == ("1", "2")


def test_inputs_and_everything_else_can_be_read_only(inside: Inside) -> None:
    seen = inside.seen
    assert "/in/request.json" in seen["inputs"]
    assert len(seen["inputs"]) >= 3
    assert set(seen["changed"].values()) <= {"OSError", "PermissionError"}, seen["changed"]
    for target in ("/", "/in"):
        assert "ro" in seen["mounts"][target], seen["mounts"][target]


@pytest.mark.parametrize(
    "inside, lent",
    [("compiling", set()), ("ingesting", {"/ledger", "/manifest"})],
    indirect=["inside"],
)
def test_there_are_no_other_mounts_than_those_that_are_stated(
    inside: Inside, lent: set[str]
) -> None:
    seen = inside.seen
    own = {
        target
        for target in seen["mounts"]
        if target not in ALWAYS | ENGINE_FILES and not re.match(r"/(proc|sys)/", target)
    }
    assert own == {"/in", "/tmp"} | lent
    assert set(seen["writable"]) <= SCRATCH | lent
    assert lent <= set(seen["writable"])
    points = {item["Destination"]: item for item in inside.inspected["Mounts"]}
    assert {target: item["RW"] for target, item in points.items() if item["Type"] == "bind"} == {
        "/in": False,
        **dict.fromkeys(lent, True),
    }


def test_the_engine_reports_the_profile_of_a_leg_without_its_capabilities(inside: Inside) -> None:
    host, config = inside.inspected["HostConfig"], inside.inspected["Config"]
    assert (host["NetworkMode"], config["NetworkDisabled"]) == ("none", True)
    assert (host["ReadonlyRootfs"], host["Privileged"]) == (True, False)
    assert (host["CapDrop"], host["CapAdd"] or []) == (["ALL"], [])
    assert host["SecurityOpt"] == ["no-new-privileges:true"]
    assert (host["IpcMode"], host["CgroupnsMode"], host["PidMode"]) == ("private", "private", "")
    assert host["Memory"] == host["MemorySwap"] > 0
    assert (host["PidsLimit"], host["LogConfig"]["Type"]) == (64, "none")
    assert {item["Name"] for item in host["Ulimits"]} == {"core", "fsize", "nofile"}
    assert config["User"].split(":")[0] == str(CASE_USER)


def test_the_engine_is_told_no_answer(compiling: Inside) -> None:
    assert says_the_marker(json.dumps(compiling.inspected)) == []


def test_a_container_that_is_not_what_was_asked_for_is_not_started(outcomes: Outcomes) -> None:
    command = ("outcomes", "compile", COMPILE / "dev.json")
    done = outcomes.together(
        {
            what: functools.partial(
                outcomes.run, *command, program=(str(HERE / "tampered.py"), what)
            )
            for what in TAMPERINGS
        }
    )
    told = {
        what: (item.code, "the created container differs in" in item.refusal)
        for what, item in done.items()
    }
    assert told == dict.fromkeys(TAMPERINGS, (5, True)), done
    assert outcomes.leftovers() == []


DOCUMENTED = {
    "compile": {"--holdout-file", "--judge-spec", "--out", "--strict", "--help"},
    "ingest": {
        "--score", "--expect-judge-hash", "--burn-ledger", "--rubric", "--holdout-file", "--suite",
        "--split", "--gt-version", "--threshold", "--bead", "--manifest-out", "--run-id",
        "--baseline-score", "--gate", "--out", "--strict", "--help",
    },
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(DOCUMENTED))
def test_no_option_and_no_variable_does_without_the_container(
    outcomes: Outcomes, name: str
) -> None:
    done = outcomes.outcomes(name, "--help")
    assert set(re.findall(r"--[a-z][a-z-]*", done.stdout)) == DOCUMENTED[name]
    command = ("-m", "runner", "outcomes", name, COMPILE / "dev.json")
    nowhere = f"unix://{outcomes.folder}/no-engine.sock"
    tempting = dict.fromkeys(
        ("AO_EVAL_NO_CONTAINER", "AO_EVAL_LOCAL", "AO_EVAL_IMAGE", "AO_EVAL_OUTCOMES_IMAGE"), "1"
    )
    refused = outcomes.run(*command[2:], DOCKER_HOST=nowhere, **tempting)
    assert refused.code == 3
    assert "no container engine answers" in refused.refusal
    assert list(outcomes.staging.iterdir()) == []


def test_a_missing_image_says_what_to_do(outcomes: Outcomes) -> None:
    # The package as nobody built it: an image of other code never stands in.
    edited = take_copy(outcomes.folder / "edited")
    with (edited / "runner" / "__init__.py").open("a", encoding="utf-8") as file:
        file.write("# edited\n")
    done = outcomes.outcomes("compile", COMPILE / "dev.json", PYTHONPATH=str(edited))
    assert done.code == 3
    assert "ao-eval/outcomes:" in done.refusal
    assert "image is not present; run `ao-eval images build`" in done.refusal
    assert list(outcomes.staging.iterdir()) == []
