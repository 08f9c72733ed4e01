"""ONNX's backend tests: models that ONNX Runtime runs as expected are read, and their stages give the same results."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("onnxruntime")

from backend_suite import backend_cases, fault, runs_as_expected

REFUSED = {
    "nothing in the graph depends on an input": "a constant model has no ops to partition",
    "is a sequence": "a sequence as input has no size",
    "is an optional": "an optional as input has no size",
    "Got: 0 Expected: 1": "a size of 0 cannot be given for an open axis: stages are for the size that is proposed",
}
"""Sentences of refusals that are right, and why."""


@pytest.mark.slow
def test_backend_cases_are_read_and_split_as_expected(tmp_path: Path) -> None:
    """Each case that ONNX Runtime runs as expected has the sizes of the run, and its stages the expected results."""
    faults: dict[str, str] = {}
    counts = {"run": 0, "refused": 0, "held": 0}
    for number, case in enumerate(backend_cases()):
        folder = tmp_path / str(number)
        folder.mkdir()
        if not runs_as_expected(case, folder / "model.onnx"):
            continue
        counts["run"] += 1
        found = fault(case, folder)
        if found is None:
            counts["held"] += 1
        elif any(sentence in found for sentence in REFUSED):
            counts["refused"] += 1
        else:
            faults[case.name] = found
    assert not faults, "\n".join(f"{name}: {text}" for name, text in faults.items())
    assert counts["held"] > 1500, counts
