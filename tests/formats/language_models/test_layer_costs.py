"""FLOPs and bytes of layers of known models, exactly, and figures that others published."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from mtpp.formats.language_models.reader import read_language_model
from mtpp.language_models.arithmetic import decode, distinct_experts, head, prefill
from mtpp.language_models.language_model import DecoderLayer, LanguageModel


@pytest.fixture
def costs(shared_reference: Path) -> dict[str, Any]:
    """Costs of the reference."""
    found: dict[str, Any] = json.loads((shared_reference / "llm_kv.json").read_text())["layer_costs"]
    return found


@pytest.mark.parametrize(
    ("model", "number", "case"),
    [("llama-8b", 0, "llama_8b_layer"), ("gemma2-9b", 0, "gemma2_9b_sliding_layer")],
)
def test_dense_layers_have_the_known_costs(
    shared_data: Path, costs: dict[str, Any], model: str, number: int, case: str
) -> None:
    """Causal, as a square, and of a further token; norms are among the bytes of weights."""
    layer, known = read_language_model(shared_data / "llm" / model).layers[number], costs[case]
    assert layer.work is not None
    assert layer.work.of_token == known["matmul_weights"]
    expected, tokens = known["prefill"], known["prefill"]["n"]
    causal, square = prefill(layer, tokens), prefill(layer, tokens, square=True)
    assert causal is not None
    assert square is not None
    assert (causal.projections, causal.attention) == (expected["matmul_flops"], expected["attention_flops_causal"])
    assert (square.attention, causal.written_bytes) == (
        expected["attention_flops_square"],
        expected["kv_bytes_written"],
    )
    expected = known["decode"]
    step = decode(layer, expected["b"], expected["c"])
    assert step is not None
    assert (step.projections, step.attention) == (expected["matmul_flops"], expected["attention_flops"])
    assert step.weight_bytes == expected["weight_bytes"]
    assert (step.read_bytes, step.written_bytes) == (expected["kv_bytes_read"], expected["kv_bytes_written"])


@pytest.mark.parametrize("sequences", [1, 16, 256])
def test_experts_have_the_known_costs(shared_data: Path, costs: dict[str, Any], sequences: int) -> None:
    """The expected distinct ones are read; the reference leaves norms out."""
    layer, known = _first(shared_data, "qwen3-30b-a3b"), costs[f"qwen3_30b_a3b_layer_b{sequences}"]
    assert layer.work is not None
    experts = layer.work.experts
    assert experts is not None
    assert experts.weights == known["expert_weights"]
    assert layer.work.projections == known["attention_weights"] + known["router_weights"]
    distinct = distinct_experts(experts.count, experts.chosen, sequences)
    assert float(distinct) == pytest.approx(known["expected_distinct_experts"], rel=1e-14)
    step = decode(layer, sequences, known["c"])
    assert step is not None
    assert (step.projections, step.attention) == (known["matmul_flops"], known["attention_flops"])
    norms = layer.bytes - known["weight_bytes_all"]
    assert norms == 2 * (2 * 2048 + 2 * 128)
    assert float(step.weight_bytes - norms) == pytest.approx(known["weight_bytes_expected"], rel=1e-14)
    assert step.read_bytes == known["kv_bytes_read"]


def test_latent_attention_has_the_known_costs(shared_data: Path, costs: dict[str, Any]) -> None:
    """Beside a dense network, whose projections are taken off."""
    layer, known = _first(shared_data, "configs/deepseek-v3.json"), costs["deepseek_v3_attention"]
    network = 3 * 7168 * 18432
    assert layer.work is not None
    assert layer.work.of_token - network == known["matmul_weights"]
    expected = known["prefill_expanded"]
    step = prefill(layer, expected["n"])
    assert step is not None
    assert step.projections - 2 * expected["n"] * network == expected["matmul_flops"]
    assert step.attention == expected["attention_flops_causal"]
    expected = known["decode_absorbed"]
    absorbed = decode(layer, expected["b"], expected["c"])
    expanded = decode(layer, expected["b"], expected["c"], absorbed=False)
    assert absorbed is not None
    assert expanded is not None
    assert absorbed.projections - 2 * expected["b"] * network == expected["matmul_flops"]
    assert (absorbed.attention, absorbed.read_bytes) == (expected["attention_flops"], expected["cache_bytes_read"])
    known = known["decode_expanded_without_absorption"]
    assert (expanded.attention, expanded.expansion) == (known["attention_flops"], known["expand_cache_flops"])


def test_a_head_has_the_known_costs(shared_data: Path, costs: dict[str, Any]) -> None:
    """Of a row of logits."""
    step, known = head(read_language_model(shared_data / "llm" / "llama-8b"), 1), costs["llama_8b_head"]
    assert (step.flops, step.bytes) == (known["flops_per_logit_row"], known["weight_bytes"])


def test_recurrent_layers_follow_the_page(shared_data: Path) -> None:
    """Six FLOPs an element of a state in Mamba-2; eight in a gated delta rule, and its convolution."""
    layer = _first(shared_data, "configs/mamba2-2.7b.json")
    inner, state, heads = 5120, 128, 80
    step = prefill(layer, 10)
    assert step is not None
    assert step.projections == 20 * 2560 * ((2 * inner + 2 * state + heads) + inner)
    assert step.recurrence == 10 * 6 * inner * state
    layer = _first(shared_data, "configs/qwen3-next-80b.json")
    keys, values, hidden, width = 2048, 4096, 2048, 512
    step = prefill(layer, 10)
    assert step is not None
    assert layer.kind == "gated_delta"
    network = hidden * 512 + (10 + 1) * 3 * hidden * width + hidden
    assert step.projections == 20 * (hidden * (2 * keys + 2 * values) + 2 * hidden * 32 + values * hidden + network)
    assert step.recurrence == 20 * 4 * (2 * keys + values) + 10 * 8 * 32 * 128 * 128


def test_layers_that_share_a_cache_read_it(shared_data: Path) -> None:
    """Within the window of their kind, and write none."""
    layers = read_language_model(shared_data / "llm" / "configs" / "gemma3n-e4b-text.json").layers
    steps = [decode(layer, 1, 8192) for layer in layers]
    of_token = 2 * 2 * 2 * 256
    read = [step.read_bytes // of_token for step in steps if step is not None]
    assert read == [512, 512, 512, 512, 8192] * 7
    assert [step.written_bytes for step in steps if step is not None] == [of_token] * 20 + [0] * 15


def test_cross_attention_follows_the_page(shared_data: Path) -> None:
    """4 q d n source, and two bytes an element of the encoder's keys and values."""
    layer = read_language_model(shared_data / "llm" / "configs" / "t5-large.json").layers[-1]
    step = decode(layer, 1, 10, source=100)
    assert step is not None
    assert step.attention == 4 * 1024 * 10 + 4 * 1024 * 100
    assert step.read_bytes == 4096 * 110
    assert layer.work is not None
    assert (layer.work.projections, layer.work.source) == (6 * 1024**2 + 2 * 1024 * 4096, 2 * 1024**2)


