"""``torchtitan``: a list of module names for each stage, or torchtitan's own rule.

``distributed/pipeline_parallel.py`` and ``config/configs.py``. Nothing checks the lists: a layer in none is dropped,
one in two runs twice, and a name that is no module is ignored. The findings say so.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from mtpp.errors import InputError
from mtpp.formats.layouts.counts import check_counts, first_longer
from mtpp.formats.layouts.placed_stages import check_ends, device_notes, rank_count, refused, tensor_degree
from mtpp.formats.layouts.request import (
    LayoutRequest,
    Setting,
    check_keys,
    json_in,
    listed,
    named,
    natural,
    refusal,
    value_in,
)
from mtpp.formats.layouts.written import WrittenLayout
from mtpp.language_models.layer_stages import LayerStage
from mtpp.language_models.layout import Layout, Range

KEY = "module_fqns_per_model_part"
_FIRST = "pipeline_parallel_first_stage_less_layers"
_LAST = "pipeline_parallel_last_stage_less_layers"
_SIZE = "pipeline_parallel_layers_per_stage"
_SCHEDULE = "pipeline_parallel_schedule"
KEYS = (KEY, _FIRST, _LAST, _SIZE, _SCHEDULE)

_SINGLE = ("1f1b", "gpipe")
_V = ("zbvzerobubble", "dualpipev")
_LOOPED = ("interleaved1f1b", "loopedbfs", "interleavedzerobubble", "pipelineschedulemulti")
"""Schedules by the names of torch's ``get_schedule_class``, which do not mind case."""

EMBEDDING, NORM, HEADS, LAYER = "tok_embeddings", "norm", ("lm_head", "output"), "layers."
_VISION = "vision_encoder"


def read(setting: Setting | str, request: LayoutRequest) -> Layout:
    """Layout that torchtitan makes of the lists; of its own rule without them."""
    if isinstance(setting, str):
        setting = _of_text(setting)
    findings = check_keys(setting, KEYS)
    schedule = _schedule(named(setting, _SCHEDULE, default="1F1B"))
    lists, less = named(setting, KEY), (named(setting, _FIRST, default=1), named(setting, _LAST, default=1))
    natural(less[0], _FIRST)
    natural(less[1], _LAST)
    size = named(setting, _SIZE)
    stages = None
    if lists is None or size is not None:
        ranks = natural(request.stage_count(), "the number of stages", 1)
        stages = _stage_number(request.layers, ranks, less, size, schedule)
    if lists is None:
        assert stages is not None
        lists = default_names(request.layers, stages, *less)
    return _layout(_checked(lists), request, schedule, findings)


def _of_text(text: str) -> Setting:
    """Read the setting of the lists, and of the schedule beside them."""
    lists = {KEY: json_in(text, KEY, "a list of lists of names")}
    schedule = value_in(text, _SCHEDULE)
    return lists | ({} if schedule == text else {_SCHEDULE: schedule})


def _schedule(name: Any) -> str:
    found = str(name).lower()
    if found not in (*_SINGLE, *_V, *_LOOPED):
        raise refusal("ValueError", f"Unknown schedule name '{name}'")
    return found


