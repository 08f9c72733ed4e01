"""Outputs may be as far apart as the rounding of the narrowest float explains."""

from __future__ import annotations

import pytest

from mtpp.formats.results.stage_manifest import MODEL_INPUT, Stage, StageInput, StageManifest
from mtpp.runtime.checking.agreement import TOLERANCES, tolerance, types_between


@pytest.mark.parametrize(
    ("dtype", "between", "expected"),
    [
        ("float32", (), TOLERANCES["float32"]),
        ("float32", ("float16",), TOLERANCES["float16"]),
        ("float16", ("float32", "float64"), TOLERANCES["float16"]),
        ("float32", ("int64", "bool"), TOLERANCES["float32"]),
        ("float32", ("float8e4m3fn", "bfloat16"), 0.1),
        ("int64", ("float16",), 0),
        ("bool", (), 0),
        ("object", (), 0),
    ],
)
def test_the_narrowest_float_decides(dtype: str, between: tuple[str, ...], expected: float) -> None:
    """A single-precision output of half-precision stages is as inexact as these are; whole numbers never are."""
    assert tolerance(dtype, between) == expected


def test_inputs_of_the_model_are_rounded_on_neither_side() -> None:
    """Only what goes from one stage to another counts, the elements of sequences too."""
    inputs = (
        StageInput("x", "bfloat16", (2,), MODEL_INPUT),
        StageInput("a", "float16", (2,), 0),
        StageInput("q", "sequence(float32)", (2,), 0),
    )
    stage = Stage(1, "stage-1.onnx", 1, 1, 1, inputs, ())
    manifest = StageManifest("m", "", 1, 2, "ps", 1, 1, 1, inputs=(), outputs=(), stages=(stage,), direct=())
    assert types_between(manifest) == {"float16", "float32"}
