"""Readers and writers of layouts, by the name of the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from mtpp.language_models.layer_stages import LayerStage, stages_of_counts
from mtpp.language_models.layout import Layout


class LayoutFormat(NamedTuple):
    """An engine.

    Attributes
    ----------
    read
        Returns the layout that the engine makes of a setting or of its own text, or raises InputError where it refuses.
    place
        Returns the setting for stages of a plan, or raises InputError; None where there is none to write.
    """

    read: Callable[[Any, LayoutRequest], Layout]
    place: Callable[[Sequence[LayerStage], LayoutRequest], WrittenLayout] | None = None

    @property
    def write(self) -> Callable[..., WrittenLayout] | None:
        """The same for numbers of layers, embedding on the first stage, head and MTP layers on the last."""
        place = self.place
        if place is None:
            return None

        def write(counts: Sequence[int], request: LayoutRequest, *more: Any) -> WrittenLayout:
            return place(stages_of_counts(counts, request.mtp), request, *more)

        return write


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
