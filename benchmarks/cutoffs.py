"""Bounds given cutoffs, against brute force: ``python -m benchmarks.cutoffs [CASES [FIRST]]``.

Each of CASES (by default 20,000) small graphs has a cutoff at, just above or below its optimum, and costs from 1 tick
to what int64 holds; every bound that takes a cutoff is given it, and one time in four a best partition too. "left out"
are cases whose costs the solver's double precision does not hold, "met" those whose bound is the optimum, "largest" is
the largest bound / optimum, less 1, and "false" counts bounds above the optimum, and those of tier solver that are not
below the cutoff. Exits with 1 if there is one. Ctrl-C ends the run with the table of what is done.
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter

from benchmarks.report import print_report

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from cutoff_cases import Tally, tallied

CASES = 20_000
COLUMNS = ("bound", "asked", "claims", "left out", "met", "largest - 1", "false")
_EVERY = 100


def lines(tallies: dict[str, Tally]) -> list[list[str]]:
    """Return a row per bound."""
    return [
        [
            name,
            f"{tally.cases:,}",
            f"{tally.claims:,}",
            f"{tally.left_out:,}",
            f"{tally.met:,}",
            f"{tally.largest - 1:.1e}",
            f"{len(tally.false):,}",
        ]
        for name, tally in tallies.items()
    ]


def main() -> int:
    """Run the cases and print the table; progress goes to standard error."""
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else CASES
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    tallies: dict[str, Tally] = {}
    refused, start = 0, perf_counter()
    done = first
    try:
        while done < first + cases:
            seeds = range(done, min(done + _EVERY, first + cases))
            refused += tallied(seeds, tallies)
            done = seeds.stop
            false = sum(len(tally.false) for tally in tallies.values())
            print(f"{done - first:,} cases, {perf_counter() - start:.0f} s, {false} false", file=sys.stderr)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    title = f"{done - first:,} cutoffs from seed {first}: {refused:,} cases refused or without a partition"
    print_report(title, COLUMNS, lines(tallies))
    for name, tally in tallies.items():
        if tally.false:
            print(f"false: {name}, seeds {', '.join(map(str, tally.false[:20]))}")
    return int(any(tally.false for tally in tallies.values()))


if __name__ == "__main__":
    sys.exit(main())
