"""``vllm``: numbers of layers in ``VLLM_PP_LAYER_PARTITION``, or vLLM's own rule.

``get_pp_indices`` in ``vllm/distributed/utils.py`` and ``make_layers`` in ``vllm/model_executor/models/utils.py``,
vLLM 0.33. The rule gives a remainder of r layers to stages −2, −3, … −(r+1): the last stage gets none of it, the first
only if r = p − 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mtpp.formats.layouts.counts import counts_of_text, forms_of_text, layout_of_counts, setting_of_text, written_counts
from mtpp.formats.layouts.placed_stages import (
    device_notes,
    environment,
    has_hybrid_caches,
    refused,
    served,
    stage_counts,
    tensor_degree,
)
from mtpp.formats.layouts.request import LayoutRequest, Setting, check_keys, named, refusal
from mtpp.formats.layouts.written import WrittenLayout
from mtpp.language_models.layer_stages import LayerStage
from mtpp.language_models.layout import Layout

VARIABLE = "VLLM_PP_LAYER_PARTITION"
_TIED = "the tied embedding is held on the first and on the last stage"
NOT_PIPELINED = ("gemma3n", "gemma3n_text", "mamba2", "whisper")
"""Architectures that vLLM 0.33 runs on one stage only."""


def read(setting: Setting | str, request: LayoutRequest) -> Layout:
    """Layout that vLLM makes of the variable; of its own rule where that is unset."""
    setting = setting_of_text(setting, VARIABLE) if isinstance(setting, str) else setting
    text = named(setting, VARIABLE)
    findings = check_keys(setting, [VARIABLE])
    if text is None:
        counts = default_counts(request.layers, request.stage_count())
    else:
        counts = counts_of_text(str(text), request)
        findings += forms_of_text(str(text))
    if len(counts) > 1 and request.model_type in NOT_PIPELINED:
        raise refusal("NotImplementedError", f"pipeline parallelism is not supported for {request.model_type}")
    layout = layout_of_counts("vllm", counts, request, findings)
    if not request.tied or len(counts) == 1:
        return layout
    return replace(layout, embedding_on=[0, len(counts) - 1], notes=[_TIED])


def default_counts(layers: int, stages: int) -> list[int]:
    """Numbers of layers by vLLM's rule.

    Examples
    --------
    >>> default_counts(61, 8)
    [7, 7, 8, 8, 8, 8, 8, 7]
    """
    each, rest = divmod(layers, stages)
    counts = [each] * stages
    for i in range(2, rest + 2):
        counts[-i] += 1
    return counts


def write(stages: Sequence[LayerStage], request: LayoutRequest) -> WrittenLayout:
    """Command with the variable and the sizes for a plan."""
    if len(stages) > 1 and request.model_type in NOT_PIPELINED:
        raise refused(f"vLLM does not pipeline {request.model_type}")
    text = written_counts(stage_counts(stages, "vLLM"), request)
    sizes = f"--pipeline-parallel-size {len(stages)} --tensor-parallel-size {tensor_degree(stages, 'vLLM')}"
    command = f"{environment(stages, **{VARIABLE: text})}vllm serve {served(request)} {sizes}\n"
    return WrittenLayout({VARIABLE: text}, command, [*device_notes(stages, started=True), *_notes(stages, request)])


def _notes(stages: Sequence[LayerStage], request: LayoutRequest) -> list[str]:
    notes = [_TIED] if request.tied and len(stages) > 1 else []
    if request.mtp:
        notes.append("MTP layers are those of a drafter (--speculative-config) on the last stage, and are not counted")
    if has_hybrid_caches(request):
        notes.append("hybrid caches: groups follow the whole model, and a stage pads to its largest: room is less")
    return notes
