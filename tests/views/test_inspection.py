"""The line of ``inspect`` on how a graph is composed, and what it says in JSON."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from composed_graphs import branches
from graph_strategies import chain
from processes import run

from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.solvers.series_parallel import decomposition
from mtpp.views.inspection import structure_text


def bridges(*lengths: int) -> CostGraph:
    """Return bridges in a row, each with a chain of some ops in the middle."""
    names = ["x0"]
    edges: list[tuple[str, str]] = []
    for i, length in enumerate(lengths):
        middle = [f"m{i}.{j}" for j in range(length)]
        path = [f"a{i}", *middle, f"b{i}"]
        names += [*path, f"x{i + 1}"]
        edges += [(f"x{i}", path[0]), (f"x{i}", path[-1]), (path[0], f"x{i + 1}"), (path[-1], f"x{i + 1}")]
        edges += list(pairwise(path))
    ops = [Op(name, 1) for name in names]
    tensors = [Tensor(f"t{i}", u, (v,), transfer=1) for i, (u, v) in enumerate(edges)]
    return CostGraph.build(name="bridges", time_unit="1", ops=ops, tensors=tensors)


def line(graph: CostGraph) -> str:
    """Return what is said of a graph."""
    document = decomposition.structure(graph)
    assert document is not None
    return structure_text(document)


def test_lines() -> None:
    """Chains, blocks, cores; the largest core is named with the ops around it."""
    assert line(chain([1, 2, 3], [1, 1])) == "a chain"
    assert line(branches(4, 3)) == "series-parallel: 1 block, at most 4 branches"
    assert line(bridges(3)) == "series-parallel around 1 core (5 ops: x0 … x1)"
    assert line(bridges(3, 10)) == "series-parallel around 2 cores (12 and 5 ops; the largest: x1 … x2)"
    assert line(bridges(1, 2, 3)) == "series-parallel around 3 cores (5, 4 and 3 ops; the largest: x2 … x3)"
    assert line(bridges(*[1] * 5)) == "series-parallel around 5 cores (3, 3, 3, … ops; the largest: x0 … x1)"


def test_inputs_outputs_and_depth() -> None:
    """Where a core begins with all inputs and ends with all outputs it says so; blocks in blocks have a depth."""
    ops = [Op(name, 1) for name in "abcd"]
    tensors = [Tensor("t", "a", ("c", "d"), transfer=1), Tensor("u", "b", ("c", "d"), transfer=1)]
    crossed = CostGraph.build(name="crossed", time_unit="1", ops=ops, tensors=tensors)
    assert line(crossed) == "series-parallel around 1 core (4 ops: the inputs … the outputs)"
    tensors = [
        Tensor("t", "a", ("b", "d"), transfer=1),
        Tensor("u", "b", ("c", "d"), transfer=1),
        Tensor("v", "b", ("c",), transfer=1),  # beside the other edge, which is no block
        Tensor("w", "c", ("d",), transfer=1),
    ]
    nested = CostGraph.build(name="nested", time_unit="1", ops=ops, tensors=tensors)
    assert line(nested) == "series-parallel: 2 blocks, 2 deep, at most 2 branches"


def test_inspect_shows_it(tmp_path: Path, checkout: Path) -> None:
    """The table has the line, the JSON document the figures."""
    model = checkout / "datasets" / "samples" / "resnet50.onnx"
    assert "\nstructure     series-parallel: 16 blocks, at most 2 branches\n" in run("inspect", model).stdout
    document = json.loads(run("inspect", model, "--format", "json").stdout)
    assert document["structure"] == {"series_parallel": True, "blocks": 16, "depth": 1, "widest": 2, "cores": []}


def test_very_large_graphs_are_not_decomposed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the limit there are no figures."""
    monkeypatch.setattr(decomposition, "MOST_OPS", 3)
    assert decomposition.structure(chain([1, 2, 3, 4], [1, 1, 1])) is None
    assert decomposition.structure(chain([1, 2, 3], [1, 1])) is not None
