"""Readers and writers of layouts, by the name of the engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from mtpp.formats.layouts import (
    accelerate,
    deepspeed,
    exo,
    llama_cpp,
    megatron,
    megatron_bridge,
    megatron_flags,
    petals,
    sglang,
    tensorrt_llm,
    torchtitan,
    transformers,
    vllm,
)
from mtpp.formats.layouts.request import LayoutRequest
from mtpp.formats.layouts.written import WrittenLayout
from mtpp.language_models.layout import Layout


class LayoutFormat(NamedTuple):
    """An engine.

    Attributes
    ----------
    read
        Returns the layout that the engine makes of a setting or of its own text, or raises InputError where it refuses.
    write
        Returns the setting for stages with so many layers, or raises InputError; None where there is none to write.
    """

    read: Callable[[Any, LayoutRequest], Layout]
    write: Callable[[list[int], LayoutRequest], WrittenLayout] | None = None


LAYOUT_FORMATS = {
    "vllm": LayoutFormat(vllm.read, vllm.write),
    "sglang": LayoutFormat(sglang.read, sglang.write),
    "tensorrt-llm": LayoutFormat(tensorrt_llm.read, tensorrt_llm.write),
    "megatron": LayoutFormat(megatron.read, megatron.write),
    "megatron-flags": LayoutFormat(megatron_flags.read),
    "megatron-bridge": LayoutFormat(megatron_bridge.read),
    "torchtitan": LayoutFormat(torchtitan.read, torchtitan.write),
    "deepspeed": LayoutFormat(deepspeed.read, deepspeed.write),
    "accelerate": LayoutFormat(accelerate.read, accelerate.write),
    "transformers": LayoutFormat(transformers.read, accelerate.write),
    "llama.cpp": LayoutFormat(llama_cpp.read, llama_cpp.write),
    "exo": LayoutFormat(exo.read, exo.write),
    "petals": LayoutFormat(petals.read),
}
