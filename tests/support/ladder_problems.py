"""A small problem of planning a stage graph: ten layers, each read by the next two."""

from __future__ import annotations

from mtpp.training.graph_problem import GraphProblem
from mtpp.training.model import Configuration, Edge, Layer, TrainingModel


def ladder_problem() -> GraphProblem:
    """Return the problem for two devices of 90 bytes."""
    layers = [Layer(i, str(i), {1: [Configuration(str(c), 4 + c, 1, 2 - c, 2) for c in range(2)]}) for i in range(10)]
    edges = [Edge(i, j, 1) for i in range(8) for j in (i + 1, i + 2)]
    return GraphProblem.build(
        TrainingModel("ladder", "ns", layers, edges),
        devices=2,
        memory_bytes=90,
        bandwidth_bytes_per_s=10**9,
        mini_batch=4,
        micro_batch_size=1,
    )
