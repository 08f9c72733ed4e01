"""``mtpp.device_map`` on machines: the least bottleneck against all cuts on all orders of devices."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from itertools import combinations_with_replacement, pairwise, permutations
from pathlib import Path
from typing import Any

import pytest
from device_maps import configuration

import mtpp
from mtpp.api.language_models.placed_modules import placed_model
from mtpp.inference.instance import Instance
from mtpp.language_models.layer_graph import layer_graph
from mtpp.language_models.module_blocks import ModuleBlock
from mtpp.language_models.serving_load import ServingLoad
from mtpp.language_models.set_cost import cost_of_set

TABLE = """
[[device]]
system = "{system}"
memory = "{memory}B"
bandwidth = "{bandwidth}GB/s"
place = "{place}"
"""


def _machine(path: Path, seed: int, total: int, order: str) -> Path:
    rng = random.Random(seed)
    tables = [
        TABLE.format(
            system=rng.choice(["a100", "v100", "l4"]),
            memory=total * rng.randint(35, 90) // 100,
            bandwidth=rng.choice([1, 5, 25]),
            place="cpu",
        )
        for _ in range(3)
    ]
    path.write_text(f'order = "{order}"\n' + "".join(tables), encoding="utf-8")
    return path


def _configuration(name: str) -> dict[str, Any]:
    layers = {"num_hidden_layers": 5, "vocab_size": 60000, "hidden_size": 512, "head_dim": 16}
    return configuration(name) | layers


def _maps(n: int, orders: list[tuple[int, ...]]) -> Iterator[list[int]]:
    for order in orders:
        for cuts in combinations_with_replacement(range(n + 1), len(order) - 1):
            yield [order[i] for i, (a, b) in enumerate(pairwise((0, *cuts, n))) for _ in range(a, b)]


def _bottleneck(instance: Instance, on: Mapping[str, int]) -> int:
    """Largest f_j(S) by its definition, for devices of ops by name."""
    ops = {device: [v for v, op in enumerate(instance.op_names) if on[op] == device] for device in on.values()}
    return max(cost_of_set(instance, held, instance.machine.class_of[device]).cost for device, held in ops.items())


def _on(blocks: list[ModuleBlock], devices: list[int]) -> dict[str, int]:
    """Device of each op, for a device of each block."""
    of = {name: device for block, device in zip(blocks, devices, strict=True) for name in block.names}
    layers = {name: device for name, device in of.items() if name.startswith("model.layers.")}
    return {"embedding": of["model.embed_tokens"], "head": of["lm_head"], **layers}


@pytest.mark.parametrize("order", ["fixed", "free"])
@pytest.mark.parametrize("name", ["llama", "gemma2"])
def test_the_bottleneck_is_that_of_brute_force(name: str, order: str, tmp_path: Path) -> None:
    """Over all cuts between blocks, with embedding and head apart or tied, in the machine's order or in any."""
    config = _configuration(name)
    blocks = placed_model(config).blocks(2048, 6)
    held = [block.held_bytes for block in blocks]
    orders = [(0, 1, 2)] if order == "fixed" else list(permutations(range(3)))
    refused = 0
    for seed in range(6):
        path = _machine(tmp_path / "machine.toml", seed, sum(held), order)
        machine = mtpp.Machine.read(str(path))
        graph = layer_graph(placed_model(config).language_model, ServingLoad(context=2048, batch=2))
        graphs = [graph.cost_graph(device) for device in machine.classes]
        instance = Instance.build(graphs[0], machine, [one.work for one in graphs])
        limits = [device.memory_bytes or 0 for device in machine.devices]
        least = None
        for devices in _maps(len(blocks), orders):
            loads = [sum(h for h, at in zip(held, devices, strict=True) if at == device) for device in range(3)]
            if all(load <= limit for load, limit in zip(loads, limits, strict=True)):
                cost = _bottleneck(instance, _on(blocks, devices))
                least = cost if least is None else min(least, cost)
        try:
            placed = mtpp.device_map(config, context=2048, sequences=6, machine=path)
        except mtpp.Infeasible:
            refused += 1
            assert least is None
            continue
        if least is not None:
            found = [_device_of(placed, block.names[0]) for block in blocks]
            assert _bottleneck(instance, _on(blocks, found)) == least
    assert refused < 4


def _device_of(placed: Mapping[str, Any], name: str) -> int:
    return int(placed[max((key for key in placed if key == "" or f"{name}.".startswith(f"{key}.")), key=len)])


def test_places_name_gpus_and_limits_may_be_given(tmp_path: Path) -> None:
    """A device is the GPU of its place; ``max_memory`` stands for the memory that the file has."""
    config, path = _configuration("llama"), tmp_path / "machine.toml"
    tables = [TABLE.format(system="a100", memory=10**9, bandwidth=25, place=f"cuda:{gpu}") for gpu in (3, 1)]
    path.write_text("".join(tables), encoding="utf-8")
    assert set(mtpp.device_map(config, machine=path).values()) == {3, 1}
    assert mtpp.device_map(config, {1: 0}, machine=mtpp.Machine.read(str(path))) == {"": 3}
    with pytest.raises(mtpp.InputError, match="max_memory: the machine has no device 0"):
        mtpp.device_map(config, {0: 10**9}, machine=path)
    path.write_text("".join(tables[:1] * 2), encoding="utf-8")
    with pytest.raises(mtpp.InputError, match="machine: /device: two of its devices are one GPU"):
        mtpp.device_map(config, machine=path)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("tensor_parallel = 2\ntensor_link = '450GB/s'", "tensor_parallel of devices is not for maps of modules"),
        ("costs = 'none.json'", "costs of devices is not for maps of modules"),
        ("", "device d0 has no memory"),
    ],
)
def test_machines_that_a_map_does_not_have_are_refused(line: str, problem: str, tmp_path: Path) -> None:
    """In one line."""
    path = tmp_path / "machine.toml"
    path.write_text(f'[[device]]\nsystem = "a100"\n{line}\n', encoding="utf-8")
    (tmp_path / "none.json").write_text(json.dumps({}), encoding="utf-8")
    with pytest.raises(mtpp.InputError, match=problem):
        mtpp.device_map(_configuration("llama"), machine=path)
