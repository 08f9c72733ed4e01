"""``exo``: no text; shares by the memory that nodes have available, in the order of the ring.

``src/exo/master/placement_utils.py``: floors of shares, the rest by largest fractions, then one layer from the largest
for each node that has none; the share of the whole storage has to fit into each node.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from mtpp.errors import InputError
from mtpp.formats.layouts.counts import check_counts
from mtpp.formats.layouts.placed_stages import device_notes, refuse_tensor_degrees, refused, stage_counts
from mtpp.formats.layouts.request import LayoutRequest, Setting, check_keys, named, natural, refusal
from mtpp.formats.layouts.written import WrittenLayout
from mtpp.language_models.layer_stages import LayerStage
from mtpp.language_models.layout import Layout, ranges_of_counts

KEY = "ram_available_gb"
_STORAGE_GB = ("storage_gb", "storage_size_gb", "model_gb", "model_size_gb")
_STORAGE = ("storage_bytes", "storage_size_bytes", "model_bytes")
_KEYS = (KEY, *_STORAGE_GB, *_STORAGE)
_GIB, _MOST_GIB = 2**30, 2**30
_MIB, _MIB_OF_GIB = 2**20, 2**10
_LEAST_MIB = 1024
"""Memory of a node for each layer in a setting that is written."""
VARIABLE = "OVERRIDE_MEMORY_MB"
"""Memory that a node says it has available, in ``utils/info_gatherer/info_gatherer.py``."""
_TOLD = re.compile(rf"^\s*{VARIABLE}=(\d{{1,15}})\b", re.ASCII | re.MULTILINE)


def read(setting: Setting | str, request: LayoutRequest) -> Layout:
    """Layout that exo makes of the memory of its nodes."""
    setting = _of_text(setting) if isinstance(setting, str) else setting
    memory = _memory(named(setting, KEY), request)
    counts = shares(request.layers, [_over(part, sum(memory)) for part in memory])
    _check_storage(counts, memory, _storage(setting, request), request)
    last = len(counts) - 1
    return Layout(
        engine="exo",
        ranges=ranges_of_counts(counts),
        layers=counts,
        embedding_on=[0],
        final_norm_on=[last],
        head_on=[last],
        findings=check_keys(setting, _KEYS),
    )


def _of_text(text: str) -> Setting:
    """Read the setting of the lines that start the nodes, each with the memory that it is told to have."""
    found = _TOLD.findall(text)
    if not found:
        remedy = f"give {{'{KEY}': [64, 32]}}, or lines of {VARIABLE}"
        raise InputError("exo has no text for a layout", parameter="layout", remedy=remedy)
    return {KEY: [int(megabytes) / _MIB_OF_GIB for megabytes in found]}


def _over(part: int, whole: int) -> float:
    return part / whole


def _is_size(gb: Any) -> bool:
    return isinstance(gb, int | float) and 0 <= gb < _MOST_GIB


def _memory(given: Any, request: LayoutRequest) -> list[int]:
    if not isinstance(given, list | tuple) or not all(_is_size(gb) for gb in given):
        raise InputError(f"{KEY} is {given!r}, not a list of gibibytes by node", parameter="layout")
    if not given:
        raise refusal("ValueError", "Cannot create shard assignments for empty node cycle")
    if len(given) != request.stage_count(len(given)):
        raise InputError(f"{KEY} has {len(given)} nodes, where ‹stages› is {request.stages}", parameter="layout")
    memory = [round(gb * _GIB) for gb in given]
    if not sum(memory):
        raise refusal("ValueError", "Cannot create shard assignments: total available memory is 0")
    return memory


def shares(layers: int, fractions: Sequence[float]) -> list[int]:
    """Numbers of layers by fractions of the memory.

    Examples
    --------
    >>> shares(32, [64 / 112, 32 / 112, 16 / 112])
    [18, 9, 5]
    """
    nodes = len(fractions)
    if layers < nodes:
        needed = f"Cannot distribute {layers} layers across {nodes} nodes (need at least 1 layer per node)"
        raise refusal("ValueError", needed)
    exact = [fraction * layers for fraction in fractions]
    counts = [int(share) for share in exact]
    largest_rest = sorted(range(nodes), key=lambda node: counts[node] - exact[node])
    for node in largest_rest[: layers - sum(counts)]:
        counts[node] += 1
    for node in range(nodes):
        if not counts[node]:
            counts[counts.index(max(counts))] -= 1
            counts[node] = 1
    return counts


def _storage(setting: Setting, request: LayoutRequest) -> int | None:
    if (storage := named(setting, *_STORAGE)) is not None:
        return natural(storage, "storage_bytes", 0, _GIB * _MOST_GIB)
    if (gb := named(setting, *_STORAGE_GB)) is not None:
        if not _is_size(gb):
            raise InputError(f"storage_gb is {gb!r}, not a number of gibibytes", parameter="layout")
        return round(float(gb) * _GIB)
    return None if request.modules is None else request.modules().stored_bytes


def _check_storage(counts: list[int], memory: list[int], storage: int | None, request: LayoutRequest) -> None:
    for node, (count, available) in enumerate(zip(counts, memory, strict=True)):
        if storage is not None and (needed := storage * count // request.layers) > available:
            raise refusal(
                "ValueError",
                f"Node {node} has insufficient memory: requires {needed / _GIB:.2f} GB for {count} layers, "
                f"but only has {available / _GIB:.2f} GB available",
            )


def write(stages: Sequence[LayerStage], request: LayoutRequest, known: Setting | None = None) -> WrittenLayout:
    """Nothing to set where exo's rule gives just this plan; else the memory that each node is told to have.

    Parameters
    ----------
    stages
        One of each node, in the ring's order.
    request
        The model.
    known
        Memory of the nodes, under the key that :func:`read` takes.
    """
    refuse_tensor_degrees(stages, "exo", "gives each layer of a ring to one node")
    counts = stage_counts(stages, "exo")
    check_counts(counts, LayoutRequest(layers=request.layers))
    notes = device_notes(stages, started=True)
    if known is not None and KEY in known and read(known, request).layers == counts:
        return WrittenLayout(dict(known), "# exo places the layers just so by the memory of its nodes\n", notes)
    storage = _storage({}, request) or 0 if request.described is None else request.described.bytes
    each = max(-(-storage // (sum(counts) * _MIB)), _LEAST_MIB)
    setting = {KEY: [count * each / _MIB_OF_GIB for count in counts]}
    asked = LayoutRequest(layers=request.layers, stages=len(counts))
    if read(setting | {_STORAGE[0]: storage}, asked).layers != counts:
        raise refused(f"no memory of nodes makes exo place {counts} layers")
    text = "".join(
        f"{VARIABLE}={count * each} exo  # {f'node {i}' if not stage.name else stage.name}\n"
        for i, (count, stage) in enumerate(zip(counts, stages, strict=True))
    )
    notes.append("a line for each node: exo places layers by the memory that nodes say they have available")
    notes.append("nodes have to join the ring in this order; macmon on Macs does not look at the variable")
    return WrittenLayout(setting, text, notes)
