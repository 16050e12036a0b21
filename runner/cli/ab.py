"""`ao-eval ab`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from runner.cli import options, output
from runner.errors import InputError


@click.command(
    name="ab",
    help="""Run SUITES with context absent and present, and compare the two legs.

    With --axis skill: with hooks off (AGENTOPS_HOOKS_DISABLED=1) and on, and no context root. One
    run varies one axis: options about context are refused then.

    A folder stands for the suites in it. Context roots default to
    <suite folder>/fixtures/<suite stem>/{context-off,context-on}/agents.""",
)
@click.argument("suites", nargs=-1, required=True, type=click.Path(path_type=Path))
@options.option(
    "--axis",
    type=click.Choice(["context", "skill"]),
    default="context",
    help="What differs between the legs: the context root, or whether hooks are on.",
)
@options.option("--context-off-agents-dir", type=click.Path(path_type=Path), metavar="DIR")
@options.option("--context-on-agents-dir", type=click.Path(path_type=Path), metavar="DIR")
@options.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Copies of the run records, -context-off or -skill-on, say, before the extension.",
)
@options.option(
    "--delta-out", type=click.Path(path_type=Path), metavar="FILE", help="A copy of the scorecard."
)
@options.option(
    "--aa", is_flag=True, help="Null check: the same root in both legs; delta must be 0."
)
@options.option(
    "--controls",
    type=click.Choice(["standard", "none"]),
    default="standard",
    help="standard: replicates, swapped labels and what was read decide what counts.",
)
@options.option(
    "--attribute",
    type=click.Choice(["trace", "ablate"]),
    default="trace",
    help="ablate: vary the entries in which the roots differ, one by one.",
)
@options.option(
    "--max-ablation-legs",
    type=click.IntRange(min=4),
    default=40,
    help="Most legs of an ablation; entries are varied together where they are more.",
)
@options.option(
    "--sign-key",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Sign the attestation: Ed25519, PEM, PKCS #8.",
)
@options.option("--require-delta", type=float, metavar="D", help="Exit 1 if the delta is below D.")
@options.option("--require-valid", is_flag=True, help="Exit 4 if any pair is degraded.")
@options.shared
def command(suites: tuple[Path, ...], **given: Any) -> int:
    """Compare, print, and say by the exit code what was found."""
    from runner.app.request import Gates
    from runner.model.leg import Axis

    request = options.request(
        suites,
        given,
        Gates(
            require_delta=given["require_delta"],
            require_valid=given["require_valid"],
            require_pass=given["require_pass"],
        ),
        axis=Axis(given["axis"]),
        off_root=given["context_off_agents_dir"],
        on_root=given["context_on_agents_dir"],
        out=given["out"],
        delta_out=given["delta_out"],
        null_check=given["aa"],
        controls=given["controls"],
        attribute=given["attribute"],
        sign_key=given["sign_key"],
        ablation_legs=given["max_ablation_legs"],
    )
    if given["out"] is not None and given["out"] == given["delta_out"]:
        raise InputError("--out and --delta-out name the same file")
    if request.axis is Axis.SKILL:
        from runner.app.run_skill import run_skill as compare
    else:
        from runner.app.run_ab import run_ab as compare
    with output.Screen(quiet=given["quiet"], verbose=given["verbose"]) as screen:
        outcome = compare(request, screen.progress)
    screen.show_comparisons(outcome, as_json=given["as_json"])
    return outcome.exit_code
