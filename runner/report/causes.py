"""Words for controls and causes."""

from __future__ import annotations

from collections.abc import Iterable

from runner.model.controls import CaseAttribution
from runner.model.scorecard import ContextScorecard, PairedCase
from runner.report.text import plural, visible

_SHOWN = 3
_NO_ARTIFACT = frozenset({"none", "decision_output", "transcript_excerpt"})


def controls_line(card: ContextScorecard) -> str:
    """What was done to tell an effect of the context from noise, on one line."""
    controls = card.controls
    null = "; null check, the same root in both legs" if controls.null_check else ""
    varied = card.attribution.ablation_legs
    if controls.mode == "none":
        more = f", and {plural(varied, 'leg')} of varied roots" if varied else ""
        return f"none: two legs, each once{more}{null}"
    parts = [f"standard: {plural(controls.legs, 'leg')}"]
    if controls.replicates < 2:
        parts[0] += ", no case could be compared"
    else:
        parts[0] += ", every case that could be compared twice under each root"
    held = counted(card)
    if held:
        parts.append(f"differences held {held} times and under the other label")
    if varied:
        parts.append(f"{plural(varied, 'leg')} of varied roots")
    found: dict[str, int] = {}
    for row in controls.cases:
        if row.finding is not None:
            found[row.finding] = found.get(row.finding, 0) + 1
    parts += [f"{name} x {count}" for name, count in sorted(found.items())]
    return "; ".join(parts) + null


def counted(card: ContextScorecard) -> int:
    """How often at least each difference that is counted was seen; 0 when none is."""
    return min(
        (
            min(row.runs_off, row.runs_on)
            for row in card.controls.cases
            if row.finding is None and row.label_swapped
        ),
        default=0,
    )


def trace_line(card: ContextScorecard) -> str:
    """Whether it is known what cases opened."""
    trace = card.controls.trace
    if trace.state == "complete":
        how = "of each case" if trace.granularity == "case" else "of cases that ran alone"
        return f"reads {how} are known"
    return f"reads are not known: {trace.state} ({trace.detail})"


def cause_text(row: CaseAttribution) -> str:
    """What decided a case, and how that is known."""
    if row.method != "ablation":
        verb = "opened" if row.method == "trace" else "an expectation looked at"
        return f"{verb} {_names({*row.opened_off, *row.opened_on})}"
    necessary, sufficient = _names(row.necessary), _names(row.sufficient)
    match row.pattern:
        case "single":
            words = f"follows {necessary}, which is necessary and sufficient"
        case "joint":
            words = f"needs {necessary} together, none suffices alone"
        case "either":
            words = f"any one of {sufficient} suffices"
        case "mixed":
            parts = [
                f"{word} {names}"
                for word, names in (("necessary", necessary), ("sufficient", sufficient))
                if names
            ]
            words = "; ".join(parts)
        case _:
            words = "follows the context as a whole: no single entry is necessary or sufficient"
    return f"{words} (by varying the entries)"


def named_artifacts(pair: PairedCase) -> str | None:
    """The artifacts that a changed pair is attributed to, in a few words; None when none is."""
    named = [name for name in pair.artifact_attribution if name not in _NO_ARTIFACT]
    if len(named) > _SHOWN:
        # A case that opens everything says nothing of any one of them.
        return f"one or more of {len(named)} artifacts"
    return _names(named) if named else None


def _names(paths: Iterable[str]) -> str:
    names = sorted(paths)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(visible(name, limit=100) for name in names[:_SHOWN]) + more
