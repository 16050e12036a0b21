"""`make bench`: ratios against floors measured in the same run, never seconds.

    python -m tests.bench [NAME...] [--rounds N]

Every benchmark alternates floor and subject, so that drift of the machine hits both alike, and
prints minimum, median and maximum of the ratio of each pair.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from typing import NamedTuple

from tests.bench import cases, controls, fixed, scale, scan, witness


class Bench(NamedTuple):
    """One benchmark: what it measures, the mark, and how one pair of it is taken."""

    name: str
    what: str
    mark: float
    pair: Callable[[], tuple[float, float]]


BENCHES = (
    Bench(
        "cases",
        "1,000 echo cases x 2 legs, whole command / two bare loops at once",
        1.6,
        cases.pair,
    ),
    Bench(
        "fixed",
        "two-case suite, whole command / two `docker run` at once",
        2.0,
        fixed.pair,
    ),
    Bench(
        "witness",
        "two manifests of 20,000 files, 116 MB / one find | xargs -P2 sha256sum",
        2.0,
        witness.pair,
    ),
    Bench(
        "scale",
        "cost of a case at 10,000 / at 1,000 cases",
        1.2,
        scale.pair,
    ),
    Bench(
        "memory",
        "peak memory of the orchestrator at 10,000 / at 1,000 cases",
        1.5,
        scale.memory_pair,
    ),
    Bench(
        "controls",
        "50 cases in which nothing differs, standard controls / none",
        2.2,
        controls.pair,
    ),
    Bench(
        "scan",
        "scan of 1 MB against 10,000 holdout values / one plain pass of its matcher",
        10.0,
        scan.pair,
    ),
)


def main() -> int:
    """Run benchmarks and print a line for each; exit 1 when a median misses its mark."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument("names", nargs="*", choices=[*(b.name for b in BENCHES), []])
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    missed = False
    print(f"{'benchmark':<10} {'min':>6} {'median':>7} {'max':>6} {'mark':>6}  what")
    for bench in BENCHES:
        if given.names and bench.name not in given.names:
            continue
        bench.pair()  # warm caches; not counted
        ratios = []
        for _ in range(given.rounds):
            subject, floor = bench.pair()
            ratios.append(subject / floor)
        median = statistics.median(ratios)
        missed = missed or median > bench.mark
        print(
            f"{bench.name:<10} {min(ratios):6.2f} {median:7.2f} {max(ratios):6.2f} "
            f"{bench.mark:6.2f}  {bench.what}" + ("" if median <= bench.mark else "   MISSED"),
            flush=True,
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
