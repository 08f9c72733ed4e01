"""``mtpp.device_map`` of PyTorch modules; maps against accelerate and transformers, where these are installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from device_maps import CONFIGURATIONS, SHARES, configuration, fullest, limits_of, modules

import mtpp

torch = pytest.importorskip("torch")


class Layer(torch.nn.Module):
    """A layer with an own parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.empty(8))
        self.linear = torch.nn.Linear(8, 8)


class Plain(torch.nn.Module):
    """No model of transformers: parameters of its own, a tied head, a list of layers or none."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.start = torch.nn.Parameter(torch.empty(4))
        self.register_buffer("seen", torch.zeros(3))
        self.embedding = torch.nn.Embedding(20, 8)
        self.layers = torch.nn.ModuleList(Layer() for _ in range(layers))
        self.head = torch.nn.Linear(8, 20, bias=False)
        self.head.weight = self.embedding.weight


def test_modules_on_the_meta_device() -> None:
    """Layers stay whole, own parameters and buffers have a device, ties stay together."""
    with torch.device("meta"):
        model = Plain(5)
    placed = mtpp.device_map(model, {0: 1800, 1: 1200})
    assert placed["embedding"] == placed["head"]
    assert {"start", "seen", "layers.0", "layers.4"} <= set(placed)
    assert set(placed.values()) == {0, 1}


def test_modules_without_a_list_of_layers() -> None:
    """All modules without children are blocks."""
    model = torch.nn.Sequential(*(torch.nn.Linear(10, 10, bias=False) for _ in range(5)))
    assert mtpp.device_map(model, {0: 800, 1: 1200}) == {"0": 0, "1": 0, "2": 1, "3": 1, "4": 1}
    assert mtpp.device_map(torch.nn.Linear(4, 4), {3: "1KB"}) == {"": 3}
    with pytest.raises(mtpp.InputError, match="model: has no modules to place"):
        mtpp.device_map(torch.nn.ReLU(), {0: 800})
    with pytest.raises(mtpp.InputError, match="has no configuration that its layers are known by"):
        mtpp.device_map(model, {0: 800, 1: 1200}, context=5)


def _built(name: str) -> Any:
    transformers = pytest.importorskip("transformers", minversion="5")
    values = configuration(name)
    kind = getattr(torch, values.pop("dtype"))
    with torch.device("meta"):
        return transformers.AutoModelForCausalLM.from_config(transformers.CONFIG_MAPPING[name](**values), dtype=kind)


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_packages_take_the_maps_and_their_own_are_no_emptier(name: str) -> None:
    """``check_device_map`` accepts each; neither accelerate's rule nor ``auto`` of transformers has an emptier one."""
    accelerate = pytest.importorskip("accelerate.utils.modeling")
    model = _built(name)
    integration = pytest.importorskip("transformers.integrations.accelerate")
    whole = list(model._no_split_modules)
    for shares in SHARES:
        limits = limits_of(name, shares)
        placed = mtpp.device_map(model, limits)
        assert placed == mtpp.device_map(configuration(name), limits)
        accelerate.check_device_map(model, placed)
        share = fullest(modules(name), placed, limits)
        assert share <= 1
        balanced = accelerate.get_balanced_memory(model, dict(limits), whole)
        theirs = [
            accelerate.infer_auto_device_map(model, dict(limits), whole),
            accelerate.infer_auto_device_map(model, balanced, whole),
            accelerate.infer_auto_device_map(model, dict(limits), whole, fallback_allocation=True),
            integration._get_device_map(model, "auto", dict(limits), None),
        ]
        for found in theirs:
            if not {"cpu", "disk"} & set(found.values()):
                assert share <= fullest(modules(name), found, limits), shares


@pytest.mark.parametrize("name", ["llama", "gemma2"])
def test_caches_of_a_module_are_those_of_its_configuration(name: str) -> None:
    """A module and the configuration that it was built from have one map."""
    model, limits = _built(name), limits_of(name, "two equal")
    assert mtpp.device_map(model, limits, context=1000) == mtpp.device_map(configuration(name), limits, context=1000)


@pytest.mark.parametrize("name", ["llama", "gemma2"])
def test_a_model_that_is_loaded_with_a_map_runs_as_before(name: str, tmp_path: Path) -> None:
    """``from_pretrained`` on the CPU and the disk: the same logits."""
    transformers = pytest.importorskip("transformers", minversion="5")
    sizes = {"num_hidden_layers": 4, "hidden_size": 64, "intermediate_size": 96, "vocab_size": 300, "head_dim": 16}
    values = configuration(name) | sizes | {"num_attention_heads": 4, "num_key_value_heads": 2}
    del values["dtype"]
    torch.manual_seed(1)
    model = transformers.AutoModelForCausalLM.from_config(transformers.CONFIG_MAPPING[name](**values)).eval()
    model.save_pretrained(tmp_path / "model")
    size = sum(4 * parameter.numel() for parameter in model.parameters())
    placed = mtpp.device_map(tmp_path / "model", {"cpu": size * 4 // 5, "disk": 0}, context=9)
    assert set(placed.values()) == {"cpu", "disk"}
    loaded = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path / "model", device_map=placed, offload_folder=tmp_path / "offloaded"
    )
    tokens = torch.arange(9)[None]
    with torch.no_grad():
        assert torch.equal(loaded.eval()(tokens).logits, model(tokens).logits)


def test_models_of_an_encoder_and_a_decoder() -> None:
    """Embeddings of T5 share a device; only its decoder keeps caches, of the source too."""
    transformers = pytest.importorskip("transformers", minversion="5")
    with torch.device("meta"):
        config = transformers.T5Config(d_model=64, num_layers=4, num_heads=4, d_ff=128, vocab_size=300)
        model = transformers.T5ForConditionalGeneration(config)
    weights = sum(4 * parameter.numel() for parameter in model.parameters())
    caches = 4 * 2 * (64 * 4 * 2 * 4 * 1000)  # layers · (own and source) · keys and values of 4 heads in 4 bytes
    with pytest.raises(mtpp.Infeasible):
        mtpp.device_map(model, {0: weights + 2 * caches - 1}, context=1000, sequences=2)
    limits = dict.fromkeys(range(2), (weights + caches) * 2 // 3)
    placed = mtpp.device_map(model, limits, context=1000)
    assert len({placed[key] for key in ("shared", "decoder.embed_tokens", "lm_head")}) == 1
    assert set(placed.values()) == {0, 1}