@pytest.mark.parametrize("name", ["llama-8b", "qwen3-30b-a3b", "gemma2-9b", "deepseek-v2-lite"])
def test_quantised_files_have_the_flops_of_plain_ones(shared_data: Path, name: str) -> None:
    """And fewer bytes, of experts too."""
    (path,) = (shared_data / "llm" / "gguf").glob(f"{name}-*.gguf")
    plain, packed = (read_language_model(one).layers[-1] for one in (shared_data / "llm" / name, path))
    steps = [decode(layer, 2, 100) for layer in (plain, packed)]
    assert steps[0] is not None
    assert steps[1] is not None
    assert plain.work == packed.work
    assert steps[0].flops == steps[1].flops
    assert steps[0].weight_bytes > Fraction(3, 2) * steps[1].weight_bytes
    assert (packed.expert_bytes > 0) == (plain.expert_bytes > 0)


def test_published_figures_are_met(shared_data: Path) -> None:
    """Of 92 layers with 8 heads of 128 for 202,752 tokens, and of the latent cache of DeepSeek-V3.2 for 2**20."""
    layer = _first(shared_data, "llama-8b").cache
    assert 92 * layer.bytes(202_752) == 71.15625 * 2**30
    latent = read_language_model(shared_data / "llm" / "configs" / "deepseek-v3.json")
    assert sum(layer.cache.bytes(2**20) for layer in latent.layers) == 68.625 * 2**30


def _first(folder: Path, name: str) -> DecoderLayer:
    model: LanguageModel = read_language_model(folder / "llm" / name)
    return model.layers[0]
