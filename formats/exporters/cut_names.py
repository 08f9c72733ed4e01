"""``cut-names``: the tensors that cross each boundary between stages, as JSON.

    {"format": "mtpp-cuts", "version": 1, "model": "resnet50",
     "boundaries": [{"after": 0, "before": 1,
                     "tensors": [{"name": "relu_8", "bytes": 802816, "from": 0, "to": [1, 2]}]}]}

*after* and *before* are neighbours among the stages that run an op. A tensor that a later stage reads crosses every
boundary on its way, and stands under each. Plans for a machine have ``"devices": [{"stage": 0, "device": "a100"}]``
besides. *from* is the stage that makes it, *to* are the stages that read it; *bytes*
is null where the size is not known. Weights and inputs of the model cross no boundary: each stage has its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mtpp.formats.exporters.request import Request
from mtpp.formats.io.json_text import dump_json, dump_lines
from mtpp.inference.graph import UNKNOWN_BYTES

FORMAT = "mtpp-cuts"
VERSION = 1


def emit_cut_names(request: Request) -> str:
    """Return the JSON text.

    Notes
    -----
    O(n + pins + what is listed) time and memory.
    """
    graph, stages = request.graph, request.stages
    place = {stage: i for i, stage in enumerate(stages)}
    crossing: list[list[dict[str, Any]]] = [[] for _ in stages[1:]]
    for t, name in enumerate(graph.tensor_names):
        source = int(request.assignment[graph.tensor_producer[t]])
        readers = np.unique(request.assignment[graph.tensor_consumers(t)]).tolist()
        targets = [stage for stage in readers if stage != source]
        if not targets:
            continue
        size = int(graph.tensor_bytes[t])
        row = {"name": name, "bytes": None if size == UNKNOWN_BYTES else size, "from": source, "to": targets}
        for boundary in range(place[source], place[targets[-1]]):
            crossing[boundary].append(row)
    boundaries = [
        {"after": after, "before": before, "tensors": tensors}
        for after, before, tensors in zip(stages, stages[1:], crossing, strict=False)
    ]
    on = [{"stage": stage, "device": request.devices[stage]} for stage in stages] if request.devices else []
    document = {
        "format": FORMAT,
        "version": VERSION,
        "model": graph.name,
        **({"devices": on} if on else {}),
        "boundaries": boundaries,
    }
    return dump_lines(document, ("boundaries",)) + "\n" if boundaries else dump_json(document) + "\n"
