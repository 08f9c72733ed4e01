"""``vllm``: the number of layers of each pipeline stage, as vLLM's environment variable takes it.

``VLLM_PP_LAYER_PARTITION=8,8,6,6`` with ``--pipeline-parallel-size 4``: one number per stage, which have to add up to
the number of hidden layers (``get_pp_indices`` in ``vllm/distributed/utils.py``, vLLM 0.5.4 and later). Embeddings are
in the first stage, the final norm and the head in the last.
"""

from __future__ import annotations

from mtpp.errors import InputError
from mtpp.formats.exporters.layer_counts import layer_counts
from mtpp.formats.exporters.request import Request


def emit_vllm(request: Request) -> str:
    """Return the setting, and as comments the option that goes with it and stages that are left out."""
    found = layer_counts(request)
    if 0 in found.counts:
        stage = request.stages[found.counts.index(0)]
        problem = f"stage {stage} runs no whole block of {found.family}, and vLLM gives each stage a layer"
        raise InputError(problem, source=request.graph.name)
    said = "".join(request.left_out())
    counts = ",".join(map(str, found.counts))
    return f"{said}# vllm serve MODEL --pipeline-parallel-size {len(found.counts)}\nVLLM_PP_LAYER_PARTITION={counts}\n"
