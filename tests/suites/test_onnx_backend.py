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


HELD = 125
"""Fewer cases are held in no part: 1,500 in all."""

CHUNKS = 12
"""Parts of the suite, which workers share: every twelfth case each, for neighbours are alike."""


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_backend_cases_are_read_and_split_as_expected(chunk: int, tmp_path: Path) -> None:
    """Each case that ONNX Runtime runs as expected has the sizes of the run, and its stages the expected results."""
    faults: dict[str, str] = {}
    held = 0
    for number, case in enumerate(backend_cases()[chunk::CHUNKS]):
        folder = tmp_path / str(number)
        folder.mkdir()
        if not runs_as_expected(case, folder / "model.onnx"):
            continue
        found = fault(case, folder)
        if found is None:
            held += 1
        elif not any(sentence in found for sentence in REFUSED):
            faults[case.name] = found
    assert not faults, "\n".join(f"{name}: {text}" for name, text in faults.items())
    assert held > HELD
