"""The programs that plans are handed over to, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mtpp import names
from mtpp.errors import InputError
from mtpp.formats.exporters.cut_names import emit_cut_names
from mtpp.formats.exporters.megatron import emit_megatron
from mtpp.formats.exporters.request import Request
from mtpp.formats.exporters.tflite_segments import emit_tflite_segments
from mtpp.formats.exporters.torch_pipelining import emit_torch
from mtpp.formats.exporters.vllm import emit_vllm
from mtpp.names import EXPORTERS
from mtpp.wording import did_you_mean


class Emitter(NamedTuple):
    """One form of a plan.

    Attributes
    ----------
    name
        As ``--emit`` calls it.
    summary
        What it writes, in a few words.
    emit
        Returns the text, or raises InputError where the stages cannot be said in this form.
    """

    name: str
    summary: str
    emit: Callable[[Request], str]


EMITTERS = (
    Emitter(names.CUT_NAMES, "tensors that cross each boundary, as JSON", emit_cut_names),
    Emitter(names.TORCH, "split_spec of torch.distributed.pipelining", emit_torch),
    Emitter(names.VLLM, "VLLM_PP_LAYER_PARTITION", emit_vllm),
    Emitter(names.MEGATRON, "Megatron-LM's --pipeline-model-parallel-layout", emit_megatron),
    Emitter(names.TFLITE_SEGMENTS, "where to cut for Coral's Edge TPUs, as JSON", emit_tflite_segments),
)
"""All of them; a new one is one module beside this one and one entry here."""


def emit(name: str, request: Request) -> str:
    """Return a plan in the form called *name*.

    Raises
    ------
    InputError
        If there is no such form, or the stages cannot be said in it.
    """
    for emitter in EMITTERS:
        if emitter.name == name:
            return emitter.emit(request)
    remedy = did_you_mean(name, EXPORTERS, f"use one of {', '.join(EXPORTERS)}")
    raise InputError(f"unknown form {name!r}", parameter="emit", remedy=remedy)
