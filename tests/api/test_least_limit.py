"""Limits on latency and bottleneck that no plan keeps to: the refusal says the least that would do."""

from __future__ import annotations

import json
import re
from fractions import Fraction

import pytest
from random_devices import NEVER, random_case

import mtpp
from mtpp.errors import Infeasible
from mtpp.units import PICOSECONDS


@pytest.mark.filterwarnings("ignore::mtpp.MtppWarning")
@pytest.mark.parametrize("seed", range(12))
def test_the_least_limit_is_that_of_brute_force(seed: int) -> None:
    """A tick less is refused with the least latency, or bottleneck, of all plans; that one has a plan."""
    case, free = random_case(seed), bool(seed % 2)
    if case.optimum(len(case.devices), free=free) == NEVER:
        return
    pairs = case.frontier(len(case.devices), free=free)
    model = mtpp.read(json.dumps(case.document()).encode(), machine=case.machine(free=free))
    for name, objective, least in (
        ("max_latency", "bottleneck", min(latency for _, latency in pairs)),
        ("max_bottleneck", "latency", min(bottleneck for bottleneck, _ in pairs)),
    ):
        with pytest.raises(Infeasible) as refused:
            mtpp.partition(model, objective=objective, **{name: f"{least - 1}ps" if least > 1 else "1ps"})
        found = re.search(rf"allow more: {name} ([\d.]+)(\w+) would do \(the least, proven\)", str(refused.value))
        assert found is not None, refused.value
        assert Fraction(found[1]) * PICOSECONDS[found[2]] == least
        assert mtpp.partition(model, objective=objective, **{name: found[1] + found[2]}).optimal


def test_options_are_named_with_a_unit_that_they_take() -> None:
    """Exact to the tick, whatever the unit that people read."""
    ops = [{"name": name, "work": work} for name, work in (("a", 60_000_001), ("b", 60_000_002))]
    graph = {"format": "mtpp-graph", "version": 1, "name": "g", "time_unit": "ps", "ops": ops, "tensors": []}
    with pytest.raises(Infeasible, match=r"allow more: max_latency 120\.000003us would do \(the least, proven\)"):
        mtpp.partition(graph, 2, max_latency="1us")
    assert mtpp.partition(graph, 2, max_latency="120.000003us").optimal
    with pytest.raises(Infeasible, match=r"max_bottleneck 60\.000002us would do"):
        mtpp.partition(graph, 2, objective="latency", max_bottleneck="1us")
