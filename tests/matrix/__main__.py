"""`make test-matrix`: the container tests on two engines, with two OCI runtimes each.

    python -m tests.matrix [--engine RELEASE] [--runtime NAME] [--keep] [PYTEST ARGUMENT...]

Prints a line for each cell and exits non-zero unless every test of every cell passed. The machine's
own engine runs none of them. `--keep` leaves the engines running.
"""

from __future__ import annotations

import argparse
import os
import sys

from runner.errors import AoEvalError
from tests.matrix.cells import ENGINES, RUNTIMES, Result, prepare, run_cell, start, stop


def main() -> int:
    """Run the cells; exit 1 when a test of one failed, 3 when a cell could not be run."""
    parser = argparse.ArgumentParser(prog="python -m tests.matrix")
    parser.add_argument("--engine", action="append", choices=list(ENGINES), default=[])
    parser.add_argument("--runtime", action="append", choices=RUNTIMES, default=[])
    parser.add_argument("--keep", action="store_true")
    given, arguments = parser.parse_known_args()
    results: list[Result] = []
    code = 0
    for release in given.engine or ENGINES:
        try:
            engine = prepare(start(release), release, os.environ)
            results += [
                run_cell(engine, release, runtime, arguments)
                for runtime in given.runtime or RUNTIMES
            ]
        except AoEvalError as error:
            print(f"ao-eval: {error.line()}", file=sys.stderr)
            code = 3
        finally:
            if not given.keep:
                stop(release)
    for line in table(results):
        print(line)
    return code or (0 if results and all(result.good for result in results) else 1)


def table(results: list[Result]) -> list[str]:
    """The cells, and the name of every test that failed in them."""
    lines = [f"{'cell':<28} {'passed':>6} {'failed':>6} {'skipped':>7} {'seconds':>8}"]
    lines += [
        f"{item.cell:<28} {item.passed:6} {len(item.failed):6} {item.skipped:7} {item.seconds:8.0f}"
        + ("" if item.good else "   FAILED")
        for item in results
    ]
    lines += [f"failed: {item.cell}: {name}" for item in results for name in item.failed]
    return lines


if __name__ == "__main__":
    sys.exit(main())
