"""Ways to run layers: costs computed once for layers that cost the same, and no layer mistaken for another."""

from __future__ import annotations

import random

import pytest
from irregular_campaign import read_model
from irregular_models import irregular_model

from mtpp.errors import InputError
from mtpp.training.layer_ways import LayerWays
from mtpp.training.model import Configuration, Layer, SampleCosts, TrainingModel
from mtpp.training.stage_costs import PassCosts, PipelineCosts


def _ways(*layers: list[Configuration]) -> LayerWays:
    made = [Layer(v, f"l{v}", {1: here}) for v, here in enumerate(layers)]
    model = TrainingModel("m", "ps", made, [], micro_batch_size=1)
    return LayerWays(PipelineCosts(model, 4, 10**12, 1), recompute=True)


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
        costs = PipelineCosts(model, 8, 10**12, model.micro_batch_size or 1)
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
