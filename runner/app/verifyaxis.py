"""What a verification derives by other rules on each axis: legs, evidence, scorecard, pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from runner.core.assemble import assemble, excerpts
from runner.core.crosscheck import (
    Wrong,
    check_hooks,
    check_reads,
    check_receipts,
    check_roots,
    check_sandbox,
)
from runner.core.legcheck import check_legs
from runner.core.livecheck import check_live
from runner.core.rederive import (
    AnyDocuments,
    SkillDocuments,
    check_identity,
    check_notes,
    check_sequence,
    check_varied,
    observed,
)
from runner.core.rederiveskill import check_rootless, check_skill_sequence, skill_observed
from runner.core.skillpair import assemble_skill
from runner.model.skillscorecard import AnyScorecard
from runner.model.suite import SuiteFile


def check_run(suite: SuiteFile | None, found: AnyDocuments) -> Iterator[Wrong]:
    """The legs are those that were to be run, each degraded by what is shown."""
    if isinstance(found, SkillDocuments):
        yield from check_skill_sequence(suite, found)
        roots, reads = None, None
    else:
        yield from check_sequence(suite, found)
        roots, reads = found.roots, found.reads
    yield from check_legs(suite, roots, found.records, found.sandbox, reads, hooks=found.hooks)


def check_evidence(suite: SuiteFile | None, found: AnyDocuments) -> Iterator[Wrong]:
    """The documents of evidence bear each other out."""
    if isinstance(found, SkillDocuments):
        yield from check_rootless(found)
    else:
        yield from check_roots(found.roots, found.records)
        yield from check_reads(found.reads, found.roots, found.records)
        yield from check_varied(found)
    yield from check_sandbox(found.sandbox, found.records)
    yield from check_hooks(found.hooks, found.sandbox, found.records)
    yield from check_receipts(found.hooks, found.records)
    yield from check_live(found.live, found.sandbox)
    yield from check_identity(found)
    yield from check_notes(suite, found)


def remade(suite: SuiteFile, found: AnyDocuments, read: Callable[[str], bytes]) -> AnyScorecard:
    """The scorecard as it follows from records and evidence.

    Args:
        suite: The suite, or what stands for it.
        found: The documents.
        read: Reads a stored output.
    """
    excerpt = excerpts(found.records, read, holdout=suite.suite.is_holdout)
    if isinstance(found, SkillDocuments):
        return assemble_skill(skill_observed(suite, found), excerpt)
    return assemble(observed(suite, found), excerpt)


def renderings(found: AnyDocuments) -> Mapping[str, Callable[[], str | bytes]]:
    """Files that show the scorecard, and how each is made of it."""
    if isinstance(found, SkillDocuments):
        from runner.report.skilldocuments import (
            render_skill_html,
            render_skill_junit,
            render_skill_summary,
        )

        return {
            "report.html": partial(render_skill_html, found.card),
            "junit.xml": partial(render_skill_junit, found.card),
            "summary.md": partial(render_skill_summary, found.card),
        }
    from runner.report.html import render_html
    from runner.report.junit import render_junit
    from runner.report.markdown import render_summary

    return {
        "report.html": partial(render_html, found.card),
        "junit.xml": partial(render_junit, found.card),
        "summary.md": partial(render_summary, found.card),
    }