def _stage_number(layers: int, ranks: int, less: tuple[int, int], size: int | None, schedule: str) -> int:
    """Count the stages of all ranks."""
    single = schedule in _SINGLE
    if size is None:
        return ranks if single else 2 * ranks
    natural(size, _SIZE, 1)
    stages = -(-(layers + sum(less)) // size)
    if stages % ranks:
        parts = f"Number of virtual stages ({stages}) must be divisible by pipeline parallel size ({ranks})."
        raise refusal("ValueError", parts)
    each = stages // ranks
    if single and each != 1:
        one = f"Single stage schedule requires exactly 1 stage per rank, but got {each} stages per rank."
        raise refusal("ValueError", one)
    if not single and each < 2:
        two = f"Multi-stage schedule requires at least 2 stages per rank, but got {each} stages per rank."
        raise refusal("ValueError", two)
    return stages


def default_names(layers: int, stages: int, first_less: int = 1, last_less: int = 1) -> list[list[str]]:
    """Names of modules by torchtitan's rule.

    Examples
    --------
    >>> default_names(2, 2)
    [['tok_embeddings', 'layers.0'], ['layers.1', 'norm', 'lm_head']]
    """
    return names_of_counts(default_counts(layers, stages, first_less, last_less))


def default_counts(layers: int, stages: int, first_less: int = 1, last_less: int = 1) -> list[int]:
    """Numbers of layers by torchtitan's rule, which shares them as if the ends had layers more.

    Examples
    --------
    >>> default_counts(32, 4)
    [8, 9, 8, 7]
    """
    if stages == 1:
        return [layers]
    slots = layers + first_less + last_less
    if stages > slots:
        raise refusal("ValueError", f"Number of stages ({stages}) cannot be greater than effective layers ({slots})")
    counts = first_longer(slots, stages)
    for name, less in (("input_weight", first_less), ("output_weight", last_less)):
        if less > counts[-1]:
            raise refusal("ValueError", f"{name} ({less}) exceeds minimum layers per stage ({counts[-1]}).")
    counts[0] -= first_less
    counts[-1] -= last_less
    return counts


def names_of_counts(counts: Sequence[int]) -> list[list[str]]:
    """Names of modules of stages with so many layers."""
    numbers = iter(range(sum(counts)))
    lists = [[f"{LAYER}{next(numbers)}" for _ in range(count)] for count in counts]
    lists[0].insert(0, EMBEDDING)
    lists[-1] += [NORM, HEADS[0]]
    return lists


def _checked(lists: Any) -> list[list[str]]:
    rows: list[Any] = list(lists) if isinstance(lists, list | tuple) else []
    if not rows or not all(isinstance(row, list | tuple) and all(isinstance(n, str) for n in row) for row in rows):
        raise InputError(f"{KEY} is not a list of lists of names", parameter="layout")
    return [list(row) for row in rows]


def _layout(lists: list[list[str]], request: LayoutRequest, schedule: str, findings: list[str]) -> Layout:
    ranks = natural(request.stage_count(len(lists)), "the number of stages", 1)
    stage_layers = [_layers_of(row, request.layers) for row in lists]
    findings = findings + _faults(lists, stage_layers, request)
    if request.vision and not _holding(lists, _VISION):
        findings.append(f"{_VISION} in no stage")
    by_rank = _stages_of_ranks(len(lists), ranks, schedule)
    single = schedule in _SINGLE
    if single and len(lists) > ranks:
        findings.append(f"{len(lists)} lists for {ranks} ranks: schedule {schedule} runs the first {ranks} alone")
    if not single and len(lists) == ranks:
        findings.append(f"schedule {schedule} expects two or more stages a rank, and there is one")
    return Layout(
        engine="torchtitan",
        ranges=[_range(layers) for layers in stage_layers],
        layers=[len(layers) for layers in stage_layers],
        stage_layers=stage_layers,
        module_fqns_per_model_part=lists,
        embedding_on=_holding(lists, EMBEDDING),
        final_norm_on=_holding(lists, NORM),
        head_on=_holding(lists, *HEADS),
        vpp=len(lists) // ranks,
        layers_per_rank=[sum(len(stage_layers[i]) for i in stages) for stages in by_rank],
        stages_of_ranks=by_rank,
        stages_not_run=list(range(ranks, len(lists))) or None if single else None,
        findings=findings,
    )


def _layers_of(row: list[str], layers: int) -> list[int]:
    """Layers that a list keeps, in the order of the model."""
    suffixes = {name.removeprefix(LAYER) for name in row if name.startswith(LAYER)}
    return sorted({int(s) for s in suffixes if s.isascii() and s.isdigit() and str(int(s)) == s and int(s) < layers})


def _range(layers: list[int]) -> Range:
    return [layers[0], layers[-1] + 1] if layers else []


def _holding(lists: list[list[str]], *names: str) -> list[int]:
    return [stage for stage, row in enumerate(lists) if any(name in row for name in names)]


def _stages_of_ranks(stages: int, ranks: int, schedule: str) -> list[list[int]]:
    if stages % ranks:
        raise refusal("AssertionError", f"num_stages {stages} must be evenly divisible by pp_degree {ranks}")
    if schedule not in _V:
        return [list(range(rank, stages, ranks)) for rank in range(ranks)]
    if stages != 2 * ranks:
        raise refusal("AssertionError", f"v schedules assume 2 stages per rank, got {stages // ranks}")
    return [[rank, stages - 1 - rank] for rank in range(ranks)]


def _faults(lists: list[list[str]], stage_layers: list[list[int]], request: LayoutRequest) -> list[str]:
    """Name layers and parts in no stage or several, names of nothing, and stages out of order."""
    found = [*_layer_faults(stage_layers, request.layers), *_part_faults(lists), *_name_faults(lists, request.layers)]
    found += [
        f"stage {stage} holds layers {listed(layers)}, which are not contiguous"
        for stage, layers in enumerate(stage_layers)
        if layers and layers[-1] - layers[0] >= len(layers)
    ]
    firsts = [layers[0] for layers in stage_layers if layers]
    if firsts != sorted(firsts):
        found.append("stages are not in the order of their layers")
    return found


def _layer_faults(stage_layers: list[list[int]], layers: int) -> list[str]:
    holders: list[list[int]] = [[] for _ in range(layers)]
    for stage, held in enumerate(stage_layers):
        for layer in held:
            holders[layer].append(stage)
    return [
        f"{LAYER}{layer} in stages {listed(on)}" if on else f"{LAYER}{layer} in no stage"
        for layer, on in enumerate(holders)
        if len(on) != 1
    ]


def _part_faults(lists: list[list[str]]) -> list[str]:
    found = []
    for names, last in (((EMBEDDING,), 0), ((NORM,), len(lists) - 1), (HEADS, len(lists) - 1)):
        on, name = _holding(lists, *names), names[0]
        if len(on) != 1:
            found.append(f"{name} in stages {listed(on)}" if on else f"{name} in no stage")
        elif on[0] != last:
            found.append(f"{name} in stage {on[0]}, not in the {'first' if last == 0 else 'last'} one")
    return found


def _name_faults(lists: list[list[str]], layers: int) -> list[str]:
    known = {EMBEDDING, NORM, *HEADS, _VISION, *(f"{LAYER}{i}" for i in range(layers))}
    unknown = [(stage, name) for stage, row in enumerate(lists) for name in row if name not in known]
    twice = [(stage, name) for stage, row in enumerate(lists) for name, n in Counter(row).items() if n > 1]
    return [
        *(f"{name!r} in stage {stage} names no module and is ignored" for stage, name in unknown),
        *(f"{name!r} stands twice in stage {stage}" for stage, name in twice),
    ]


def write(stages: Sequence[LayerStage], request: LayoutRequest) -> WrittenLayout:
    """Write lists of names for a plan: embedding and head where they are, alone or not."""
    check_ends(stages, "torchtitan")
    check_counts([stage.count for stage in stages], LayoutRequest(layers=request.layers), least=0)
    ranks, degree = rank_count(stages, request), tensor_degree(stages, "torchtitan")
    lists = [_names(stage, request) for stage in stages]
    if [] in lists:
        raise refused(f"stage {lists.index([])} would hold nothing")
    setting: dict[str, Any] = {KEY: lists}
    lines = [f"pipeline_parallel_degree = {ranks}", f"{KEY} = {json.dumps(lists)}"]
    if degree > 1:
        lines.insert(1, f"tensor_parallel_degree = {degree}")
    if len(stages) != ranks:
        setting[_SCHEDULE] = "Interleaved1F1B"
        lines.append(f'{_SCHEDULE} = "Interleaved1F1B"')
    notes = device_notes(stages)
    if request.mtp:
        notes.append("torchtitan has no MTP layers: those of the plan are left out")
    return WrittenLayout(setting, "".join(f"{line}\n" for line in lines), notes)


def _names(stage: LayerStage, request: LayoutRequest) -> list[str]:
    towers = [_VISION] if request.vision else []
    return [
        *([EMBEDDING, *towers] if stage.embedding else []),
        *(f"{LAYER}{layer}" for layer in range(*stage.layers)),
        *([NORM, HEADS[0]] if stage.head else []),
    ]
