"""``tensorrt-llm``: numbers of layers in ``pp_partition``, or TensorRT-LLM's own rule.

``Mapping.pp_layers`` in ``tensorrt_llm/mapping.py``. The first stages get a layer more each (``torch.tensor_split``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mtpp.formats.layouts.counts import check_counts, first_longer, layout_of_counts
from mtpp.formats.layouts.placed_stages import device_notes, stage_counts, tensor_degree
from mtpp.formats.layouts.request import LayoutRequest, Setting, check_keys, json_text, named, refusal, value_in
from mtpp.formats.layouts.written import WrittenLayout
from mtpp.language_models.layer_stages import LayerStage
from mtpp.language_models.layout import Layout

KEY = "pp_partition"


def read(setting: Setting | str, request: LayoutRequest) -> Layout:
    """Layout that TensorRT-LLM makes of the list; of its own rule without one."""
    if isinstance(setting, str):
        setting = {
            KEY: json_text(f"[{value_in(setting, KEY).strip().strip('[]')}]", "numbers with commas between them")
        }
    given = named(setting, KEY)
    held = default_counts(request.layers, request.stage_count()) if given is None else _counts(given, request)
    return layout_of_counts("tensorrt-llm", held, request, check_keys(setting, [KEY]))


def _counts(given: Any, request: LayoutRequest) -> list[int]:
    if not isinstance(given, list | tuple) or any(type(count) is not int for count in given):
        raise refusal("ValidationError", f"{KEY} is {given!r}, not a list of whole numbers")
    stages = request.stage_count(len(given))
    if len(given) != stages:
        raise refusal("ValueError", f"len(self.pp_partition)={len(given)} does not match self.pp_size={stages}.")
    if sum(given) != request.layers:
        total = f"sum(self.pp_partition)={sum(given)} does not match num_layers={request.layers}."
        raise refusal("ValueError", total)
    if any(count < 0 for count in given):
        raise refusal("RuntimeError", "split_with_sizes expects split_sizes have only non-negative entries")
    return list(given)


def default_counts(layers: int, stages: int) -> list[int]:
    """Numbers of layers by TensorRT-LLM's rule.

    Examples
    --------
    >>> default_counts(61, 8)
    [8, 8, 8, 8, 8, 7, 7, 7]
    """
    return first_longer(layers, stages)


def write(stages: Sequence[LayerStage], request: LayoutRequest) -> WrittenLayout:
    """Entries of the LLM arguments for a plan."""
    counts = stage_counts(stages, "TensorRT-LLM")
    check_counts(counts, request)
    lines = [
        f"pipeline_parallel_size: {len(counts)}",
        f"tensor_parallel_size: {tensor_degree(stages, 'TensorRT-LLM')}",
        f"{KEY}: [{', '.join(map(str, counts))}]",
    ]
    notes = device_notes(stages)
    if request.mtp:
        notes.append("MTP layers are those of a drafter on the last stage, and are not counted")
    return WrittenLayout({KEY: counts}, "".join(f"{line}\n" for line in lines), notes)
