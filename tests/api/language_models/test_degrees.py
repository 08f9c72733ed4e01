"""Language models on devices with degrees of tensor parallelism: searched, shown, saved, verified, scored."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from layer_chains import DegreeCase, all_plans

import mtpp
from mtpp.api.inputs.model import Model
from mtpp.errors import Infeasible, InputError
from tests.support.language_models import LLAMA

SMALL = LLAMA | {
    "num_hidden_layers": 4, "hidden_size": 256, "intermediate_size": 1024, "vocab_size": 4000,
    "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 32,
}  # fmt: skip
NODES = """
order = "{order}"
[[device]]
name = "fast"
count = 2
system = "h100"
memory = "{memory}"
bandwidth = "50GB/s"
tensor_parallel = [1, 2, 4]
tensor_link = "450GB/s"
[[device]]
name = "slow"
system = "a100"
memory = "80MB"
bandwidth = "25GB/s"
speed = "1/2"
tensor_parallel = [2, 8]
tensor_link = "300GB/s"
[[device]]
name = "one"
system = "a100"
memory = "80MB"
bandwidth = "25GB/s"
"""


def written(folder: Path, order: str, memory: str = "8MB", **changes: Any) -> tuple[str, str]:
    """Write a model and a machine; return their paths."""
    place = folder / "model"
    place.mkdir(exist_ok=True)
    (place / "config.json").write_text(json.dumps(SMALL | changes))
    machine = folder / "nodes.toml"
    machine.write_text(NODES.format(order=order, memory=memory))
    return str(place), str(machine)


def as_case(model: Model) -> DegreeCase:
    """Return the graphs of a model as brute force takes them."""
    assert model.machine is not None
    assert model.degrees is not None
    whole = model.times or [None] * len(model.machine.classes)
    return DegreeCase(
        {1: model.graph} | {degree: one.graph for degree, one in model.degrees.items()},
        model.machine,
        tuple(device.tensor.degrees for device in model.machine.classes),
        times={1: [model.graph.work if row is None else row for row in whole]}
        | {degree: one.times for degree, one in model.degrees.items()},
    )


@pytest.mark.parametrize("order", ["fixed", "free"])
def test_best_degrees_are_those_of_brute_force(order: str, tmp_path: Path) -> None:
    """Over all cuts, devices and degrees; the document holds from the model, and from itself."""
    folder, machine = written(tmp_path, order)
    model = mtpp.read(folder, machine=machine, sequences=4, batch=2, context="2k")
    case = as_case(model)
    plans = set(all_plans(case, 4, 1))
    plan = mtpp.partition(model)
    assert plan.optimal
    assert plan.bottleneck == min(bottleneck for bottleneck, _ in plans)
    assert "GPUs" in plan.text("markdown")
    assert mtpp.verify(plan.document(), folder).passed
    assert mtpp.verify(plan.document(embed=True)).passed
    limit = sorted({latency for _, latency in plans})[0]
    within = mtpp.partition(model, max_latency=f"{limit}ps")
    assert within.bottleneck == min(bottleneck for bottleneck, latency in plans if latency <= limit)
    assert mtpp.verify(within.document(), folder).passed
    least = mtpp.partition(model, 2, objective="latency")
    assert least.record is not None
    assert least.record.latency == min(latency for _, latency in all_plans(case, 2, 1))
    assert mtpp.verify(least.document(), folder).passed


def test_the_stages_of_a_plan_are_scored_at_its_degrees(tmp_path: Path) -> None:
    """And stages without degrees at the fastest; the bound is the best plan."""
    folder, machine = written(tmp_path, "free")
    model = mtpp.read(folder, machine=machine)
    plan = mtpp.partition(model)
    again = mtpp.evaluate(model, plan)
    assert [stage.tensor_parallel for stage in again.stages] == [stage.tensor_parallel for stage in plan.stages]
    assert again.optimal
    worse = mtpp.evaluate(model, cuts="embedding")
    assert worse.lower_bound.value == plan.bottleneck < worse.bottleneck
    assert mtpp.verify(worse.document(), folder).passed


def test_the_fewest_devices_for_a_bottleneck(tmp_path: Path) -> None:
    """No fewer do, and the document proves it."""
    folder, machine = written(tmp_path, "free")
    model = mtpp.read(folder, machine=machine)
    case = as_case(model)
    limit = min(bottleneck for bottleneck, _ in all_plans(case, 3, 1)) + 5
    plan = mtpp.partition(model, max_bottleneck=f"{limit}ps")
    least = next(m for m in range(1, 5) if any(bottleneck <= limit for bottleneck, _ in all_plans(case, m, m)))
    document = plan.document()
    assert document["k"] == least > 1
    assert document["fewest_devices"]["max_bottleneck"] == limit
    assert mtpp.verify(document, folder).passed
    document["fewest_devices"]["max_bottleneck"] += 10**9
    bound = document["fewest_devices"]["lower_bound"]
    bound["value"] = bound["proof"]["cutoff"] = bound["value"] + 10**9
    assert not mtpp.verify(document, folder).passed
    with pytest.raises(Infeasible, match="proven infeasible: no plan has a bottleneck of at most"):
        mtpp.partition(model, max_bottleneck="1ps")


def test_the_slowest_degree_is_not_called_best(tmp_path: Path) -> None:
    """A document that leaves a degree out, or has stages at another one, is refused."""
    folder, machine = written(tmp_path, "fixed")
    document = mtpp.partition(mtpp.read(folder, machine=machine)).document(embed=True)
    forged = copy.deepcopy(document)
    forged["degrees"] = [degree for degree in document["degrees"] if degree != 4]
    del forged["graphs"]["4"]
    assert not mtpp.verify(forged, folder).passed
    forged = copy.deepcopy(document)
    forged["graphs"]["2"]["graph"]["ops"][1]["param_bytes"] -= 1
    assert not mtpp.verify(forged, folder).passed
    forged = copy.deepcopy(document)
    forged["graphs"]["2"]["times"][0][1] += 10**6
    assert not mtpp.verify(forged, folder).passed
    forged = copy.deepcopy(document)
    del forged["graphs"]["2"], forged["model"]["path"]
    with pytest.raises(InputError, match="embeds no graph of degree 2"):
        mtpp.verify(forged)


def test_graphs_in_the_document_are_not_those_of_another_model(tmp_path: Path) -> None:
    """A graph that is no language model has no shares, whatever a document says of them."""
    folder, machine = written(tmp_path, "fixed")
    document = mtpp.partition(mtpp.read(folder, machine=machine)).document(embed=True)
    whole = tmp_path / "whole.json"
    whole.write_text(json.dumps(document["graph"]))
    forged = copy.deepcopy(document)
    forged["model"] |= {"sha256": mtpp.read(str(whole)).source.sha256, "dims": {}, "proposed_dims": []}
    report = mtpp.verify(forged, str(whole))
    assert not report.passed
    assert {row["name"]: row["verdict"] for row in report.document()["checks"]}["degrees"] == "false"


def test_degrees_that_heads_forbid_are_left_out(tmp_path: Path) -> None:
    """Three heads are not divided by two, and a device with no other degree is refused."""
    folder, machine = written(tmp_path, "free", num_attention_heads=12, num_key_value_heads=3, head_dim=32)
    with pytest.raises(InputError, match="device slow: 2 GPUs do not divide the 3 heads of keys and values"):
        mtpp.read(folder, machine=machine)


def test_what_knows_of_no_degrees_refuses_them(tmp_path: Path) -> None:
    """One line each."""
    folder, machine = written(tmp_path, "free")
    model = mtpp.read(folder, machine=machine)
    for options in ({"frontier": True}, {"replicas": True}, {"algorithm": "slice"}):
        with pytest.raises(InputError, match="degrees of tensor parallelism"):
            mtpp.partition(model, **options)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="`mtpp partition`"):
        mtpp.bound(model)
    folder, machine = written(tmp_path, "free", memory="1MB", vocab_size=40_000_000)
    model = mtpp.read(folder, machine=machine)
    with pytest.raises(Infeasible, match="proven infeasible: no device holds a stage with 'embedding'"):
        mtpp.partition(model)


def test_prompts_in_the_document_are_not_those_of_another_model(tmp_path: Path) -> None:
    """The time to the first token is of the model's own prompts, at every degree."""
    folder, machine = written(tmp_path, "fixed")
    model = mtpp.read(folder, machine=machine, phase="both", context="1k")
    plan = mtpp.partition(model)
    document = plan.document(embed=True)
    assert mtpp.verify(document).passed
    assert mtpp.verify(document, folder).passed
    forged = copy.deepcopy(document)
    forged["first_token"]["graphs"]["2"]["times"][0][0] += 1
    assert not mtpp.verify(forged, folder).passed
    whole = tmp_path / "whole.json"
    whole.write_text(json.dumps(document["graph"]))
    forged = copy.deepcopy(document)
    forged["model"] |= {"sha256": mtpp.read(str(whole)).source.sha256, "dims": {}, "proposed_dims": []}
    forged["first_token"]["dims"] = {}
    report = mtpp.verify(forged, str(whole)).document()
    assert {row["name"]: row["verdict"] for row in report["checks"]}["first token"] == "false"
