"""Model in arrays, with the sizes of micro-batches and the replicas that stages may have, as annealing takes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mtpp.solvers.planners.graphpipe.kernels.pipeline_cost import AnnealedModel
from mtpp.training.graph_problem import GraphProblem, GraphRules
from mtpp.training.model import Configuration
from mtpp.training.stage_costs import PassCosts


@dataclass(frozen=True)
class StageSize:
    """Samples of a stage's micro-batches, and its replicas."""

    micro_batch: int
    data_parallel: int


class AnnealedModels:
    """Models of a planning problem for annealing, by the sizes and replicas that stages may have."""

    def __init__(self, problem: GraphProblem) -> None:
        self._problem = problem
        self._costs = lru_cache(maxsize=None)(self._layer_costs)

    def sizes(self, micro_batch: int) -> list[StageSize]:
        """Return the ways to have micro-batches of so many samples, with ascending replicas."""
        return [StageSize(micro_batch, d) for d in self._problem.degrees(micro_batch)]

    def _layer_costs(self, layer: int, configuration: int, samples: int) -> PassCosts | None:
        one: Configuration = self._problem.choices[layer][configuration]
        if one.micro_batches and samples not in one.micro_batches:
            return None
        return self._problem.costs.passes(one, samples)

    def build(self, sizes: Sequence[StageSize], rules: GraphRules) -> AnnealedModel:
        """Return the arrays for stages that have one of some sizes; of *rules* the line and numbers in flight count.

        Notes
        -----
        A configuration that has no costs of some samples takes for ever.
        """
        problem, costs = self._problem, self._problem.costs
        layers = len(problem.model.layers)
        most = max(map(len, problem.choices))
        forever = 2**61 // (problem.mini_batch * problem.devices * layers)
        passes = np.full((3, len(sizes), most, layers), forever, dtype=np.int64)
        held = np.zeros((2, most, layers), dtype=np.int64)
        for v, here in enumerate(problem.choices):
            for c, one in enumerate(here):
                held[:, c, v] = one.memory_b, one.parameter_bytes
                for o, size in enumerate(sizes):
                    known = self._costs(v, c, size.micro_batch // size.data_parallel)
                    if known is not None:
                        passes[:, o, c, v] = known.forward_ticks, known.backward_ticks, known.memory_bytes
        around: list[list[int]] = [[] for _ in range(layers)]
        for u, v in problem.model.ends:
            around[u].append(v)
            around[v].append(u)
        options = [(one.data_parallel, one.micro_batch, problem.mini_batch // one.micro_batch) for one in sizes]
        least = rules.in_flight == "least"
        rate, latency = costs.bandwidth_bytes_per_s, costs.latency_ticks
        limits = [problem.devices, problem.memory_bytes, rate, latency, int(rules.sequential), int(least)]
        forward, backward, kept = map(np.ascontiguousarray, passes)
        fixed, parameters = map(np.ascontiguousarray, held)
        return AnnealedModel(
            options=np.array(options, dtype=np.int64),
            forward=forward,
            backward=backward,
            kept=kept,
            fixed=fixed,
            parameters=parameters,
            choices=np.array([len(here) for here in problem.choices], dtype=np.int64),
            edges=np.array(problem.model.ends, dtype=np.int64).reshape(-1, 2),
            moved=np.array([edge.communication_bytes / costs.times_of for edge in problem.model.edges]).reshape(-1),
            neighbour_start=np.cumsum([0, *map(len, around)], dtype=np.int64),
            neighbours=np.array([v for here in around for v in here], dtype=np.int64),
            limits=np.array(limits, dtype=np.int64),
        )
