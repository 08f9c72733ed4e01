"""The fewest devices that keep to a bottleneck, against brute force, and what is refused."""

from __future__ import annotations

from random import Random

import pytest
from random_devices import random_case

import mtpp
from mtpp.api.observer import Observer
from mtpp.errors import Infeasible, InputError
from mtpp.host.deadline import Deadline
from mtpp.solvers.limits import SearchLimits
from mtpp.solvers.unequal.fewest import find_fewest_devices

LIMITS = SearchLimits(evaluations=500)


@pytest.mark.parametrize("seed", range(200))
def test_the_fewest_devices_are_those_of_brute_force(seed: int) -> None:
    """As many as the optimum on so many says, proven; none where all devices do not keep to the limit."""
    chance, case = Random(seed), random_case(seed)
    free, count = chance.random() < 0.5, len(case.devices)
    optima = [case.optimum(used, free=free) for used in range(1, count + 1)]
    limit = max(0, min(10**6, chance.choice([*optima, 20])) - chance.choice([0, 0, 1]))
    due = next((used for used, optimum in enumerate(optima, start=1) if optimum <= limit), None)
    if due is None:
        with pytest.raises(Infeasible, match="proven infeasible: "):
            find_fewest_devices(lambda used: case.instance(used, free=free), count, lambda _: limit, LIMITS)
        return
    found = find_fewest_devices(lambda used: case.instance(used, free=free), count, lambda _: limit, LIMITS)
    assert (found.used, found.proven) == (due, True)
    assert found.start.bottleneck <= limit


def test_a_search_that_is_over_proves_nothing() -> None:
    """Past the deadline a number of devices that a bound does not rule out is not proven to be too few."""
    past = SearchLimits(evaluations=500, deadline=Deadline(0))
    undecided = 0
    for seed in range(40):
        case = random_case(seed)
        count = len(case.devices)
        limit = case.optimum(count, free=False)
        try:
            found = find_fewest_devices(lambda used, case=case: case.instance(used), count, lambda _, t=limit: t, past)
        except Infeasible as error:
            undecided += error.problem.startswith("none found: ")
        else:
            undecided += not found.proven
    assert undecided > 0


class _Heard(Observer):
    said: str = ""

    def say(self, text: str) -> None:
        self.said = text


@pytest.mark.parametrize(("limit", "used"), [("1016us", 3), ("1.4ms", 2), ("2ms", 1)])
def test_a_plan_is_on_the_fewest_devices(limit: str, used: int) -> None:
    """Its k is their number, its bottleneck the least on so many, and the document can be verified."""
    reading = {"dims": {"batch": 1, "sequence": 512}, "machine": "examples/two-v100s-and-an-a100.toml"}
    model = mtpp.read(mtpp.datasets.sample_path("gpt2"), **reading)
    heard = _Heard()
    plan = mtpp.partition(model, max_bottleneck=limit, observer=heard)
    assert heard.said == f"fewest devices that keep to {limit}: {used}, proven"
    assert (plan.k, plan.optimal) == (used, True)
    assert sum(stage["ops"] > 0 for stage in plan.document()["stages"]) == used
    assert mtpp.verify(plan, model).verdict == "ok"
    if used > 1:
        assert plan.bottleneck_s < mtpp.partition(model, used - 1).bottleneck_s
    with pytest.raises(Infeasible, match="max_bottleneck: proven infeasible: no plan on all 3 devices keeps each"):
        mtpp.partition(model, max_bottleneck="1015us")
    with pytest.raises(InputError, match="give either k or max_bottleneck"):
        mtpp.partition(model, 2, max_bottleneck=limit)
