"""Language models through the commands for graphs: partitions, proofs, tables and files."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import mtpp
from mtpp.errors import InputError
from tests.support.checkpoint_files import write_safetensors
from tests.support.language_models import LLAMA

WIDE = LLAMA | {"num_hidden_layers": 6, "hidden_size": 64, "intermediate_size": 256, "vocab_size": 1000}


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Folder with a configuration."""
    place = tmp_path / "tiny"
    place.mkdir()
    (place / "config.json").write_text(json.dumps(WIDE))
    return str(place)


def test_a_folder_is_partitioned_and_verified(folder: str, tmp_path: Path) -> None:
    """The plan says the load; it is verified against the folder, and not against another model."""
    model = mtpp.read(folder, sequences=8, context="2k", stage_memory="10MB")
    plan = mtpp.partition(model, 3)
    document = plan.document()
    assert document["model"]["dims"] == {"context": 2048, "batch": 3}
    assert plan.optimal
    assert plan.bottleneck == _least_bottleneck(mtpp.read(folder, sequences=8, context="2k", batch=3), 3)
    assert mtpp.verify(document, folder).passed
    other = tmp_path / "other"
    other.mkdir()
    (other / "config.json").write_text(json.dumps(WIDE | {"vocab_size": 1001}))
    assert not mtpp.verify(document, str(other)).passed


def test_the_load_is_stated_and_checked(folder: str, tmp_path: Path) -> None:
    """Tokens per second are those of a batch per bottleneck; a page shows the plan; another load is false."""
    model = mtpp.read(folder, sequences=8, context=128, phase="prefill", batch=2, kv_dtype="fp8")
    plan = mtpp.partition(model, 2)
    document = plan.document()
    load = {"model_type": "llama", "phase": "prefill", "context": 128, "batch": 2, "kv_dtype": "fp8", "tokens": 256}
    assert document["model"]["serving"] == load | {"sequences": 8}
    rate = 256 / (plan.bottleneck / 1e12)
    said = next(line for line in plan.text("table").splitlines() if line.startswith("throughput"))
    assert float(said.split()[1].replace(",", "")) == pytest.approx(rate, rel=0.01)
    assert "tokens of prompts/s (2 sequences a step" in said
    assert mtpp.report(document, model=folder).passed
    for key, wrong in {"tokens": 255, "phase": "decode", "batch": 1, "kv_dtype": "bf16", "sequences": 9}.items():
        forged = json.loads(json.dumps(document))
        forged["model"]["serving"][key] = wrong
        assert mtpp.verify(forged, folder).verdict == "false", key


def _least_bottleneck(model: Any, k: int) -> int:
    """Try all cuts of a chain."""
    names, best = list(model.graph.op_names), None
    for cuts in combinations(range(1, len(names)), k - 1):
        labels = {name: sum(i >= cut for cut in cuts) for i, name in enumerate(names)}
        cost = mtpp.evaluate(model, labels).bottleneck
        best = cost if best is None else min(best, cost)
    assert best is not None
    return best


def test_defaults_are_said(folder: str) -> None:
    """Decode at 4,096 tokens, one sequence."""
    plan = mtpp.partition(folder, 2)
    assert plan.document()["model"]["proposed_dims"] == ["context", "batch"]
    assert "a further token of 1 sequence at a context of 4,096 tokens, cache in bf16" in plan.text("markdown")


def test_caches_of_all_sequences_are_held(folder: str) -> None:
    """Weights, caches and working memory of a stage; without room there is no plan."""
    model = mtpp.read(folder, sequences=4, context=100, batch=2)
    plan = mtpp.partition(model, 2)
    per_layer = 4 * 100 * 2 * 2 * 16 * 2
    layers = [sum("layers" in name for name in stage.ops) for stage in plan.stages]
    assert [stage.state_bytes for stage in plan.stages] == [count * per_layer for count in layers]
    hidden, wide = 2 * 64 * 2, 2 * 2 * 256 * 2
    assert plan.stages[0].peak_bytes == 2 * hidden + wide
    with pytest.raises(mtpp.Infeasible):
        mtpp.partition(mtpp.read(folder, sequences=4, context=100, stage_memory="100KB"), 2)


def test_tables_read_folders(folder: str, tmp_path: Path) -> None:
    """Certificates of a folder of configurations, and of one model."""
    configs = tmp_path / "configs"
    configs.mkdir()
    for count in (2, 3):
        (configs / f"{count}.json").write_text(json.dumps(WIDE | {"num_hidden_layers": count}))
    table = mtpp.certify([str(configs), folder], k=[2], time_limit_s=30)
    assert len(table) == 3
    assert all(row.ratio == 1 for row in table)
    assert mtpp.verify(table, [str(configs), folder]).passed


