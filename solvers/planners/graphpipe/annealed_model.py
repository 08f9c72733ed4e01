"""Model in arrays, with the sizes of micro-batches and the replicas that stages may have, as annealing takes it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mtpp.solvers.planners.graphpipe.kernels.pipeline_cost import AnnealedModel
from mtpp.solvers.planners.graphpipe.stage_options import closest_way
from mtpp.solvers.planners.graphpipe.stage_size import StageSize
from mtpp.training.graph_problem import GraphProblem


class AnnealedModels:
    """Models of a planning problem for annealing, by the sizes and replicas that stages may have."""

    def __init__(self, problem: GraphProblem) -> None:
        self._problem = problem

    def sizes(self, micro_batch: int) -> list[StageSize]:
        """Return the ways to have micro-batches of so many samples, with ascending replicas."""
        return [StageSize(micro_batch, d) for d in self._problem.degrees(micro_batch)]

    def build(self, sizes: Sequence[StageSize]) -> AnnealedModel:
        """Return the arrays for stages that have one of some sizes, in any graph, with any number in flight.

        Notes
        -----
        In place of a configuration that has no costs of some samples, the fastest that has counts
        (:meth:`~mtpp.solvers.planners.graphpipe.stage_options.StageOptions.closest`). A layer that has costs of as many
        in none takes for ever.
        """
        problem, costs = self._problem, self._problem.costs
        layers, of_kinds = len(problem.model.layers), problem.ways.of_kinds
        most = max(map(len, of_kinds))
        forever = 2**61 // (problem.mini_batch * problem.devices * layers)
        passes = np.full((3, len(sizes), most, len(of_kinds)), forever, dtype=np.int64)
        held = np.zeros((2, len(sizes), most, len(of_kinds)), dtype=np.int64)
        for kind, (v, here) in enumerate(zip(problem.ways.examples, of_kinds, strict=True)):
            for o, size in enumerate(sizes):
                ways = problem.layer_ways(v, size.samples)
                for c in range(len(here)) if ways else ():
                    ran, known = closest_way(ways, c)
                    passes[:, o, c, kind] = known.forward_ticks, known.backward_ticks, known.memory_bytes
                    held[:, o, c, kind] = here[ran].memory_b, here[ran].gradient_bytes
        around: list[list[int]] = [[] for _ in range(layers)]
        for u, v in problem.model.ends:
            around[u].append(v)
            around[v].append(u)
        options = [(one.data_parallel, one.micro_batch, problem.mini_batch // one.micro_batch) for one in sizes]
        rate, latency = costs.bandwidth_bytes_per_s, costs.latency_ticks
        limits = [problem.devices, problem.memory_bytes, rate, latency, 0, 0]
        kinds = np.array(problem.ways.kinds)
        forward, backward, kept = (np.ascontiguousarray(one[:, :, kinds]) for one in passes)
        fixed, parameters = (np.ascontiguousarray(one[:, :, kinds]) for one in held)
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
            forever=forever,
        )


def by_rules(model: AnnealedModel, *, sequential: bool, in_flight: str) -> AnnealedModel:
    """Return the same model with stages in one line or not, and any number in flight or the fewest."""
    limits = model.limits.copy()
    limits[4:] = int(sequential), int(in_flight == "least")
    return model._replace(limits=limits)
