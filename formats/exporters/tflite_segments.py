"""``tflite-segments``: where to cut for Coral's Edge TPUs, as JSON.

    {"format": "mtpp-tflite-segments", "version": 1, "model": "mobilenet", "num_segments": 2,
     "segments": [{"stage": 0, "ops": 31, "first": "conv1", "last": "add_5", "outputs": ["t31"]}, …],
     "num_ops": "31,35"}

``edgetpu_compiler --num_segments`` takes a number only and cuts where the parameters are halved; libcoral's
``partition_with_num_ops --num_ops=31,35`` takes the number of ops of each segment in the order in which the TensorFlow
Lite model runs (``coral/tools/partitioner/partition_with_num_ops.cc``). Both are about ops of the TensorFlow Lite file.
A plan of an ONNX model is about other ops, since converters merge and split them; for one, ``num_ops`` is null, and
*last* and *outputs* say where to cut the converted model. For a graph whose ops are those of the TensorFlow Lite file
(in its order, whatever format brought it here) ``num_ops`` is what libcoral takes. A stage that runs nothing
is no segment: *stage* is the number that the plan has for it. Of a plan for a machine each has its ``device``.
"""

from __future__ import annotations

from typing import Any

from mtpp.formats.exporters.request import Request
from mtpp.formats.io.json_text import dump_lines

FORMAT = "mtpp-tflite-segments"
VERSION = 1


def emit_tflite_segments(request: Request) -> str:
    """Return the JSON text."""
    graph, names = request.graph, request.graph.op_names
    segments = request.segments()
    outputs: dict[int, list[str]] = {stage: [] for stage in request.stages}
    for t, tensor in enumerate(graph.tensor_names):
        stage = int(request.assignment[graph.tensor_producer[t]])
        if any(int(reader) != stage for reader in request.assignment[graph.tensor_consumers(t)]):
            outputs[stage].append(tensor)
    rows = [
        {
            "stage": stage,
            **({"device": request.devices[stage]} if request.devices else {}),
            "ops": len(ops),
            "first": names[ops[0]],
            "last": names[ops[-1]],
            "outputs": cut,
        }
        for ops, (stage, cut) in zip(segments, outputs.items(), strict=True)
    ]
    same_ops = graph.metadata.get("format") != "onnx"
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "model": graph.name,
        "num_segments": len(segments),
        "segments": rows,
        "num_ops": ",".join(str(len(ops)) for ops in segments) if same_ops else None,
    }
    return dump_lines(document, ("segments",)) + "\n"
