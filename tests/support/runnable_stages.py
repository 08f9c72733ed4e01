"""The property of checks: stages that pass ``split --check`` run as a pipeline, and give the results of the whole.

``python tests/support/runnable_stages.py FILE…`` tries models and programs and prints each fault and counts.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import mtpp
from mtpp.errors import MtppError

_TERMS = {"batches": 6, "warmup": 1}


class _Heard(mtpp.Observer):
    """Listener that keeps warnings."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        """Keep a warning."""
        self.warnings.append(text)


def plans(reading: Any, ks: Iterable[int]) -> Iterator[tuple[str, Any]]:
    """Yield the tool's plan for each number of stages, and one by hand that cuts the order into equal parts."""
    graph = reading.graph
    for k in ks:
        yield f"partition -k {k}", mtpp.partition(reading, k)
        places = np.arange(graph.op_count) * k // max(1, graph.op_count)
        yield f"in order, {k}", {graph.op_names[op]: int(place) for op, place in zip(graph.order, places, strict=True)}


def run_faults(path: Path, folder: Path, ks: Iterable[int] = (1, 2, 3), **terms: Any) -> Iterator[str]:
    """Yield what becomes of the stages of a model by each of its plans: ``runs``, or a word why not, or a fault.

    Parameters
    ----------
    terms
        Passed on to :func:`mtpp.read`.
    """
    try:
        reading = mtpp.read(path, **{"dims": "auto"} | terms)
    except MtppError as error:
        yield f"not read: {error}"
        return
    for number, (name, plan) in enumerate(plans(reading, ks)):
        stages = folder / f"stages-{number}"
        heard = _Heard()
        try:
            split = mtpp.split(reading, plan, stages, check=True, observer=heard)
        except MtppError as error:
            yield "refused" if isinstance(plan, dict) else f"{name}: refused: {error}"
            continue
        if split.passed is None:
            yield "not checked"
            continue
        if not split.passed:
            yield f"{name}: the check fails: {split.stages.check}"
            continue
        told = [text for text in heard.warnings if "mtpp run` cannot" in text]
        for model in (path,) if number else (None, path):
            try:
                run = mtpp.run_pipeline(stages, model=model, observer=_Heard(), **_TERMS)
            except MtppError as error:
                yield "told that it does not run" if told else f"{name}, model {model}: {error}"
            else:
                yield "runs" if run.agrees and not told else f"{name}: agrees {run.agrees}, told {told}"


if __name__ == "__main__":
    counts: Counter[str] = Counter()
    for file in map(Path, sys.argv[1:]):
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as place:
            found = Counter(run_faults(file, Path(place)))
        print(f"{file} ({time.monotonic() - begun:.0f} s): {dict(found)}", flush=True)
        counts.update({"faults" if ":" in one else one: count for one, count in found.items()})
    print(dict(counts))
