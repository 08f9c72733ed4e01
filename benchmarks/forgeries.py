"""Forged documents against ``mtpp verify``: ``python -m benchmarks.forgeries --cases 10000``.

Draws true plans, tables and training plans of any kind, and makes one edit in each. True ones have to be accepted; of
edited ones no row may pass that brute force does not confirm.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Run the cases and print a table: kind of edit × exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--edits", type=int, default=5, help="of each true document")
    options = parser.parse_args()
    sys.path.insert(0, str(_ROOT / "tests" / "support"))
    from forged_documents import edited
    from verified_documents import CASES

    found: Counter[tuple[str, int]] = Counter()
    true: Counter[tuple[str, int]] = Counter()
    faults: list[str] = []
    started = time.monotonic()
    seed = options.seed
    while sum(found.values()) < options.cases:
        seed += 1
        rng = random.Random(seed)
        kind = rng.choice(list(CASES))
        case = CASES[kind](rng)
        code, passed = case.verify(case.document)
        true[kind, code] += 1
        if code not in ((3,) if case.by_solver else (0,)) or case.untrue(case.document, passed):
            faults.append(f"seed {seed}: a true {kind} exits {code}")
        for _ in range(min(options.edits, options.cases - sum(found.values()))):
            edit, wrong = edited(case.document, rng)
            try:
                code, passed = case.verify(wrong)
                untrue = case.untrue(wrong, passed)
            except Exception as error:
                code, untrue = 70, []
                faults.append(f"seed {seed}: {kind}, {edit}: {type(error).__name__}: {error}")
            found[edit, code] += 1
            if untrue:
                faults.append(f"seed {seed}: {kind}, {edit}: {', '.join(untrue)} passed and is not true")
    _show("true document", true)
    _show("edit", found)
    took = time.monotonic() - started
    print(f"\n{sum(found.values())} edited documents in {took:.0f} s; false acceptances and crashes: {len(faults)}")
    print("\n".join(faults))
    sys.exit(1 if faults else 0)


def _show(what: str, found: Counter[tuple[str, int]]) -> None:
    codes = (0, 1, 2, 3)
    print(f"\n{what:<16}" + "".join(f"{f'exit {code}':>9}" for code in codes))
    for kind in sorted({kind for kind, _ in found}):
        print(f"{kind:<16}" + "".join(f"{found[kind, code]:>9}" for code in codes))


if __name__ == "__main__":
    main()
