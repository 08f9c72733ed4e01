"""The property of splits: stages of any plan, run one after the other, give the results of the whole model.

``python tests/support/stage_property.py onnx|program FIRST LAST`` tries random models and prints each fault and counts.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from random_onnx_models import random_labels
from stage_equality import OnnxStages, assert_equal, random_feeds, run_onnx_on_each
from varied_onnx_models import varied_model

import mtpp
from mtpp.errors import InputError

MOST_STAGES = 4
INPUTS = 5


def plans(reading: Any, seed: int) -> Iterator[tuple[str, Any]]:
    """Yield three plans for each number of stages: the tool's own, one at random, one that cuts the file's order."""
    graph = reading.graph
    rng = np.random.default_rng(seed)
    for k in range(1, MOST_STAGES + 1):
        yield f"partition -k {k}", mtpp.partition(reading, k)
        labels = random_labels(graph, k, seed + k)
        yield f"random, {k}", dict(zip(graph.op_names, labels, strict=True))
        cuts = np.sort(rng.integers(0, graph.op_count + 1, k - 1))
        places = np.searchsorted(cuts, np.arange(graph.op_count), side="right")
        yield f"in order, {k}", {graph.op_names[op]: int(place) for op, place in zip(graph.order, places, strict=True)}


def split_plans(reading: Any, seed: int, folder: Path) -> Iterator[tuple[str, Path | None]]:
    """Split a model by each of its plans; yield the plan and the folder of its stages, or the fault and None.

    A plan by hand may be refused, and a program with regions of ``torch.vmap`` if the remedy is named: ``refused``.
    """
    for number, (name, plan) in enumerate(plans(reading, seed)):
        stages = folder / f"stages-{number}"
        try:
            mtpp.split(reading, plan, stages)
        except InputError as error:
            known = isinstance(plan, dict) or "run_decompositions()" in str(error.remedy)
            yield "refused" if known else f"{name}: {error}", None
        except Exception as error:
            yield f"{name}: {type(error).__name__}: {error}", None
        else:
            yield name, stages


def override(model: onnx.ModelProto, seed: int) -> dict[str, Any]:
    """Return other values for overridable initializers, of the same sizes; of every other seed none."""
    if seed % 2 == 0:
        return {}
    listed = {value.name for value in model.graph.input}
    rng = np.random.default_rng(seed)
    values = {}
    for tensor in model.graph.initializer:
        if tensor.name in listed:
            array = onnx.numpy_helper.to_array(tensor)
            if array.dtype.kind == "i":
                values[tensor.name] = rng.integers(1, array + 1)
            else:
                values[tensor.name] = rng.random(array.shape).astype(array.dtype)
    return values


def onnx_faults(seed: int, folder: Path) -> Iterator[str]:
    """Yield the faults of the stages of one random ONNX model; ``refused`` for plans by hand that a split refuses."""
    model = varied_model(seed)
    path = folder / "model.onnx"
    onnx.save(model, path)
    try:
        inputs = [random_feeds(path, one, {"rows": 4}) | override(model, one) for one in range(INPUTS)]
        expected = run_onnx_on_each(path, inputs)
    except Exception:  # ONNX Runtime refuses the model
        yield "not run"
        return
    try:
        dims = {"*": "auto", "rows": 4} if "rows" in str(model.graph.input) else "auto"
        reading = mtpp.read(path, dims=dims)
    except InputError as error:
        yield f"not read: {error}"
        return
    for name, stages in split_plans(reading, seed, folder):
        if stages is None:
            yield name
            continue
        try:
            opened = OnnxStages(stages)
            for one, (feeds, results) in enumerate(zip(inputs, expected, strict=True)):
                assert_equal(opened.run(feeds), results, f"input {one}")
        except Exception as error:
            yield f"{name}: {type(error).__name__}: {error}"


def count(kind: str, first: int, last: int) -> Counter[str]:
    """Try models of seeds *first* to *last*; print faults, return counts."""
    counts: Counter[str] = Counter()
    if kind == "onnx":
        faults_of = onnx_faults
    else:
        from program_property import program_faults

        faults_of = program_faults
    for seed in range(first, last):
        counts["models"] += 1
        with tempfile.TemporaryDirectory() as folder:
            for fault in faults_of(seed, Path(folder)):
                known = fault in ("refused", "not run")
                counts[fault if known else "faults"] += 1
                if not known:
                    print(f"seed {seed}: {' '.join(fault.split())[:400]}", flush=True)
    return counts


if __name__ == "__main__":
    print(dict(count(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
