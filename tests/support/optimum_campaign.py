"""Plans of small graphs on random devices, through files, beside their optimum by brute force."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from oracles import NEVER, brute_force_optimum

import mtpp
from mtpp.errors import Infeasible
from mtpp.formats.graphs.native import write_native
from mtpp.inference.graph import CostGraph
from mtpp.machine.device import Device

Case = tuple[CostGraph, Device, int]
"""A graph, a device of each stage, and k."""


def keywords(device: Device) -> dict[str, Any]:
    """Return the keywords of ``mtpp.read`` that describe the device."""
    sizes = {
        "fast_memory": device.fast_memory_bytes,
        "stage_memory": device.memory_bytes,
        "activation_reserve": device.activation_reserve_bytes or None,
    }
    given = {key: f"{size}B" for key, size in sizes.items() if size is not None}
    return {"bandwidth": "1TB/s", "peak": device.peak, "sequences": device.sequences, **given}


def verified_plans(
    seeds: Iterable[int], case: Callable[[int], Case], folder: Path
) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Yield the seed of each case that has a plan, the optimum, and the document of the plan found.

    Cases without a plan have to be refused, no lower bound may be above the optimum, and each plan has to be verified.
    """
    file, written = folder / "graph.json", folder / "plan.json"
    for seed in seeds:
        graph, device, k = case(seed)
        file.write_text(write_native(graph))
        best = brute_force_optimum(graph, device, k)
        model = mtpp.read(str(file), **keywords(device))
        if best == NEVER:
            with pytest.raises(Infeasible):
                mtpp.partition(model, k)
            continue
        document = json.loads(mtpp.partition(model, k).to_json())
        assert document["lower_bound"]["value"] <= best, seed
        yield seed, best, document
        written.write_text(json.dumps(document))
        assert mtpp.verify(str(written), model=str(file)).verdict == "ok", seed
