"""Largest context, most sequences, and the first token's time of small language models: found, shown, verified."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

import mtpp
from mtpp.errors import Infeasible, InputError
from tests.support.checkpoint_files import write_safetensors
from tests.support.language_models import LLAMA, llama_tensors
from tests.support.serving_oracle import Oracle

SMALL = LLAMA | {
    "num_hidden_layers": 5, "hidden_size": 64, "intermediate_size": 256, "vocab_size": 1000, "num_attention_heads": 8,
    "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 512,
}  # fmt: skip
NODES = """
order = "{order}"
[[device]]
name = "fast"
count = 2
system = "h100"
memory = "300kB"
tensor_parallel = [1, 2, 4]
tensor_link = "450GB/s"
[[device]]
name = "slow"
system = "a100"
memory = "400kB"
bandwidth = "25GB/s"
"""


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Folder with a configuration."""
    return written(tmp_path)


def written(place: Path, **changes: Any) -> str:
    """Write a configuration into a folder of its own, and return its path."""
    found = place / "model"
    found.mkdir(exist_ok=True)
    (found / "config.json").write_text(json.dumps(SMALL | changes))
    return str(found)


def test_the_capacity_is_found_shown_and_verified(folder: str, tmp_path: Path) -> None:
    """By the document with the model, by an embedded one, and loaded again."""
    model = mtpp.read(folder, stage_memory="500kB", sequences=2)
    plan = mtpp.partition(model, 3, objective="context")
    assert plan.capacity is not None
    assert plan.objective == "bottleneck"
    assert plan.optimal
    document = plan.document()
    assert document["model"]["dims"]["context"] == plan.capacity
    following = plan.capacity + 1
    said = f"{plan.capacity:,} tokens of 2 sequences; {following:,} fit nowhere"
    assert f"{said}, proven; the configuration has 512 positions" in plan.text("markdown")
    assert mtpp.verify(document, folder).passed
    report = mtpp.verify(plan.document(embed=True))
    assert report.passed
    assert report.sentence.endswith(f"no stages fit with {following} tokens")
    plan.save(tmp_path / "plan.json")
    loaded = mtpp.load(tmp_path / "plan.json")
    assert loaded.capacity == plan.capacity
    assert f"{said}, claimed" in loaded.text("markdown")
    with pytest.raises(Infeasible):
        mtpp.partition(mtpp.read(folder, stage_memory="500kB", sequences=2, context=following), 3)


@pytest.mark.parametrize("order", ["fixed", "free"])
@pytest.mark.parametrize("objective", ["context", "sequences"])
def test_degrees_share_the_cache(objective: str, order: str, tmp_path: Path) -> None:
    """Some plan fits at the capacity and none at the next value; more degrees hold no less."""
    folder, machine = written(tmp_path), tmp_path / "nodes.toml"
    machine.write_text(NODES.format(order=order))
    fixed: dict[str, Any] = {"machine": machine} | ({"context": 100} if objective == "sequences" else {})
    plan = mtpp.partition(mtpp.read(folder, **fixed), objective=objective)
    assert plan.capacity is not None
    for value, fits in ((plan.capacity, True), (plan.capacity + 1, False)):
        model = mtpp.read(folder, **fixed, **{objective: value})
        if fits:
            assert mtpp.partition(model).bottleneck == plan.bottleneck
        else:
            with pytest.raises(Infeasible):
                mtpp.partition(model)
    assert mtpp.verify(plan.document(), folder).passed
    assert mtpp.verify(plan.document(embed=True)).passed
    machine.write_text(NODES.format(order=order).replace("[1, 2, 4]", "1"))
    alone = mtpp.partition(mtpp.read(folder, **fixed), objective=objective)
    assert alone.capacity is not None
    assert alone.capacity < plan.capacity


def test_whole_layers_of_one_degree_hold_less(tmp_path: Path) -> None:
    """As engines take them: no embedding alone, and all stages at the same degree."""
    folder, machine = written(tmp_path), tmp_path / "nodes.toml"
    machine.write_text(NODES.format(order="free").replace("400kB", "700kB"))
    model = mtpp.read(folder, machine=machine)
    found = [mtpp.partition(model, objective="context", layers_only=whole) for whole in (False, True)]
    mixed, whole = (plan.capacity or 0 for plan in found)
    assert whole < mixed
    for plan in found:
        assert mtpp.verify(plan.document(), folder).passed
    assert len({stage.tensor_parallel for stage in found[1].stages if stage.ops}) == 1
    with pytest.raises(Infeasible):
        mtpp.partition(mtpp.read(folder, machine=machine, context=whole + 1), layers_only=True)


