"""``sglang``: numbers of layers in ``SGLANG_PP_LAYER_PARTITION``, or SGLang's own rule.

``get_pp_indices`` in ``sglang/srt/distributed/utils.py``, SGLang 0.5.23. The last stages get a layer more each. On one
stage the variable is not looked at.
"""

from __future__ import annotations

from dataclasses import replace

from mtpp.formats.layouts.counts import counts_of_text, forms_of_text, layout_of_counts, written_counts
from mtpp.formats.layouts.request import LayoutRequest, Setting, check_keys, named, value_in
from mtpp.formats.layouts.written import WrittenLayout
from mtpp.language_models.layout import Layout

VARIABLE = "SGLANG_PP_LAYER_PARTITION"
_TIED = "the tied embedding is copied into a head of its own on the last stage"


def read(setting: Setting | str, request: LayoutRequest) -> Layout:
    """Layout that SGLang makes of the variable; of its own rule where that is unset."""
    setting = {VARIABLE: value_in(setting, VARIABLE)} if isinstance(setting, str) else setting
    text = named(setting, VARIABLE)
    findings = check_keys(setting, [VARIABLE])
    if text is None or request.stages == 1:
        counts = default_counts(request.layers, request.stage_count())
        if text is not None:
            findings.append(f"{VARIABLE} is not looked at with one stage")
    else:
        counts = counts_of_text(str(text), request)
        findings += forms_of_text(str(text))
    layout = layout_of_counts("sglang", counts, request, findings)
    return replace(layout, notes=[_TIED]) if request.tied and len(counts) > 1 else layout


def default_counts(layers: int, stages: int) -> list[int]:
    """Numbers of layers by SGLang's rule.

    Examples
    --------
    >>> default_counts(61, 8)
    [7, 7, 7, 8, 8, 8, 8, 8]
    """
    each, rest = divmod(layers, stages)
    return [each] * (stages - rest) + [each + 1] * rest


def write(counts: list[int], request: LayoutRequest) -> WrittenLayout:
    """Variable and flag for stages with so many layers; one stage needs no variable."""
    text = written_counts(counts, request)
    size = f"--pipeline-parallel-size {len(counts)}\n"
    if len(counts) == 1:
        return WrittenLayout({}, size)
    return WrittenLayout({VARIABLE: text}, f"{VARIABLE}={text}\n{size}", [_TIED] if request.tied else [])
