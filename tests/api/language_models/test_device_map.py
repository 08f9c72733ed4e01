"""``mtpp.device_map``: limits kept, ties, caches, offloading, and the fullest device against the rules of engines."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from device_maps import CONFIGURATIONS, SHARES, configuration, fullest, limits_of, loads, modules, total_of

import mtpp
from mtpp.formats.language_models.module_trees import modules_of_configuration
from mtpp.language_models.module_blocks import blocks_of


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_the_fullest_device_is_never_fuller_than_by_the_rules_of_engines(name: str) -> None:
    """Rules of accelerate and of transformers 5, with the same undividable blocks; wherever these do not offload."""
    of = modules(name)
    layers = len(of.by_name[of.layer_prefix].children)
    compared = 0
    for shares in SHARES:
        limits = limits_of(name, shares)
        placed = mtpp.device_map(configuration(name), limits)
        share = fullest(of, placed, limits)
        assert share <= 1
        for engine, mode in product(("accelerate", "transformers"), ("auto", "sequential")):
            layout = mtpp.read_layout(engine, {"mode": mode, "max_memory": limits}, layers=layers, model=of)
            theirs = {key: int(at) if at.isdecimal() else at for key, at in (layout.device_map or {}).items()}
            if not {"cpu", "disk"} & set(theirs.values()):
                compared += 1
                assert share <= fullest(of, theirs, limits), (name, shares, engine, mode)
    assert compared >= 5


def test_maps_of_small_models_equal_brute_force() -> None:
    """Limits are kept where any map of whole blocks keeps them, and refused where none does."""
    config = configuration("llama") | {"num_hidden_layers": 5, "hidden_size": 64, "vocab_size": 900}
    of = modules_of_configuration(config)
    blocks = blocks_of(of, {})
    sizes = [block.bytes for block in blocks]
    total, kept, refused = sum(sizes), 0, 0
    for percents in product((25, 36, 42, 60), repeat=3):
        limits = {device: total * share // 100 for device, share in enumerate(percents)}
        rooms = list(limits.values())
        possible = any(
            all(sum(s for s, at in zip(sizes, placed, strict=True) if at == i) <= room for i, room in enumerate(rooms))
            for placed in product(range(3), repeat=len(sizes))
        )
        if not possible:
            refused += 1
            with pytest.raises(mtpp.Infeasible, match="max_memory: "):
                mtpp.device_map(config, limits)
            continue
        kept += 1
        assert fullest(of, mtpp.device_map(config, limits), limits) <= 1
    assert kept > 20
    assert refused > 5


def test_tied_modules_share_a_device() -> None:
    """Head and embedding of Gemma, whose bytes count once."""
    placed = mtpp.device_map(configuration("gemma2"), limits_of("gemma2", "four equal"))
    assert placed["model.embed_tokens"] == placed["lm_head"]


def test_caches_count_with_their_layers(tmp_path: Path) -> None:
    """Four sequences of 8,192 tokens of Llama take 128 MiB a layer, which limits for weights alone do not have."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(configuration("llama")), encoding="utf-8")
    weights, layer = total_of(modules("llama")), 4 * 8192 * 2 * 8 * 128 * 2
    limits = dict.fromkeys(range(2), weights // 2 + layer * 17)
    placed = mtpp.device_map(path, limits, context=8192, sequences=4)
    held = loads(modules("llama"), placed)
    for device in held:
        held[device] += layer * sum(at == device for key, at in placed.items() if key.startswith("model.layers."))
    assert max(held.values()) <= limits[0]
    assert sum(held.values()) == weights + 32 * layer
    assert placed == mtpp.device_map(configuration("llama"), limits, context=8192, sequences=4)
    with pytest.raises(mtpp.Infeasible, match="all devices together have"):
        mtpp.device_map(path, {0: weights + layer * 31}, context=8192, sequences=4)


def test_weights_are_offloaded_only_where_nothing_else_holds() -> None:
    """The last blocks, as few as can be, beside room for the largest of them on the first device."""
    of, config = modules("llama"), configuration("llama")
    total, layer = total_of(of), 436_224_000
    assert set(mtpp.device_map(config, {0: total, "cpu": total}).values()) == {0}
    placed = mtpp.device_map(config, {0: total // 2, "cpu": total})
    assert set(placed.values()) == {0, "cpu"}
    held = loads(of, placed)
    assert total // 2 - layer < held[0] + 1_050_673_152 <= total // 2
    assert mtpp.device_map(config, {"cpu": total}) == {"": "cpu"}
    with_disk = mtpp.device_map(config, {0: total // 2, "cpu": total // 4, "disk": "1GB"})
    assert set(with_disk.values()) == {0, "cpu", "disk"}
    assert loads(of, with_disk)["cpu"] <= total // 4
    with pytest.raises(mtpp.Infeasible, match="name 'cpu' or 'disk' to offload weights"):
        mtpp.device_map(config, {0: total // 2})
    with pytest.raises(mtpp.Infeasible, match=r"model\.embed_tokens takes .*, the largest limit is 512 MiB"):
        mtpp.device_map(config, {0: "512MiB", "disk": 0})


@pytest.mark.parametrize(
    "max_memory",
    [["10GiB"], {}, {0: 0}, {"disk": "1GB"}, {0: "1TB"}, {0: 1.5}, {"gpu": 1}, {-1: 5}, {True: 5}, "24GiB", {0: -1}],
)
def test_limits_are_refused_in_one_line(max_memory: Any) -> None:
    """Whatever is no limit of a device that runs modules."""
    with pytest.raises(mtpp.InputError) as caught:
        mtpp.device_map(configuration("llama"), max_memory)
    assert caught.value.parameter == "max_memory"
    assert "\n" not in str(caught.value)


def test_without_limits_the_gpus_that_are_present_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their free memory; without any a line says so."""
    free: dict[int, int] = {}
    monkeypatch.setattr("mtpp.runtime.pytorch.gpus.free_bytes", lambda: free)
    with pytest.raises(mtpp.InputError, match="max_memory: no GPU is present"):
        mtpp.device_map(configuration("llama"))
    free |= {0: 10**10, 1: 10**10}
    assert set(mtpp.device_map(configuration("llama")).values()) == {0, 1}


def test_packed_weights_count_as_stored(shared_data: Path) -> None:
    """A folder with layers in FP8 has half the bytes that its type says; its modules alone say more."""
    folder = shared_data / "llm" / "qwen3-8b-fp8"
    if not folder.exists():
        pytest.skip("no such model")
    assert set(mtpp.device_map(folder, {0: "9GiB"}).values()) == {0}
    with pytest.raises(mtpp.Infeasible):
        mtpp.device_map(folder / "config.json", {0: "9GiB"})


def test_files_without_modules_are_refused(shared_data: Path, tmp_path: Path) -> None:
    """GGUF files have none, nor has an empty folder."""
    for path in [tmp_path, *(shared_data / "llm" / "gguf").glob("*.gguf")]:
        with pytest.raises(mtpp.InputError):
            mtpp.device_map(path, {0: "80GiB"})


def test_layouts_read_each_map_without_findings() -> None:
    """Maps are layouts of accelerate, whose modules are all known and covered."""
    placed = mtpp.device_map(configuration("llama"), limits_of("llama", "three unequal"))
    layout = mtpp.read_layout("accelerate", {"device_map": placed}, layers=32, model=modules("llama"))
    assert layout.findings == []
    assert sum(stop - start for start, stop in layout.ranges or []) == 32
