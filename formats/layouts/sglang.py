"""``sglang``: numbers of layers in ``SGLANG_PP_LAYER_PARTITION``, or SGLang's own rule.

``get_pp_indices`` in ``sglang/srt/distributed/utils.py``, SGLang 0.5.23. The last stages get a layer more each. On one
stage the variable is not looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mtpp.formats.layouts.counts import counts_of_text, forms_of_text, layout_of_counts, setting_of_text, written_counts
from mtpp.formats.layouts.placed_stages import device_notes, environment, served, stage_counts, tensor_degree
from mtpp.formats.layouts.request import LayoutRequest, Setting, check_keys, named
from mtpp.formats.layouts.written import WrittenLayout
from mtpp.language_models.layer_stages import LayerStage
from mtpp.language_models.layout import Layout

VARIABLE = "SGLANG_PP_LAYER_PARTITION"
_NOT_PIPELINED = frozenset((
    "cohere", "cohere2", "ernie4_5", "falcon_h1", "falcon_mamba", "gemma", "gemma2", "gemma3", "gemma3_text", "gemma3n",
    "gemma3n_text", "gpt2", "gpt_bigcode", "gptj", "granite", "granitemoe", "granitemoeshared", "lfm2", "mamba",
    "mamba2", "olmo", "olmo2", "olmoe", "phi", "qwen3_next", "stablelm", "starcoder2",
))  # fmt: skip
"""Architectures whose ``forward`` takes nothing from another stage, in SGLang's ``models``."""
_REFUSED = "Pipeline Parallel is not compatible with this model."
_TIED = "the tied embedding is copied into a head of its own on the last stage"


def read(setting: Setting | str, request: LayoutRequest) -> Layout:
    """Layout that SGLang makes of the variable; of its own rule where that is unset."""
    setting = setting_of_text(setting, VARIABLE) if isinstance(setting, str) else setting
    text = named(setting, VARIABLE)
    findings = check_keys(setting, [VARIABLE])
    if text is None or request.stages == 1:
        counts = default_counts(request.layers, request.stage_count())
        if text is not None:
            findings.append(f"{VARIABLE} is not looked at with one stage")
    else:
        counts = counts_of_text(str(text), request)
        findings += forms_of_text(str(text))
    return replace(layout_of_counts("sglang", counts, request, findings), notes=_notes(len(counts), request))


def default_counts(layers: int, stages: int) -> list[int]:
    """Numbers of layers by SGLang's rule.

    Examples
    --------
    >>> default_counts(61, 8)
    [7, 7, 7, 8, 8, 8, 8, 8]
    """
    each, rest = divmod(layers, stages)
    return [each] * (stages - rest) + [each + 1] * rest


def write(stages: Sequence[LayerStage], request: LayoutRequest) -> WrittenLayout:
    """Command with the variable and the sizes for a plan; one stage needs no variable."""
    text = written_counts(stage_counts(stages, "SGLang"), request)
    setting = {VARIABLE: text} if len(stages) > 1 else {}
    sizes = f"--pipeline-parallel-size {len(stages)} --tensor-parallel-size {tensor_degree(stages, 'SGLang')}"
    server = f"python -m sglang.launch_server --model-path {served(request)}"
    notes = device_notes(stages, started=True) + _notes(len(stages), request)
    if request.mtp:
        notes.append("MTP layers are those of a drafter on the last stage, and are not counted")
    return WrittenLayout(dict(setting), f"{environment(stages, **setting)}{server} {sizes}\n", notes)


def _notes(stages: int, request: LayoutRequest) -> list[str]:
    """Facts that hold with several stages, whoever made the layout."""
    if stages == 1:
        return []
    notes = [_TIED] if request.tied else []
    if request.model_type in _NOT_PIPELINED:
        notes.append(f"SGLang 0.5.23 refuses {request.model_type} at start: {_REFUSED!r}")
    return notes
