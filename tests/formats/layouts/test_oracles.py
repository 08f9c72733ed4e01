"""Rules of accelerate and transformers against these packages themselves, where they are installed."""

from __future__ import annotations

import json
import logging
import warnings
from pathlib import Path
from random import Random
from typing import Any

import pytest

import mtpp
from mtpp.formats.language_models.architectures import ARCHITECTURES
from mtpp.formats.language_models.module_classes import MODULE_CLASSES
from mtpp.formats.language_models.module_trees import modules_of_configuration
from mtpp.language_models.modules import Modules

torch = pytest.importorskip("torch")
accelerate = pytest.importorskip("accelerate.utils.modeling")

from mtpp.runtime.pytorch.module_tree import _tied, _tree, modules_of  # noqa: E402


class Block(torch.nn.Module):
    """Stays whole in some cases."""


class Group(torch.nn.Module):
    """May be opened."""


class Leaf(torch.nn.Module):
    """Has no children."""


def _leaf(draw: Random) -> Any:
    leaf = Leaf()
    for i in range(draw.randint(0, 2)):
        kind = draw.choice([torch.float32, torch.bfloat16])
        elements = torch.empty(draw.randint(1, 40), device="meta", dtype=kind)
        leaf.register_parameter(f"w{i}", torch.nn.Parameter(elements, requires_grad=False))
    if draw.random() < 0.15:
        kind = draw.choice([torch.float32, torch.int64])
        leaf.register_buffer("b", torch.empty(draw.randint(1, 20), device="meta", dtype=kind), draw.random() < 0.5)
    return leaf


def _module(draw: Random, depth: int) -> Any:
    if depth == 0 or draw.random() < 0.3:
        return _leaf(draw)
    module = draw.choice([Block, Group, Group])()
    if draw.random() < 0.3:
        module.p = torch.nn.Parameter(torch.empty(draw.randint(1, 20), device="meta"))
    for i in range(draw.randint(1, 4)):
        module.add_module(f"c{i}", _module(draw, depth - 1))
    return module


def _model(draw: Random) -> Any:
    model = Group()
    for i in range(draw.randint(1, 6)):
        model.add_module(f"m{i}", _module(draw, 3))
    leaves = [module for module in model.modules() if "w0" in module._parameters]
    if len(leaves) > 1 and draw.random() < 0.4:
        one, other = draw.sample(leaves, 2)
        other.w0 = one.w0
    return model


