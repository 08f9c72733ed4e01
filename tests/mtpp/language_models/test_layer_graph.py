"""Layers of a language model as ops: weights, caches, groups, and tensors between them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import Any

import pytest

from mtpp.errors import InputError
from mtpp.formats.language_models.reader import Sources, model_of
from mtpp.language_models.arithmetic import decode, embedding, head, prefill
from mtpp.language_models.language_model import LanguageModel
from mtpp.language_models.layer_graph import LayerGraph, layer_graph
from mtpp.language_models.serving_load import ServingLoad
from mtpp.machine.presets import load_device
from mtpp.machine.tensor_group import TensorGroup
from tests.support.language_models import LAYER_PARAMETERS, LLAMA, T5

GEMMA3N: dict[str, Any] = {
    "model_type": "gemma3n_text", "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 10,
    "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4, "vocab_size": 10, "altup_num_inputs": 4,
    "laurel_rank": 2, "hidden_size_per_layer_input": 3, "vocab_size_per_layer_input": 10, "num_kv_shared_layers": 4,
    "sliding_window": 16, "torch_dtype": "bfloat16",
}  # fmt: skip


def _model(values: dict[str, Any]) -> LanguageModel:
    from pathlib import Path

    return model_of(Sources("tiny", Path("config.json"), values, None))


def _graph(values: dict[str, Any], load: ServingLoad) -> LayerGraph:
    return layer_graph(_model(values), load)


def test_a_chain_of_layers_between_embedding_and_head() -> None:
    """Hidden states of two bytes an element pass on; each weight stands once."""
    load = ServingLoad(context=100, batch=3)
    graph = _graph(LLAMA, load)
    assert [op.name for op in graph.ops] == ["embedding", "model.layers.0", "model.layers.1", "head"]
    assert [op.param_bytes for op in graph.ops] == [160, 2 * LAYER_PARAMETERS, 2 * LAYER_PARAMETERS, 160 + 16]
    assert [(t.producer, t.consumers, t.bytes) for t in graph.tensors] == [
        ("embedding", ("model.layers.0",), 3 * 8 * 2),
        ("model.layers.0", ("model.layers.1",), 3 * 8 * 2),
        ("model.layers.1", ("head",), 3 * 8 * 2),
    ]
    assert [op.cache_bytes for op in graph.ops] == [0, 100 * 2 * 2 * 2 * 2, 100 * 2 * 2 * 2 * 2, 0]
    assert [op.activation_bytes for op in graph.ops] == [0, 3 * 2 * 16 * 2, 3 * 2 * 16 * 2, 3 * 10 * 4]


@pytest.mark.parametrize("phase", ["decode", "prefill"])
def test_work_is_that_of_the_arithmetic(phase: str) -> None:
    """FLOPs and bytes of each op; a prompt needs a row of logits for each sequence."""
    model, load = _model(LLAMA), ServingLoad(phase, context=64, batch=2, kv_dtype="fp8")
    graph = layer_graph(model, load)
    if phase == "decode":
        steps = [decode(layer, 2, 64, kv_dtype="fp8") for layer in model.layers]
    else:
        steps = [prefill(layer, 64, sequences=2, kv_dtype="fp8") for layer in model.layers]
    tokens = 2 if phase == "decode" else 128
    for op, step in zip(graph.ops, [embedding(model, tokens), *steps, head(model, 2)], strict=True):
        assert step is not None
        norm = 16 if op.name == "head" else 0
        assert (op.flops, op.traffic_bytes) == (step.flops, step.bytes + norm)
    device = load_device("a100")
    costs = graph.cost_graph(device)
    assert list(costs.work) == [device.modelled_work_ps(op.flops, op.traffic_bytes) for op in graph.ops]
    assert dict(zip(costs.states.held.names, costs.states.held.bytes.tolist(), strict=True)) == {
        f"{op.name}.cache": op.cache_bytes for op in graph.ops if op.cache_bytes
    }


def test_a_tied_embedding_is_one_weight_of_both_ends() -> None:
    """A stage holds it once, two stages twice."""
    graph = _graph(LLAMA | {"tie_word_embeddings": True}, ServingLoad())
    assert [(one.bytes, list(one.readers)) for one in graph.weights] == [(160, ["embedding", "head"])]
    assert [graph.ops[0].param_bytes, graph.ops[-1].param_bytes] == [0, 16]


def test_layers_for_further_tokens_stay_with_the_head_and_read_the_embedding() -> None:
    """As many as the caller says: those that the model lacks are like its last layer."""
    graph = _graph(LLAMA, ServingLoad(mtp=2))
    assert graph.groups == {"MTP layers": [["head", "mtp.0", "mtp.1"]]}
    assert [list(one.readers) for one in graph.weights] == [["embedding", "mtp.0", "mtp.1"]]
    assert [(t.producer, t.consumers) for t in graph.tensors][-2:] == [
        ("model.layers.1", ("head", "mtp.0")),
        ("mtp.0", ("mtp.1",)),
    ]
    given = LLAMA | {"model_type": "deepseek_v3", "num_nextn_predict_layers": 1}
    with pytest.raises(InputError):
        _graph(given, ServingLoad())  # it lacks the keys of that architecture


def test_layers_that_read_caches_of_others_stay_with_them() -> None:
    """Those of the last sliding layer before them and of the last full one; inputs of layers move."""
    graph = _graph(GEMMA3N, ServingLoad(batch=2))
    names = [f"model.layers.{i}" for i in range(10)]
    assert graph.groups == {"shared caches": [names[4:]]}  # layer 4 is full, layer 5 slides, 6 … 9 share
    of_layers = [t for t in graph.tensors if ".of." in t.name]
    assert [(t.producer, t.consumers, t.bytes) for t in of_layers] == [("embedding", (n,), 2 * 3 * 2) for n in names]
    hidden = [t.bytes for t in graph.tensors if ".of." not in t.name]
    assert set(hidden) == {2 * 8 * 4 * 2}  # four alternating streams


def test_an_encoder_works_on_prompts_alone() -> None:
    """Its output goes to all decoder layers then, and nowhere at decode."""
    for phase, moved in (("decode", 0), ("prefill", 7 * 8 * 2)):
        graph = _graph(T5, ServingLoad(phase, context=7))
        by_name = {op.name: op for op in graph.ops}
        output = next(t for t in graph.tensors if t.producer == "encoder.block.2")
        assert (len(output.consumers), output.bytes) == (4, moved)
        assert (by_name["encoder.block.0"].flops > 0) is (phase == "prefill")
        assert by_name["decoder.block.0"].cache_bytes == 2 * (7 * 2 * 2 * 4 + 7 * 2 * 2 * 4)
        shared = [(one.name, list(one.readers)) for one in graph.weights]
        assert shared == [("shared.weight", ["embedding", "decoder_embedding", "head"])]


NODE = replace(load_device("a100"), tensor=TensorGroup((1, 2), 7 * 10**9))


@pytest.mark.parametrize("phase", ["decode", "prefill"])
def test_a_share_of_the_layers_and_the_time_to_send(phase: str) -> None:
    """Two sums a layer and one behind the embedding, of the hidden states; logits are gathered; sizes between stay."""
    load = ServingLoad(phase, context=64, batch=3)
    model, tokens = _model(LLAMA), 3 if phase == "decode" else 3 * 64
    whole, share = layer_graph(model, load), layer_graph(model, replace(load, degree=2))
    summed = Fraction(2 * 1 * tokens * 8 * 2, 2)
    assert [op.sent_bytes for op in share.ops] == [summed, 2 * summed, 2 * summed, Fraction(3 * 10 * 2, 2)]
    assert [op.sent_bytes for op in whole.ops] == [0, 0, 0, 0]
    assert [op.param_bytes for op in share.ops] == [80, 592 + 2 * 8, 592 + 2 * 8, 80 + 16]  # norms are whole
    assert [op.cache_bytes * 2 for op in share.ops] == [op.cache_bytes for op in whole.ops]
    assert [(t.name, t.bytes) for t in share.tensors] == [(t.name, t.bytes) for t in whole.tensors]
    assert [op.activation_bytes for op in share.ops] == [0, 2 * tokens * 8 * 2, 2 * tokens * 8 * 2, 3 * 10 * 4]
    costs = share.cost_graph(NODE)
    assert list(costs.work) == [
        NODE.modelled_work_ps(op.flops, op.traffic_bytes)
        + ceil(op.sent_bytes * 10**12 / (7 * 10**9)) for op in share.ops
    ]  # fmt: skip
    with pytest.raises(InputError, match="tensor_link"):
        share.cost_graph(load_device("a100"))
    with pytest.raises(InputError, match="3 GPUs do not divide the 4 attention heads"):
        layer_graph(model, replace(load, degree=3))


def test_a_source_is_embedded_and_summed_on_prompts_alone() -> None:
    """At decode the encoder and its embedding send nothing; layers of the decoder have three sums."""
    for phase, tokens in (("decode", 1), ("prefill", 6)):
        graph = layer_graph(_model(T5), ServingLoad(phase, context=6, degree=2))
        sent = {op.name: op.sent_bytes for op in graph.ops}
        summed = tokens * 8 * 2
        of_source = summed if phase == "prefill" else 0
        assert (sent["embedding"], sent["encoder.block.0"]) == (of_source, 2 * of_source)
        assert (sent["decoder_embedding"], sent["decoder.block.0"]) == (summed, 3 * summed)


def test_experts_of_a_token_stand_beside_each_other() -> None:
    """The widest of a layer is what its chosen experts put out together, not the width by the router's rows."""
    values = LLAMA | {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 3}
    graph = _graph(values, ServingLoad(batch=5))
    assert graph.ops[1].activation_bytes == 5 * 2 * 2 * 3 * 16


@pytest.mark.parametrize(
    "load",
    [
        ServingLoad(),
        ServingLoad(degree=4),
        ServingLoad("prefill", 7, 3, "q8_0"),
        ServingLoad(kv_dtype="fp8", mtp=0),
        ServingLoad(kv_dtype="int4", mtp=3),
    ],
)
def test_loads_are_sizes_and_back(load: ServingLoad) -> None:
    """Whole numbers above zero by name."""
    sizes = load.sizes()
    assert min(sizes.values()) >= 1
    assert ServingLoad.of_sizes(sizes) == load


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"context": 1, "prompt": 1}, "context does not go with prompt"),
        ({"mtp": 1, "no_mtp": 1}, "mtp does not go with no_mtp"),
        ({"cache_block_bytes": 5}, "no cache has cache_block_bytes 5"),
    ],
)
def test_sizes_that_are_no_load(sizes: dict[str, int], message: str) -> None:
    """Each is named."""
    with pytest.raises(InputError, match=message):
        ServingLoad.of_sizes(sizes)
