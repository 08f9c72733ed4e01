"""``megatron``: a pipeline layout of Megatron-Core, ``Et*3|(tt|)*29,m|L``.

Stages stand in the order of execution; stage i is chunk i div p of rank i mod p. The final norm is where the loss is;
with MTP layers, where the last decoder layer is. The stage of the MTP layers holds a copy of the embedding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mtpp.formats.layouts import megatron_flags
from mtpp.formats.layouts.counts import check_counts
from mtpp.formats.layouts.megatron_text import (
    Stage,
    check_lists,
    check_stages,
    stages_of_lists,
    stages_of_text,
    virtual_stages,
)
from mtpp.formats.layouts.placed_stages import check_ends, device_notes, rank_count, refused, tensor_degree
from mtpp.formats.layouts.request import LayoutRequest, Setting, check_keys, integer, named, natural, refusal, value_in
from mtpp.formats.layouts.written import WrittenLayout
from mtpp.language_models.layer_stages import LayerStage
from mtpp.language_models.layout import Layout, ranges_of_counts

FLAG = "--pipeline-model-parallel-layout"
_LAYOUT = (FLAG, "pipeline_model_parallel_layout")
_MTP = ("--mtp-num-layers", "mtp_num_layers")
_RANKS = ("--pipeline-model-parallel-size", "pipeline_model_parallel_size")
_VIRTUAL = ("virtual_pipeline_model_parallel_size", "--virtual-pipeline-model-parallel-size")
_EXCLUSIVE = (
    *megatron_flags.FIRST,
    *megatron_flags.LAST,
    *megatron_flags.EMBEDDING,
    *megatron_flags.LOSS,
)
_EXCLUSIVE_ARGUMENTS = (*megatron_flags.PER_CHUNK, megatron_flags.CHUNKS[0], "--hybrid-layer-pattern")
KEYS = (*_LAYOUT, *_MTP, *_RANKS, *_VIRTUAL, *_EXCLUSIVE, *_EXCLUSIVE_ARGUMENTS)
ORDER = "chunk-major: index = chunk*pp + rank"


def read(setting: Setting | str, request: LayoutRequest) -> Layout:
    """Layout that Megatron-Core makes of the text; of its flags where there is none."""
    setting = _of_text(setting) if isinstance(setting, str) else setting
    given = named(setting, *_LAYOUT)
    if given is None:
        return megatron_flags.read(setting, request)
    _check_exclusive(setting)
    findings = check_keys(setting, KEYS)
    mtp = integer(named(setting, *_MTP, default=request.mtp), _MTP[0])
    virtual = integer(named(setting, *_VIRTUAL), _VIRTUAL[0])
    return layout_of_stages("megatron", given, request, mtp=mtp, virtual=virtual, findings=findings)


def _of_text(text: str) -> Setting:
    """Read the setting of the layout alone, or of a script's flags."""
    found: dict[str, Any] = {FLAG: value_in(text, FLAG)}
    mtp = value_in(text, _MTP[0])
    return found | {_MTP[0]: int(mtp)} if mtp != text and mtp.isdecimal() else found


def _check_exclusive(setting: Setting) -> None:
    if clash := next((key for key in _EXCLUSIVE if setting.get(key)), None):
        other = f"pipeline_model_parallel_layout cannot be set with other pipeline layout arguments. ({clash})"
        raise refusal("ValueError", other)
    if clash := next((key for key in _EXCLUSIVE_ARGUMENTS if setting.get(key) is not None), None):
        raise refusal("AssertionError", f"{FLAG} and {clash} are mutually exclusive")


