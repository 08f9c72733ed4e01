"""GraphPipe's planning problem: sizes and degrees that are left, and what leaves none."""

from __future__ import annotations

from typing import Any

import pytest

from mtpp.errors import InputError
from mtpp.training.graph_problem import GraphProblem, GraphRules
from mtpp.training.model import Configuration, Layer, SampleCosts, TrainingModel

SYSTEM = {"devices": 4, "memory_bytes": 100, "bandwidth_bytes_per_s": 10, "mini_batch": 12}


def _layer(name: str, sizes: tuple[int, ...], *, recomputes: bool = False, degree: int = 1) -> Layer:
    table = {size: SampleCosts(size, 2 * size, 1) for size in sizes}
    return Layer(name, name, {degree: [Configuration("one", 6, 1, 1, 1, recomputes=recomputes, micro_batches=table)]})


def _problem(*layers: Layer, size: int | None = 2, **changes: Any) -> GraphProblem:
    model = TrainingModel("m", "ps", layers, [], micro_batch_size=size)
    return GraphProblem.build(model, **{**SYSTEM, **changes})


def test_sizes_and_degrees() -> None:
    """Sizes that some layer has costs of and that divide the mini-batch; degrees that leave such a size."""
    problem = _problem(_layer("a", (1, 2, 3, 4, 5)), _layer("b", (1, 2, 4, 5, 6)))
    assert problem.sizes == [1, 2, 3, 4, 6]
    assert [problem.degrees(size) for size in (1, 2, 4, 6, 12)] == [[1], [1, 2], [1, 2, 4], [1, 2, 3], [2, 3, 4]]
    assert [problem.lacking([size]) for size in (1, 3, 6, 12)] == [[], [], [], []]
    alone = _problem(_layer("a", (1, 2, 3, 4)), _layer("b", (1, 6)), rules=GraphRules(data_parallel=False))
    assert alone.degrees(4) == [1]
    assert [size for size in alone.sizes if not alone.lacking([size])] == [1]


def test_layers_of_different_sizes() -> None:
    """A layer can be in the stages whose samples some configuration has costs of, whatever other layers list."""
    problem = _problem(_layer("a", (2,)), _layer("b", (4,)), _layer("c", ()))
    assert problem.sizes == [2, 4]
    assert [problem.layer_ways(v, 2) != [] for v in range(3)] == [True, False, True]
    assert [problem.lacking([size]) for size in problem.sizes] == [[1], []]
    assert problem.degrees(4) == [1, 2, 4]


def test_default_sizes_do_not_depend_on_rules() -> None:
    """Sizes of configurations that recompute are tried without them as well: a rule less is never slower."""
    listed = _layer("a", (3,), recomputes=True).configurations[1][0]
    plain = Configuration("two", 6, 1, 1, 1)
    layer = Layer("a", "a", {1: [plain, listed]})
    assert _problem(layer).sizes == _problem(layer, rules=GraphRules(recompute=False)).sizes == [3]


def test_sizes_that_do_not_divide_are_not_needed() -> None:
    """Powers of two where no listed size divides the mini-batch and all layers can run any number of samples."""
    listed = _layer("a", (5,)).configurations[1][0]
    layer = Layer("a", "a", {1: [listed, Configuration("two", 6, 1, 1, 1)]})
    assert _problem(layer).sizes == [1, 2, 4]


def test_models_without_sizes() -> None:
    """Powers of two that divide the mini-batch, and degrees that divide those; the caller says what times are of."""
    problem = _problem(_layer("a", ()), size=None, micro_batch_size=3)
    assert problem.sizes == [1, 2, 4]
    assert problem.degrees(4) == [1, 2, 4]
    assert problem.costs.times_of == 3
    asked = _problem(_layer("a", ()), rules=GraphRules(micro_batch_sizes=(6, 3)))
    assert asked.sizes == [3, 6]
    assert asked.degrees(6) == [1, 2, 3]


@pytest.mark.parametrize(
    ("layers", "changes", "said"),
    [
        (
            (_layer("a", (2,)), _layer("b", (4,))),
            {"devices": 1},
            "micro_batch_sizes: no size of micro-batches can be used on one device: "
            "of 2, layer 'b' has costs of 4 alone; of 4, layer 'a' has costs of 2 alone",
        ),
        ((_layer("a", (8,)),), {}, "batch_size: no size that layer 'a' has costs of .8. divides 12"),
        ((_layer("a", (2,)),), {"rules": GraphRules(micro_batch_sizes=(5,))}, "micro_batch_sizes: .*do not divide"),
        ((_layer("a", (2,)),), {"rules": GraphRules(micro_batch_sizes=(1,))}, "micro_batch_sizes: no size"),
        ((_layer("a", ()),), {"size": None}, "micro_batch_size: the model does not say"),
        ((_layer("a", ()),), {"micro_batch_size": 3}, "micro_batch_size: the model's times are of 2"),
        ((_layer("a", (2,), recomputes=True),), {"rules": GraphRules(recompute=False)}, "no configuration for t = 1"),
        ((_layer("a", (), degree=2),), {}, "layer 'a' has no configuration for t = 1"),
        ((_layer("a", (2,)),), {"devices": 0}, "devices: must be at least 1"),
        ((_layer("a", (2,)),), {"latency_ticks": -1}, "latency: must be at least 0"),
        ((_layer("a", (2,)),), {"rules": GraphRules(intervals=(0,))}, "kfkb: must be whole numbers"),
        ((_layer("a", (2,)),), {"rules": GraphRules(intervals=(64,))}, "kfkb: no iteration has 64 micro-batches"),
        ((_layer("a", ()),), {"mini_batch": 3**20}, "batch_size: micro-batches of 1 sample are too small"),
        ((_layer("a", ()),), {"memory_bytes": 2**60}, "memory: must be at least 1 and below 2\\^60"),
        ((_layer("a", ()),), {"bandwidth_bytes_per_s": 1, "latency_ticks": 2**59}, "the costs are too large"),
    ],
)
def test_what_cannot_be_planned(layers: tuple[Layer, ...], changes: dict[str, Any], said: str) -> None:
    """The message names the parameter, or the layer."""
    with pytest.raises(InputError) as caught:
        _problem(*layers, **changes)
    assert caught.match(said.replace(": ", "›?: ", 1) if caught.value.parameter else said)