def test_sequences_share_out_among_stages_unless_a_step_has_a_size(folder: str) -> None:
    """The batch of a plan is that of its capacity; few sequences are a smaller step."""
    plan = mtpp.partition(mtpp.read(folder, stage_memory="600kB", context=64), 3, objective="sequences")
    assert plan.capacity is not None
    assert plan.document()["model"]["dims"] == {"context": 64, "batch": -(-plan.capacity // 3)}
    read = mtpp.read(folder, stage_memory="600kB", dims={"batch": 2}, context=64)
    step = mtpp.partition(read, 3, objective="sequences")
    assert step.document()["model"]["dims"] == {"context": 64, "batch": 2}
    read = mtpp.read(folder, stage_memory="600kB", sequences=2, batch=2, context=64)
    again = mtpp.partition(read, 3, objective="sequences")
    assert again.capacity == step.capacity
    read = mtpp.read(folder, stage_memory="450kB", dims={"batch": 99}, context=200)
    few = mtpp.partition(read, 3, objective="sequences")
    assert few.capacity == few.document()["model"]["dims"]["batch"] < 99
    assert mtpp.verify(few.document(), folder).passed


def test_windows_that_are_full_hold_any_context(tmp_path: Path) -> None:
    """Without a largest one; a prefill has one, whose working memory grows."""
    folder = written(tmp_path, model_type="mistral", sliding_window=100)
    model = mtpp.read(folder, stage_memory="1MB")
    plan = mtpp.partition(model, 2, objective="context")
    assert plan.document()["capacity"]["next_infeasible"] is None
    assert plan.capacity == 4096
    assert "any number of tokens of 1 sequence: nothing grows beyond 4,096" in plan.text("markdown")
    report = mtpp.verify(plan.document(), folder)
    assert report.passed
    assert report.sentence.endswith("any number of tokens fits")
    prompts = mtpp.partition(mtpp.read(folder, stage_memory="1MB", phase="prefill"), 2, objective="context")
    assert prompts.document()["capacity"]["next_infeasible"] is not None
    assert mtpp.verify(prompts.document(), folder).passed


def test_both_phases_have_room_and_the_first_token_comes_in_time(folder: str) -> None:
    """The limit is on the prompt; its time stands in plan, table and document."""
    how: dict[str, Any] = {"stage_memory": "2MB", "context": 300, "sequences": 2, "batch": 2}
    model = mtpp.read(folder, phase="both", **how)
    free = mtpp.partition(model, 3)
    assert free.first_token_s is not None
    assert free.document()["first_token"]["dims"] == {"prompt": 300, "batch": 2}
    assert "for 2 prompts of 300 tokens on an idle pipeline" in free.text("markdown")
    one = mtpp.partition(mtpp.read(folder, phase="prefill", **how), 3, objective="latency")
    within = mtpp.partition(model, 3, max_latency=f"{one.latency}ps")
    assert within.first_token_s == one.latency_s <= free.first_token_s
    assert within.bottleneck >= free.bottleneck
    for plan in (free, within):
        assert mtpp.verify(plan.document(), folder).passed
        assert mtpp.verify(plan.document(embed=True)).passed
    with pytest.raises(Infeasible, match="no plan has a time to the first token of at most"):
        mtpp.partition(model, 3, max_latency=f"{one.latency - 1}ps")
    with pytest.raises(Infeasible):
        mtpp.partition(mtpp.read(folder, phase="both", **how | {"context": 4096}), 3)
    largest = mtpp.partition(mtpp.read(folder, phase="both", stage_memory="2MB"), 3, objective="context")
    decoding = mtpp.partition(mtpp.read(folder, stage_memory="2MB"), 3, objective="context")
    assert largest.capacity is not None
    assert decoding.capacity is not None
    assert largest.capacity < decoding.capacity
    assert mtpp.verify(largest.document(), folder).passed
    assert not Oracle(mtpp.read(folder, phase="prefill", context=largest.capacity + 1, **_line())).fits()


def _line() -> dict[str, Any]:
    from mtpp.machine.device import DeviceGroup
    from mtpp.machine.link import Level
    from mtpp.machine.machine import Machine
    from mtpp.machine.presets import load_device

    device = load_device().overriding(memory_bytes=2 * 10**6, peak="order")
    return {"machine": Machine((DeviceGroup(device, 3, "d"),), (Level(3, device.link),), "line")}


FORGED = {
    "value": (("first_token", "latency"), -1, "first token"),
    "stage": (("first_token", "stages", 0, "cost"), -1, "first token"),
    "peak": (("first_token", "stages", 1, "peak_bytes"), 1, "first token"),
    "sizes": (("first_token", "dims", "prompt"), 1, "first token"),
    "limit": (("first_token", "max_latency"), -(10**6), "first token"),
    "work": (("first_token", "graphs", "1", "graph", "ops", 1, "work"), 1, "first token"),
    "bound": (("lower_bound", "value"), 1, "lower bound"),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_first_tokens_are_false(name: str, folder: str) -> None:
    """Whatever they are forged in."""
    model = mtpp.read(folder, phase="both", stage_memory="800kB", context=300)
    document = mtpp.partition(model, 3, max_latency="1s").document(embed=True)
    document["first_token"]["max_latency"] = document["first_token"]["latency"] + 10
    path, more, row = FORGED[name]
    forged: Any = copy.deepcopy(document)
    place = forged
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] += more
    if name == "bound":
        forged["bottleneck"] += more
    report = mtpp.verify(forged, folder)
    assert row in [check["name"] for check in report.document()["checks"] if check["verdict"] == "false"], name
    del document["first_token"]["graphs"], document["model"]["path"]
    with pytest.raises(InputError, match="the plan embeds no graph of prompts at degree 1"):
        mtpp.verify(document)


def test_a_smaller_capacity_is_not_called_the_largest(folder: str) -> None:
    """A plan at fewer tokens that says that the next one fits nowhere."""
    plan = mtpp.partition(mtpp.read(folder, stage_memory="500kB"), 3, objective="context")
    assert plan.capacity is not None
    less = mtpp.partition(mtpp.read(folder, stage_memory="499kB"), 3, objective="context").document()
    document = plan.document()
    assert less["capacity"]["value"] < plan.capacity
    for forged in (less, copy.deepcopy(less)):
        forged["machine"], forged["system"] = document["machine"], document["system"]
        report = mtpp.verify(forged, folder)
        assert "next value" in [check["name"] for check in report.document()["checks"] if check["verdict"] == "false"]


def test_what_does_not_go_together_is_refused(folder: str, tmp_path: Path) -> None:
    """One line each."""
    graph = {"format": "mtpp-graph", "version": 1, "name": "one", "time_unit": "ms", "tensors": [],
             "ops": [{"name": "a", "work": 1}]}  # fmt: skip
    write_safetensors(tmp_path / "model.safetensors", llama_tensors())
    limited = {"stage_memory": "500kB"}
    for model, options, text in (
        (mtpp.read(folder, context=100, **limited), {"objective": "context"}, "is the objective"),
        (mtpp.read(folder, dims={"context": 7}, **limited), {"objective": "context"}, "has the context, which is"),
        (mtpp.read(folder, sequences=2, **limited), {"objective": "sequences"}, "is the objective"),
        (mtpp.read(folder), {"objective": "context"}, "context needs a limit on the memory of devices"),
        (mtpp.read(graph), {"objective": "context"}, "context is of language models"),
        (mtpp.read(folder, **limited), {"objective": "context", "max_latency": "1s"}, "does not go with the objective"),
        (mtpp.read(folder, **limited), {"objective": "context", "replicas": True}, "does not go with the objective"),
        (mtpp.read(folder, **limited), {"objective": "sequences", "frontier": True}, "does not go with the objective"),
        (mtpp.read(folder, **limited), {"objective": "context", "algorithm": "slice"}, "slice does not know"),
        (mtpp.read(folder, phase="both", **limited), {"objective": "latency"}, "each phase has its own"),
        (mtpp.read(folder, phase="both", **limited), {"frontier": True}, "frontier"),
    ):
        with pytest.raises(InputError, match=text):
            mtpp.partition(model, 2, **options)
    with pytest.raises(InputError, match="does not go with phase both"):
        mtpp.partition(mtpp.read(folder, phase="both", machine=_line()["machine"]), max_bottleneck="1s")
    with pytest.raises(
        Infeasible, match="stage_memory: proven infeasible: no stages of layers fit with one token of 1 sequence"
    ):
        mtpp.partition(mtpp.read(folder, stage_memory="5kB"), 2, objective="context")
    with pytest.raises(InputError, match="unknown objective"):
        mtpp.partition(folder, 2, objective="tokens")


def test_graphs_are_of_one_phase(folder: str, tmp_path: Path) -> None:
    """Only plans are of both: no graph is written, bounded or compared for decoding alone in silence."""
    model = mtpp.read(folder, phase="both")
    for told in (
        lambda: mtpp.convert(model, tmp_path / "graph.json"), lambda: mtpp.bound(model, 2),
        lambda: mtpp.certify(model, 2), lambda: mtpp.compare(model, 2),
    ):  # fmt: skip
        with pytest.raises(InputError, match="is of plans: a graph has one step"):
            told()
    assert not (tmp_path / "graph.json").exists()
