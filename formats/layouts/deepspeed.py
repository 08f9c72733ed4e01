"""``deepspeed``: the partition method of ``PipelineModule``, which cuts a list of items.

``runtime/pipe/module.py`` and ``runtime/utils.py``. Items are what the list holds: the embedding, blocks, norm, head,
functions. ``parameters`` and ``type:`` look for the least difference between the heaviest and the lightest stage by a
dynamic program that extends the best prefix of each length only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

from mtpp.errors import InputError
from mtpp.formats.layouts.placed_stages import check_ends, device_notes, refused, tensor_degree
from mtpp.formats.layouts.request import LayoutRequest, Setting, check_keys, named, natural, refusal, uncommented
from mtpp.formats.layouts.written import WrittenLayout
from mtpp.language_models.layer_stages import LayerStage
from mtpp.language_models.layout import Layout, Range
from mtpp.language_models.modules import Modules

METHOD = "partition_method"
_ITEMS = ("pipeline_layers", "num_layers")
_WEIGHTS = "weights"
_CLASSES = ("class_names", "layer_types")
_MOST_ITEMS = 2_000
"""Of a list with weights, which take time by their square."""
_MOST_CLASSES = 6
"""Of items, for patterns of some of them."""
_TOLD = 2
_TEXT = re.compile(r"partition_method\s*=\s*([\"'])(.*?)\1")
_STAGES = re.compile(r"(?:num_stages|num_pp)\s*=\s*(\d{1,6})", re.ASCII)
_KEYS = (METHOD, *_ITEMS, _WEIGHTS, *_CLASSES, "num_stages")


def read(setting: Setting | str, request: LayoutRequest) -> Layout:
    """Layout that DeepSpeed makes of a method; ``parameters`` is its default."""
    setting = _of_text(setting) if isinstance(setting, str) else setting
    method = str(named(setting, METHOD, default="parameters")).lower()
    stages = natural(request.stage_count(named(setting, "num_stages")), "the number of stages", 1)
    request = _without_unknown(request) if method == "uniform" else request
    classes = _classes(setting, request)
    weights = _weights(setting, request, classes)
    bounds = _bounds(method, _number(setting, request, weights, classes), stages, weights, classes)
    return _layout(bounds, weights, request, check_keys(setting, _KEYS))


def _without_unknown(request: LayoutRequest) -> LayoutRequest:
    """Return a model without its tree of modules where that is not known, for a method that only counts items."""
    try:
        if request.modules is not None:
            request.modules()
    except InputError:
        return replace(request, modules=None)
    return request


def _of_text(text: str) -> Setting:
    """Read the setting of a method, or of a line of Python with one."""
    method, stages = _TEXT.search(uncommented(text)), _STAGES.search(uncommented(text))
    if method is None:
        return {METHOD: text}
    return {METHOD: method[2]} | ({} if stages is None else {"num_stages": int(stages[1])})


def _classes(setting: Setting, request: LayoutRequest) -> list[str] | None:
    given = named(setting, *_CLASSES)
    if given is None:
        return _item_classes(request.modules()) if request.modules else None
    return [str(name) for name in _list(given, _CLASSES[0], _MOST_ITEMS)]


def _list(given: Any, name: str, most: int) -> list[Any]:
    if not isinstance(given, list | tuple) or not 0 < len(given) <= most:
        raise InputError(f"{name} is no list of 1 to {most} entries", parameter="layout")
    return list(given)


def _weights(setting: Setting, request: LayoutRequest, classes: list[str] | None) -> list[int] | None:
    given = named(setting, _WEIGHTS)
    if given is not None:
        return [natural(weight, "a weight", 0, 2**62) for weight in _list(given, _WEIGHTS, _MOST_ITEMS)]
    number = named(setting, *_ITEMS)
    if request.modules is None:
        return None
    weights = item_parameters(request.modules())
    return weights if number in (None, len(weights)) else None


def _number(setting: Setting, request: LayoutRequest, weights: Sequence[int] | None, classes: list[str] | None) -> int:
    number = named(setting, *_ITEMS)
    if number is None:
        number = len(weights) if weights is not None else request.layers + 3
    number = natural(number, _ITEMS[0], 1)
    if weights is not None and len(weights) != number:
        raise InputError(f"{len(weights)} weights for {number} items", parameter="layout")
    return number


def item_parameters(modules: Modules) -> list[int]:
    """Parameters of the embedding, each decoder layer, the final norm and the head; a tied head has none."""
    return [modules.parameters_of(name) for name in _item_names(modules)]


def _item_classes(modules: Modules) -> list[str]:
    return [modules.by_name[name].class_name for name in _item_names(modules)]


def _item_names(modules: Modules) -> list[str]:
    layers = [f"{modules.layer_prefix}.{child.name}" for child in modules.by_name[modules.layer_prefix].children]
    return [name for name in (modules.embedding, *layers, modules.final_norm, modules.head) if name is not None]


def _bounds(method: str, number: int, stages: int, weights: list[int] | None, classes: list[str] | None) -> list[int]:
    """First item of each stage, and the end."""
    if method == "uniform":
        return uniform_bounds(number, stages)
    if method == "parameters":
        if weights is None:
            raise InputError("weights of items are needed", parameter="layout", remedy="give 'weights' or ‹model›")
        return balanced_bounds(weights, stages)
    if method.startswith("type:"):
        return balanced_bounds(_matches(method.split(":")[1], weights, classes), stages)
    raise refusal("NotImplementedError", f"Partitioning method {method} not implemented.")


def _matches(pattern: str, weights: list[int] | None, classes: list[str] | None) -> list[int]:
    """1 for each item whose class has a match, otherwise 0."""
    try:
        found = re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        raise refusal(
            "re.error", f"{error} in {pattern!r}, which is the method in small letters up to its second colon"
        ) from None
    if classes is not None and (weights is None or set(weights) - {0, 1}):
        weights = [int(found.search(name) is not None) for name in classes]
    if weights is None:
        raise InputError("classes of items are needed", parameter="layout", remedy="give 'class_names' or ‹model›")
    if not any(weights):
        raise refusal("RuntimeError", f"Partitioning '{pattern}' found no valid layers to partition.")
    return weights


def uniform_bounds(items: int, stages: int) -> list[int]:
    """Bounds of stages with equally many items, the first ones with one more.

    Examples
    --------
    >>> uniform_bounds(35, 4)
    [0, 9, 18, 27, 35]
    >>> uniform_bounds(2, 3)
    [0, 1, 2, 2]
    """
    if items <= stages:
        return [min(stage, items) for stage in range(stages + 1)]
    each, rest = divmod(items, stages)
    return [stage * each + min(stage, rest) for stage in range(stages + 1)]


def balanced_bounds(weights: Sequence[int], stages: int) -> list[int]:
    """Bounds by DeepSpeed's dynamic program on the spread of sums.

    Of each prefix and number of stages only the cut of least spread is kept, the later of equal ones, so neither the
    spread nor the largest sum need be least. O(n²·stages) time.

    Examples
    --------
    >>> balanced_bounds([5, 1, 1, 1, 1, 1, 1, 5], 3)
    [0, 2, 7, 8]
    """
    items = len(weights)
    if items <= stages:
        return uniform_bounds(items, stages)
    sums = [0.0]
    for weight in weights:
        sums.append(sums[-1] + weight)
    most = [[math.inf] * (items + 1) for _ in range(stages + 1)]
    least = [[math.inf] * (items + 1) for _ in range(stages + 1)]
    cut = [[0] * (items + 1) for _ in range(stages + 1)]
    most[0][0] = 0.0
    for stage in range(1, stages + 1):
        for end in range(stage, items + 1):
            best = math.inf
            for start in range(end):
                added = sums[end] - sums[start]
                high, low = max(most[stage - 1][start], added), min(least[stage - 1][start], added)
                if best >= high - low:
                    best = high - low
                    most[stage][end], least[stage][end], cut[stage][end] = high, low, start
    bounds = [items]
    for stage in range(stages, 0, -1):
        bounds.append(cut[stage][bounds[-1]])
    return bounds[::-1]


def _layout(bounds: list[int], weights: Sequence[int] | None, request: LayoutRequest, findings: list[str]) -> Layout:
    pairs = list(pairwise(bounds))
    placed = bounds[-1] - request.layers in (2, 3)
    tail = bounds[-1] - 1
    return Layout(
        engine="deepspeed",
        bounds=bounds,
        items=[end - start for start, end in pairs],
        sums=None if weights is None else [sum(weights[start:end]) for start, end in pairs],
        ranges=[_layers_of(start, end, request.layers) for start, end in pairs] if placed else None,
        embedding_on=[_stage_of(0, pairs)] if placed else None,
        final_norm_on=[_stage_of(1 + request.layers, pairs)] if bounds[-1] - request.layers == 3 else None,
        head_on=[_stage_of(tail, pairs)] if placed else None,
        findings=[*findings, *(f"stage {i} holds no item" for i, (start, end) in enumerate(pairs) if start == end)],
    )


def _layers_of(start: int, end: int, layers: int) -> Range:
    """Return the decoder layers among the items from start to before end, the embedding being item 0."""
    first, after = max(start - 1, 0), min(end - 1, layers)
    return [first, after] if first < after else []


def _stage_of(item: int, pairs: Sequence[tuple[int, int]]) -> int:
    return next(stage for stage, (start, end) in enumerate(pairs) if start <= item < end)


def write(stages: Sequence[LayerStage], request: LayoutRequest, known: Setting | None = None) -> WrittenLayout:
    """Find a method that gives just this plan; there may be none.

    Parameters
    ----------
    stages
        Of the plan; items are the embedding, the layers, norm and head.
    request
        The model; ``modules`` or ``described`` give weights and classes of items.
    known
        Weights and classes of items, as :func:`read` takes them.

    Raises
    ------
    InputError
        If none of DeepSpeed's methods makes this plan.
    """
    check_ends(stages, "DeepSpeed")
    if request.mtp:
        raise refused("DeepSpeed's PipelineModule has no MTP layers")
    degree = tensor_degree(stages, "DeepSpeed")
    facts: dict[str, Any] = {**(known or _facts(request))}
    facts.pop(METHOD, None)
    asked = LayoutRequest(layers=request.layers, stages=len(stages))
    items = len(facts[_WEIGHTS]) if _WEIGHTS in facts else request.layers + 3
    wanted = [0, *(1 + stage.layers[1] for stage in stages[:-1]), items]
    found = {}
    for method in _methods(facts):
        try:
            found[method] = read({**facts, METHOD: method}, asked).bounds
        except InputError:
            continue
        if found[method] == wanted:
            return _written(method, facts, len(stages), degree, stages)
    raise refused(f"none of DeepSpeed's methods gives {_shown(wanted, request)} layers: {_told(found, request)}")


def _written(method: str, facts: Setting, number: int, degree: int, stages: Sequence[LayerStage]) -> WrittenLayout:
    pipes = f"num_stages={number}" if degree == 1 else (
        f"topology=PipeModelDataParallelTopology(num_pp={number}, num_mp={degree}, num_dp=1)"
    )  # fmt: skip
    notes = [
        *device_notes(stages),
        "layers are the embedding, the decoder layers, the final norm and the head, in order",
    ]
    if degree > 1:
        notes.append("layers share their work among GPUs themselves: PipelineModule does not divide them")
    return WrittenLayout(
        {**facts, METHOD: method}, f'PipelineModule(layers, {pipes}, partition_method="{method}")\n', notes
    )


def _facts(request: LayoutRequest) -> dict[str, Any]:
    """Weights and classes of the items of a model, as far as they are known."""
    model = request.described
    try:
        if request.modules is not None:
            modules = request.modules()
            return {_WEIGHTS: item_parameters(modules), _CLASSES[0]: _item_classes(modules)}
    except InputError:
        if model is None:
            raise
    if model is None:
        return {}
    layers = [layer.parameters for layer in model.layers]
    return {_WEIGHTS: [model.embedding.parameters, *layers, model.other.parameters, model.head.parameters]}


def _methods(facts: Setting) -> Iterator[str]:
    """Methods to be tried: both without a pattern, and the classes of some items."""
    yield from ("uniform", "parameters")
    classes = list(dict.fromkeys(facts.get(_CLASSES[0], ())))
    if len(classes) > _MOST_CLASSES:
        return
    for number in range(1, len(classes) + 1):
        for chosen in combinations(classes, number):
            pattern = "|".join(f"^{re.escape(name.lower())}$" for name in chosen)
            yield f"type:{chosen[0].lower() if number == 1 and _is_alone(chosen[0], classes) else pattern}"


def _is_alone(name: str, classes: Sequence[str]) -> bool:
    """Return whether the name of a class is part of no other."""
    return not any(name.lower() in other.lower() for other in classes if other != name)


def _shown(bounds: Sequence[int], request: LayoutRequest) -> str:
    """Show the decoder layers of stages with such items."""
    ranges = (_layers_of(start, end, request.layers) or [0, 0] for start, end in pairwise(bounds))
    return ",".join(str(end - start) for start, end in ranges)


def _told(found: dict[str, list[int] | None], request: LayoutRequest) -> str:
    shown = {method: _shown(bounds or [], request) for method, bounds in found.items()}
    told = [f"{method} {shown[method]}" for method in ("uniform", "parameters") if method in shown]
    patterns = {counts for method, counts in shown.items() if method.startswith("type:")} - {
        shown[method] for method in ("uniform", "parameters") if method in shown
    }
    return ", ".join([*told, *(f"type: {counts}" for counts in sorted(patterns)[:_TOLD])])
