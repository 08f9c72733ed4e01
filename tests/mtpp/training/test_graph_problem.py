"""GraphPipe's planning problem: sizes and degrees that are left, and what leaves none."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from irregular_campaign import read_model
from irregular_models import irregular_model
from machines import on_machine

from mtpp.errors import InputError
from mtpp.machine.link import Link
from mtpp.training.graph_problem import GraphProblem, GraphRules, LayerWays, least_before
from mtpp.training.model import Configuration, Layer, SampleCosts, TrainingModel
from mtpp.training.stage_costs import PassCosts, PipelineCosts

SYSTEM = {"devices": 4, "memory_bytes": 100, "bandwidth_bytes_per_s": 10, "mini_batch": 12}


def _layer(name: str, sizes: tuple[int, ...], *, recomputes: bool = False, degree: int = 1) -> Layer:
    table = {size: SampleCosts(size, 2 * size, 1) for size in sizes}
    return Layer(name, name, {degree: [Configuration("one", 6, 1, 1, 1, recomputes=recomputes, micro_batches=table)]})


def _problem(*layers: Layer, size: int | None = 2, **changes: Any) -> GraphProblem:
    model = TrainingModel("m", "ps", layers, [], micro_batch_size=size)
    return GraphProblem.build(model, **on_machine(**{**SYSTEM, **changes}))


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
        ((_layer("a", (2,)),), {"devices": 0}, "devices: must be above zero"),
        ((_layer("a", (2,)),), {"latency_ps": -1}, "latency: must be a whole number of at least 0"),
        ((_layer("a", (2,)),), {"rules": GraphRules(intervals=(0,))}, "kfkb: must be whole numbers"),
        ((_layer("a", (2,)),), {"rules": GraphRules(intervals=(64,))}, "kfkb: no iteration has 64 micro-batches"),
        ((_layer("a", ()),), {"mini_batch": 3**20}, "batch_size: micro-batches of 1 sample are too small"),
        ((_layer("a", ()),), {"memory_bytes": 2**60}, "memory: must be at least 1 and below 2\\^60"),
        ((_layer("a", ()),), {"bandwidth_bytes_per_s": 1, "latency_ps": 2**59}, "the costs are too large"),
    ],
)
def test_what_cannot_be_planned(layers: tuple[Layer, ...], changes: dict[str, Any], said: str) -> None:
    """The message names the parameter, or the layer."""
    with pytest.raises(InputError) as caught:
        _problem(*layers, **changes)
    assert caught.match(said.replace(": ", "›?: ", 1) if caught.value.parameter else said)


def test_every_row_of_table_2(shared_reference: Path) -> None:
    """Jeon et al. (2025), Table 2, rounded up to whole micro-batches."""
    cases = json.loads((shared_reference / "graphpipe.json").read_text())["table_2"]["cases"]
    assert len(cases) == 12
    for case in cases:
        size = case["b_x"]
        needed = least_before(size, case["k_x"], case["b_y"], case["k_y"], case["i_y"])
        assert -(-needed // size) * size == case["i_x"]


def _ways(*layers: list[Configuration]) -> LayerWays:
    made = [Layer(v, f"l{v}", {1: here}) for v, here in enumerate(layers)]
    model = TrainingModel("m", "ps", made, [], micro_batch_size=1)
    return LayerWays(PipelineCosts(model, 4, Link(10**12), 1), recompute=True)


def test_layers_of_equal_costs_are_of_one_kind() -> None:
    """Names and bytes of neighbours tell no kinds apart; every cost does."""
    table = {2: SampleCosts(1, 2, 3)}
    plain, other = Configuration("a", 3, 1, 1, 1), Configuration("b", 3, 1, 1, 1)
    costs = [(4, 1, 1, 1), (3, 2, 1, 1), (3, 1, 2, 1), (3, 1, 1, 2)]
    dearer = [Configuration("a", *one) for one in costs]
    listed = Configuration("a", 3, 1, 1, 1, micro_batches=table)
    ways = _ways([plain], *[[one] for one in dearer], [other], [listed], [plain, other])
    assert ways.kinds == [0, 1, 2, 3, 4, 0, 5, 6]
    assert ways.examples == [0, 1, 2, 3, 4, 6, 7]
    assert ways.counts == [2, 1, 1, 1, 1, 1, 1]
    assert ways.total(lambda layer: 10**layer) == 2 + 11_110 + 11_000_000


def test_costs_are_those_of_each_configuration_by_itself() -> None:
    """Ways of random irregular models are the costs of their own configurations, where these list such samples."""
    for seed in range(40):
        document = irregular_model(random.Random(seed), most_layers=6)
        model = read_model(document)
        costs = PipelineCosts(model, 8, Link(10**12), model.micro_batch_size or 1)
        for recompute in (True, False):
            try:
                ways = LayerWays(costs, True).by(recompute)
            except InputError:
                continue
            for samples in (1, 2, 3):
                lacking = []
                for v, layer in enumerate(model.layers):
                    ones = [one for one in layer.configurations[1] if recompute or not one.recomputes]
                    expected = {
                        c: costs.passes(one, samples)
                        for c, one in enumerate(ones)
                        if not one.micro_batches or samples in one.micro_batches
                    }
                    assert ways.choices[v] == ones
                    assert dict(ways.of(samples)[v]) == ways.of_choices(samples)[v] == expected
                    lacking += [] if expected else [v]
                assert ways.lacking([samples]) == lacking


def test_a_layer_without_a_configuration_is_named() -> None:
    """Where no configuration may be used, the layer is named; with recomputation it has one, and its costs."""
    ways = _ways([Configuration("a", 3, 1, 1, 1)], [Configuration("b", 6, 0, 0, 0, recomputes=True)])
    assert ways.by(True) is ways
    assert ways.of(2)[1] == [(0, PassCosts(4, 8, 0))]
    with pytest.raises(InputError, match="layer 'l1' has no configuration for t = 1"):
        ways.by(False)
