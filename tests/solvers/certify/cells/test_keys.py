"""Keys of cells: what makes a result stand for another, and what does not."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest
from graph_strategies import chain, random_graph

from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device
from mtpp.solvers.certify.cell_state import CellLimits
from mtpp.solvers.certify.cells.keys import cell_key, graph_digest

LIMITS = CellLimits(60.0, Fraction(1), ("simple",))


def graph(**changes: object) -> CostGraph:
    """Return a graph of two ops, with something changed."""
    fields = {"name": "g", "unit": "ms", "first": "a", "work": 2, "params": 8, "tensor": "t", "bytes": 4, "transfer": 1}
    got = fields | changes
    ops = [Op(got["first"], got["work"], param_bytes=got["params"]), Op("b", 3)]  # type: ignore[arg-type]
    tensor = Tensor(got["tensor"], got["first"], ("b",), got["bytes"], got["transfer"])  # type: ignore[arg-type]
    return CostGraph.build(name=str(got["name"]), time_unit=str(got["unit"]), ops=ops, tensors=[tensor])


def test_digest_is_of_the_content() -> None:
    """Names of the graph and its tensors have no part in it."""
    assert graph_digest(graph()) == graph_digest(graph(name="h", tensor="u"))
    assert graph_digest(random_graph(1, 30)) == graph_digest(random_graph(1, 30))


@pytest.mark.parametrize(
    "changes",
    [
        {"unit": "us"},
        {"first": "c"},
        {"work": 3},
        {"work": Fraction(5, 2)},
        {"params": 9},
        {"bytes": 5},
        {"bytes": None},
        {"transfer": 2},
        {"transfer": None},
    ],
)
def test_digest_tells_graphs_apart(changes: dict[str, object]) -> None:
    """Whatever changes what a solver sees, or what ops are called, changes the digest."""
    assert graph_digest(graph()) != graph_digest(graph(**changes))


def test_digest_tells_orders_apart() -> None:
    """Proofs call ops by number, so their order counts."""
    ops, tensor = [Op("a", 1), Op("b", 1), Op("c", 1)], Tensor("t", "a", ("b",), transfer=1)
    first = CostGraph.build(name="g", time_unit="1", ops=ops, tensors=[tensor])
    second = CostGraph.build(name="g", time_unit="1", ops=[ops[0], ops[2], ops[1]], tensors=[tensor])
    assert graph_digest(first) != graph_digest(second)


@pytest.mark.parametrize(
    "change",
    [
        {"time_limit_s": 30.0},
        {"target_ratio": Fraction(11, 10)},
        {"bounds": ()},
        {"algorithm": "slice"},
        {"seed": 1},
        {"proofs_only": True},
    ],
)
def test_parameters_that_matter(change: dict[str, object]) -> None:
    """Another limit, method or seed is another cell; what happened to be free, memory or cores, is not."""
    instance = Instance.build(chain([1, 2], [1]), Machine.uniform(2, load_device()))
    key = cell_key("d", instance, LIMITS, memory_bytes=None)
    assert key != cell_key("d", instance, replace(LIMITS, **change), memory_bytes=None)  # type: ignore[arg-type]
    assert key != cell_key("d", instance, LIMITS, memory_bytes=2**30)
    assert key != cell_key("d", replace(instance, k=3), LIMITS, memory_bytes=None)
    assert key == cell_key("d", instance, replace(LIMITS, memory_bytes=12345, jobs=2), memory_bytes=None)


def test_rules_of_other_claims_are_another_cell() -> None:
    """Rows of a store that were made when a solver's cutoff counted as a bound are not found again."""
    instance = Instance.build(chain([1, 2], [1]), Machine.uniform(2, load_device()))
    parameters = json.loads(cell_key("d", instance, LIMITS, memory_bytes=None).parameters)
    assert parameters["claims"] >= 2