def _limits(draw: Random, model: Any) -> dict[int | str, int]:
    total = max(1, sum(4 * parameter.numel() for parameter in model.parameters()))
    gpus = draw.randint(1, 4)
    sizes = (0, draw.randint(0, total), draw.randint(total // (gpus + 1), total))
    limits: dict[int | str, int] = {gpu: draw.choice(sizes) for gpu in range(gpus)}
    if draw.random() < 0.5:
        limits["cpu"] = draw.randint(0, total)
    return limits


def _own(rule: Any) -> Any:
    """Map of a package as texts, or the class of its error."""
    try:
        return {name: str(device) for name, device in rule().items()}
    except Exception as error:
        return type(error).__name__


def _ours(engine: str, setting: dict[str, Any], modules: Modules) -> Any:
    try:
        return mtpp.read_layout(engine, setting, layers=1, model=modules).device_map
    except mtpp.InputError as error:
        return str(error).removeprefix("layout: refused: ").partition(":")[0]


def _rule(package: Any, model: Any, limits: Any, mode: str, whole: Any, **options: Any) -> Any:
    fill = {name: options.pop(name) for name in ("fallback_allocation",) if name in options}
    if mode != "infer":
        limits = package.get_balanced_memory(model, dict(limits), whole, low_zero=mode == "balanced_low_0", **options)
    return package.infer_auto_device_map(model, dict(limits), whole, **options, **fill)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_device_maps_of_accelerate(seed: int) -> None:
    """Of random modules with random limits, tied parameters, buffers and types."""
    logging.getLogger("accelerate").setLevel(logging.CRITICAL)
    warnings.simplefilter("ignore")
    draw = Random(seed)
    for _ in range(120):
        model = _model(draw)
        limits, whole = _limits(draw, model), draw.choice([None, ["Block"], ["Block", "Leaf"]])
        mode, dtype = draw.choice(["infer", "balanced", "balanced_low_0"]), draw.choice([None, "bfloat16", "float32"])
        options = {"dtype": dtype, "fallback_allocation": draw.random() < 0.4}
        setting = {"max_memory": limits, "mode": mode, "no_split_module_classes": whole, **options}
        modules = Modules(_tree("", model), _tied(model), tuple(whole or ()))
        assert _ours("accelerate", setting, modules) == _own(
            lambda: _rule(accelerate, model, limits, mode, whole, **options)  # noqa: B023
        )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_device_maps_of_transformers(seed: int) -> None:
    """By its own rule since release 5."""
    own = pytest.importorskip("transformers.integrations.accelerate")
    logging.getLogger("accelerate").setLevel(logging.CRITICAL)
    draw = Random(seed)
    for _ in range(80):
        model = _model(draw)
        limits, whole = _limits(draw, model), draw.choice([None, ["Block"], ["Block", "Leaf"]])
        names = [name for name, _ in model.named_parameters(remove_duplicate=False)]
        groups = [sorted(group, key=names.index) for group in _tied(model)]
        model.all_tied_weights_keys = {name: group[0] for group in groups for name in group[1:]}
        mode = draw.choice(["infer", "balanced", "balanced_low_0"])
        setting = {"max_memory": limits, "mode": mode, "no_split_module_classes": whole}
        modules = Modules(_tree("", model), _tied(model), tuple(whole or ()))
        assert _ours("transformers", setting, modules) == _own(lambda: _rule(own, model, limits, mode, whole))  # noqa: B023


SMALL: dict[str, dict[str, Any]] = {
    "qwen3_moe": {"num_hidden_layers": 4, "mlp_only_layers": [1], "decoder_sparse_step": 2},
    "deepseek_v3": {"num_hidden_layers": 4, "first_k_dense_replace": 2},
    "deepseek_v2": {"num_hidden_layers": 3, "first_k_dense_replace": 1, "q_lora_rank": None},
    "gemma3_text": {"num_hidden_layers": 7},
    "qwen2_moe": {"num_hidden_layers": 3, "mlp_only_layers": [1]},
    "qwen3_next": {"num_hidden_layers": 5, "mlp_only_layers": [1]},
    "granitemoehybrid": {"num_hidden_layers": 3, "layer_types": ["mamba", "attention", "mamba"]},
}
UNNAMED = ("act_fn", "activation_fn", "activation", "act")
"""Modules whose classes no rule looks at."""


def _shape(modules: Modules) -> list[Any]:
    return [
        (
            name,
            "" if name.rpartition(".")[2] in UNNAMED else module.class_name,
            [t.name for t in module.tensors if not t.buffer],
            sorted((t.elements, t.element_bytes, t.buffer, t.stored) for t in module.tensors),
        )
        for name, module in modules.root.walk()
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULE_CLASSES)
def test_modules_are_those_that_transformers_builds(name: str) -> None:
    """Names, order, classes, elements and types, from the configuration alone, whether it says defaults or not."""
    transformers = pytest.importorskip("transformers", minversion="5")
    configuration = transformers.AutoConfig.for_model(name, **SMALL.get(name, {"num_hidden_layers": 3}))
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(configuration, dtype=torch.bfloat16)
    given = {**configuration.to_dict(), "dtype": "bfloat16"}
    ours, theirs = modules_of_configuration(given), modules_of(model)
    assert _shape(ours) == _shape(theirs)
    absent = ARCHITECTURES[name].defaults.keys() - SMALL.get(name, {}).keys()
    by_default = modules_of_configuration({key: value for key, value in given.items() if key not in absent})
    assert _shape(by_default) == _shape(theirs)
    assert [sorted(group) for group in ours.tied] == [sorted(group) for group in theirs.tied]
    assert (ours.undividable, ours.layer_prefix, ours.embedding, ours.final_norm, ours.head) == (
        theirs.undividable,
        theirs.layer_prefix,
        theirs.embedding,
        theirs.final_norm,
        theirs.head,
    )


@pytest.mark.slow
def test_other_architectures_are_built_by_transformers(tmp_path: Path) -> None:
    """On the meta device, without weights."""
    pytest.importorskip("transformers", minversion="5")
    values = {
        "model_type": "helium", "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "head_dim": 16,
        "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 50, "pad_token_id": 0, "rms_norm_eps": 1e-6,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(values))
    setting = {"mode": "sequential", "max_memory": {0: 300_000, 1: 10**9}}
    layout = mtpp.read_layout("transformers", setting, layers=3, model=tmp_path)
    assert layout.devices_of_layers == ["0", "1", "1"]
    (tmp_path / "config.json").write_text(json.dumps({**values, "hidden_size": "wide"}))
    with pytest.raises(mtpp.InputError, match="transformers refuses it"):
        mtpp.read_layout("transformers", setting, layers=3, model=tmp_path)