def test_the_layer_graph_is_written(folder: str) -> None:
    """With bytes of weights, caches and intermediate tensors; the text is read back to the same plan."""
    text = mtpp.convert(mtpp.read(folder, context=64), to="native")
    graph = json.loads(text)
    assert [op["name"] for op in graph["ops"]] == ["embedding", *(f"model.layers.{i}" for i in range(6)), "head"]
    assert sum(op["param_bytes"] for op in graph["ops"]) == mtpp.inspect(folder).bytes
    assert [one["bytes"] for one in graph["states"]] == [64 * 2 * 2 * 16 * 2] * 6
    own, again = mtpp.partition(mtpp.read(folder, context=64), 3), mtpp.partition(mtpp.read(graph), 3)
    assert own.bottleneck == again.bottleneck


def test_an_adapter_adds_its_bytes_to_the_layers_that_it_names(folder: str, tmp_path: Path) -> None:
    """By name; a layer that the model has not is refused."""
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    names = [f"base_model.model.model.layers.{i}.self_attn.q_proj.lora_A.weight" for i in (1, 4)]
    write_safetensors(adapter / "adapter_model.safetensors", dict.fromkeys(names, ("BF16", (2, 64))))
    plain, more = mtpp.read(folder).graph, mtpp.read(folder, adapters=[str(adapter)]).graph
    added = (more.param_bytes - plain.param_bytes).tolist()
    assert added == [0, 0, 256, 0, 0, 256, 0, 0]
    plan = mtpp.partition(mtpp.read(folder, adapters=[adapter]), 2)
    assert mtpp.verify(plan.document(), folder, adapters=[str(adapter)]).passed
    assert not mtpp.verify(plan.document(), folder).passed
    wrong = {"base_model.model.model.layers.6.self_attn.q_proj.lora_A.weight": ("BF16", (2, 64))}
    write_safetensors(adapter / "adapter_model.safetensors", wrong)
    with pytest.raises(InputError, match=r"layers\.6.*names layer 6, which the model has not"):
        mtpp.read(folder, adapters=[str(adapter)])


def test_a_batch_alone_is_held(folder: str) -> None:
    """As many sequences as a step works on."""
    document = mtpp.partition(mtpp.read(folder, batch=3), 2).document()
    assert (document["system"]["sequences"], document["model"]["serving"]["batch"]) == (3, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch": 3, "sequences": 2}, "3 are more than the 2 sequences held"),
        ({"dims": {"tokens": 3}}, "the model has no size 'tokens'"),
        ({"context": 5, "dims": {"context": 6}}, "says the same as another option"),
        ({"context": 5, "dims": {"prompt": 6}}, "says the same as another option"),
        ({"context": 0}, "context"),
        ({"phase": "train"}, "phase"),
        ({"kv_dtype": "fp7"}, "kv_dtype"),
    ],
)
def test_loads_that_are_refused(folder: str, options: dict[str, Any], message: str) -> None:
    """Each is named."""
    with pytest.raises(InputError, match=message):
        mtpp.read(folder, **options)


def test_other_models_have_no_load() -> None:
    """Nor a cache that has a type."""
    with pytest.raises(InputError, match="is of language models"):
        mtpp.read(mtpp.datasets.sample_path("resnet50"), context=5)


@pytest.mark.parametrize("halves", [2, 3, 4])
def test_layers_for_further_tokens_make_the_last_stage_short(folder: str, tmp_path: Path, halves: int) -> None:
    """61 layers and three MTP layers of 1, 3/2 and 2 layers' time on the last of four stages, as by all cuts."""
    (tmp_path / "tiny" / "config.json").write_text(json.dumps(WIDE | {"num_hidden_layers": 61}))
    graph = json.loads(mtpp.convert(mtpp.read(folder, mtp=3), to="native"))
    for op in graph["ops"]:
        name = op["name"]
        op["work"] = halves * 1000 if name.startswith("mtp") else 2000 if "layers" in name else 0
    for tensor in graph["tensors"]:
        tensor["transfer"] = 0
    plan = mtpp.partition(graph, 4)
    assert plan.optimal
    further = 3 * halves * 1000
    best = min(
        max(2000 * a, 2000 * (b - a), 2000 * (c - b), 2000 * (61 - c) + further)
        for a, b, c in combinations(range(62), 3)
    )
    assert plan.bottleneck == best
    for counts in ([16, 15, 15, 15], [16, 16, 15, 14]):
        own = [2000 * count for count in counts]
        assert plan.bottleneck <= max(*own[:3], own[3] + further)
    assert {"head", "mtp.0", "mtp.1", "mtp.2"} <= set(plan.stages[-1].ops)
