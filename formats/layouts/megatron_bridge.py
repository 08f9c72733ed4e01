"""``megatron-bridge``: layouts that recipes of Megatron-Bridge set, as lists of lists or by the name of a recipe.

``recipes/deepseek/h100/deepseek_v3.py``, ``recipes/kimi/h100/kimi_k2.py``, ``models/deepseek/deepseek_v4_bridge.py``
and ``models/sarvam/sarvam_provider.py``: maps from numbers of ranks and of virtual stages, with no rule between them.
"""

from __future__ import annotations

import re

from mtpp.errors import InputError
from mtpp.formats.layouts.counts import first_longer
from mtpp.formats.layouts.megatron import layout_of_stages
from mtpp.formats.layouts.megatron_text import Stage
from mtpp.formats.layouts.request import LayoutRequest, Setting, check_keys, integer, named, natural, refusal
from mtpp.language_models.layout import Layout

_LAYOUT = ("pipeline_model_parallel_layout", "layout")
_RECIPE = ("recipe", "model")
_VIRTUAL = ("virtual_pipeline_model_parallel_size", "vp")
_MTP = ("mtp_num_layers", "--mtp-num-layers")
_NAME = re.compile(r"(.+?)\s*(?:\((\d+), *(\d+)\))?")

_V3 = {(4, 1): (16, 4), (8, 1): (8, 8), (4, 2): (8, 8), (16, 1): (4, 16), (8, 2): (4, 16), (4, 4): (4, 16)}
"""Ranks and virtual stages → layers of all stages but the last, and number of stages, of 61 layers."""
_MAPS = {"deepseek-v3": _V3, "kimi-k2": {**_V3, (2, 8): (4, 16)}}
_EVEN = ("deepseek-v4", "sarvam")
_STANDALONE = "standalone-mtp"
RECIPES = (*_MAPS, *_EVEN, _STANDALONE)


def read(setting: Setting | str, request: LayoutRequest) -> Layout:
    """Layout of lists, of a text, or of a recipe."""
    setting = _of_text(setting) if isinstance(setting, str) else setting
    findings = check_keys(setting, [*_LAYOUT, *_RECIPE, *_VIRTUAL, *_MTP])
    given = named(setting, *_LAYOUT)
    if given is None:
        given, request = _of_recipe(setting, request)
    mtp = integer(named(setting, *_MTP, default=request.mtp), _MTP[0])
    return layout_of_stages("megatron-bridge", given, request, mtp=mtp, findings=findings, order="chunk-major")


def _of_text(text: str) -> Setting:
    return {"recipe": text} if text.lower().startswith(RECIPES) else {_LAYOUT[0]: text}


def _of_recipe(setting: Setting, request: LayoutRequest) -> tuple[list[Stage], LayoutRequest]:
    """Stages that a recipe sets."""
    match = _NAME.fullmatch(str(named(setting, *_RECIPE, "named", default="")))
    recipe = match[1].lower().replace(" ", "-") if match else ""
    if recipe not in RECIPES:
        raise InputError(
            f"recipe {recipe!r} is not known",
            parameter="layout",
            remedy=f"give a layout, or one of {', '.join(RECIPES)}",
        )
    ranks = request.stage_count(int(match[2]) if match and match[2] else None)
    virtual = natural(named(setting, *_VIRTUAL, default=int(match[3]) if match and match[3] else 1), "vp", 1)
    counts = _counts(recipe, ranks, virtual, request.layers)
    stages = [["decoder"] * count for count in counts]
    stages[0].insert(0, "embedding")
    tail = [["mtp"] * request.mtp, ["loss"]]
    if recipe == _STANDALONE:
        stages += tail
    else:
        stages[-1] += [*tail[0], *tail[1]]
    return stages, request


def _counts(recipe: str, ranks: int, virtual: int, layers: int) -> list[int]:
    number = natural(ranks * virtual, "the number of virtual stages", 1)
    if recipe in _MAPS:
        if (ranks, virtual) not in _MAPS[recipe]:
            silent = "; for DeepSeek-V3 it is swallowed and no layout is set" if recipe == "deepseek-v3" else ""
            raise refusal("ValueError", f"no layout of {recipe} for pp={ranks}, vp={virtual}{silent}")
        each, number = _MAPS[recipe][ranks, virtual]
        return [each] * (number - 1) + [layers - each * (number - 1)]
    if recipe == _STANDALONE:
        if number < 3:
            raise refusal("ValueError", f"MTP layers of their own need 3 stages, not {number}")
        number -= 2
    return first_longer(layers, number)
