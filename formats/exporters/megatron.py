"""``megatron``: the pipeline layout that Megatron-LM takes.

``--pipeline-model-parallel-layout "Et*8|t*8|t*8|t*8,L"``: stages between bars, E the embedding, t a transformer layer,
L the loss with the output layer, ``*`` repeats, commas mean nothing, and a stage may be empty. Megatron Core developer
guide 0.15, "Custom Pipeline Model Parallel Layout" (marked experimental there), and ``parse_str_to_list`` in
``megatron/core/transformer/pipeline_parallel_layer_layout.py``. The embedding comes first and the loss last, whatever
else the model has before and after its layers.
"""

from __future__ import annotations

from mtpp.formats.exporters.layer_counts import layer_counts
from mtpp.formats.exporters.request import Request


def emit_megatron(request: Request) -> str:
    """Return the two options, one per line, below comments on stages that are empty or left out."""
    counts = layer_counts(request).counts
    stages = [f"t*{count}" if count > 1 else "t" * count for count in counts]
    empty = [request.stages[s] for s in range(1, len(counts) - 1) if not counts[s]]
    stages[0] = "E" + stages[0]
    stages[-1] += ",L" if stages[-1] else "L"
    layout = "|".join(stages)
    said = [
        *request.left_out(),
        *(f"# stage {stage} has no layer: it is empty in Megatron's layout\n" for stage in empty),
    ]
    options = f'--pipeline-model-parallel-size {len(counts)}\n--pipeline-model-parallel-layout "{layout}"\n'
    return "".join(said) + options