def layout_of_stages(
    engine: str,
    given: Any,
    request: LayoutRequest,
    *,
    mtp: int | None,
    virtual: int | None = None,
    findings: list[str],
    order: str = ORDER,
) -> Layout:
    """Layout of a text or a list of lists."""
    stages = stages_of_text(given) if isinstance(given, str) else given
    check_lists(stages)
    ranks = natural(request.stage_count(len(stages)), "the number of stages", 1)
    vpp = virtual_stages(stages, ranks)
    stages = stages_of_lists(stages)
    if virtual is not None and virtual != vpp:
        conflict = "virtual_pipeline_model_parallel_size conflicts with pipeline_model_parallel_layout, "
        raise refusal("AssertionError", f"{conflict}({virtual} and {vpp})")
    check_stages(stages, ranks, request.layers, mtp)
    counts = [stage.count("decoder") for stage in stages]
    place = {kind: [i for i, stage in enumerate(stages) if kind in stage] for kind in ("embedding", "loss", "mtp")}
    last_decoder = max((i for i, count in enumerate(counts) if count), default=place["loss"][0])
    return Layout(
        engine=engine,
        vpp=vpp,
        ranges=[pair if count else [] for pair, count in zip(ranges_of_counts(counts), counts, strict=True)],
        layers=counts,
        embedding_on=place["embedding"],
        mtp_on=place["mtp"],
        final_norm_on=[last_decoder] if place["mtp"] else place["loss"],
        embedding_copy_on=[i for i in place["mtp"] if i not in place["embedding"]],
        head_on=place["loss"],
        mtp_standalone=bool(place["mtp"]) and place["mtp"][0] % ranks != ranks - 1,
        stage_order=order,
        layers_per_rank=[sum(counts[rank::ranks]) for rank in range(ranks)],
        stages_of_ranks=[list(range(rank, len(stages), ranks)) for rank in range(ranks)],
        findings=[*findings, *_faults(stages)],
    )


def _faults(stages: list[Stage]) -> list[str]:
    findings = [f"stage {i} is empty" for i, stage in enumerate(stages[:-1]) if not stage and "embedding" not in stage]
    if not stages[-1]:
        findings.append(f"stage {len(stages) - 1} is an empty last stage behind the loss")
    if "embedding" not in stages[0]:
        findings.append("the embedding is not on stage 0, where Megatron builds it")
    return findings


def write(stages: Sequence[LayerStage], request: LayoutRequest) -> WrittenLayout:
    """Layout for a plan: embedding and head where they are, alone or not.

    Parameters
    ----------
    stages
        Virtual stages in the order of execution.
    request
        The model; ``stages`` is the number of ranks.
    """
    check_ends(stages, "Megatron")
    _check_kinds(request)
    ranks = rank_count(stages, request)
    check_counts([stage.count for stage in stages], LayoutRequest(layers=request.layers), least=0)
    text = "|".join(map(_letters, stages))
    mtp = sum(stage.mtp for stage in stages)
    setting: dict[str, Any] = {FLAG: text}
    lines = [f"--pipeline-model-parallel-size {ranks}"]
    degree = tensor_degree(stages, "Megatron")
    if degree > 1:
        lines.append(f"--tensor-model-parallel-size {degree}")
    lines.append(f'{FLAG} "{text}"')
    if mtp:
        setting[_MTP[0]] = mtp
        lines.append(f"{_MTP[0]} {mtp}")
    notes = [*device_notes(stages), *_notes(stages, request)]
    return WrittenLayout(setting, "".join(f"{line}\n" for line in lines), notes)


def _check_kinds(request: LayoutRequest) -> None:
    model = request.described
    kinds = {layer.kind for layer in model.layers} if model is not None else set()
    recurrent = sorted(kind for kind in kinds if kind is not None and kind.startswith("mamba"))
    if recurrent:
        problem = f"Megatron places {recurrent[0]} layers by --hybrid-layer-pattern, which excludes a layout"
        raise refused(problem)


def _letters(stage: LayerStage) -> str:
    layers = f"t*{stage.count}" if stage.count > 2 else "t" * stage.count
    return "E" * stage.embedding + layers + "m" * stage.mtp + "L" * stage.head


def _notes(stages: Sequence[LayerStage], request: LayoutRequest) -> list[str]:
    if len(stages) == 1:
        return []
    last, notes = stages[-1], []
    if last.mtp:
        notes.append("the stage of the MTP layers holds a copy of the embedding")
        if not last.count:
            notes.append("with MTP layers the final norm is in the stage of the last decoder layer")
    if request.tied:
        notes.append("the tied embedding is held on the first and on the last stage")
    return notes
