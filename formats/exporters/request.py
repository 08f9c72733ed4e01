"""A plan to be exported: a graph, its partition, and the modules that its ops came from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from mtpp.errors import InputError
from mtpp.inference.graph import CostGraph, Int32Array


@dataclass(frozen=True, eq=False)
class Request:
    """A partition that is to be written down for another program.

    Attributes
    ----------
    assignment
        Stage of each op, int32, shape (n,); every edge goes to the same or a later stage.
    k
        Number of stages, empty ones included.
    modules
        Path of the module that each op came from, by name of the op: ``""`` for the whole model, absent where it is
        not known.
    devices
        Name of the device of each of the k stages; empty where the plan is not for a machine.
    visits
        Earlier calls of the modules around each op, by name of the op and by their paths; absent where there are none.
    """

    graph: CostGraph
    assignment: Int32Array
    k: int
    modules: Mapping[str, str] = field(default_factory=dict)
    devices: Sequence[str] = ()
    visits: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @cached_property
    def stages(self) -> list[int]:
        """Numbers of the stages that run an op, in the order of the pipeline."""
        return [int(stage) for stage in np.unique(self.assignment)]

    @cached_property
    def idle(self) -> list[int]:
        """Numbers of the stages that run nothing, of which engines know nothing."""
        return sorted(set(range(self.k)) - set(self.stages))

    def left_out(self) -> Iterator[str]:
        """Yield comments: on devices of stages, and on stages that run nothing, of which an engine gets none."""
        if self.devices:
            named = ", ".join(json.dumps(self.devices[stage]) for stage in self.stages)
            yield f"# devices of the stages in order: {named}\n"
        if self.idle:
            several = len(self.idle) > 1
            which = f"stage{'s' if several else ''} {', '.join(map(str, self.idle))} of the plan"
            what = "run nothing and are left out" if several else "runs nothing and is left out"
            yield f"# {which} {what}: {len(self.stages)} of {self.k} stages\n"

    @cached_property
    def order(self) -> list[int]:
        """The ops in the graph's own order."""
        order: list[int] = self.graph.order.tolist()
        return order

    @cached_property
    def paths(self) -> list[str | None]:
        """Module of each op; None where it is not known."""
        return [self.modules.get(name) for name in self.graph.op_names]

    def require_modules(self) -> None:
        """Check that the module of at least one op is known."""
        if not any(self.paths):
            raise InputError(
                "the file does not say which modules its ops came from",
                source=self.graph.name,
                remedy="export the model anew with torch.onnx.export, and simplify nothing",
            )

    def segments(self) -> list[list[int]]:
        """Return the ops of each stage that runs one, if each stage is a run of ops in the graph's own order."""
        latest, previous = -1, ""
        found: dict[int, list[int]] = {stage: [] for stage in self.stages}
        for v in self.order:
            stage, name = int(self.assignment[v]), self.graph.op_names[v]
            if stage < latest:
                raise InputError(
                    f"op {name!r} is in stage {stage}, though {previous!r}, which runs before it in the model, is in "
                    f"stage {latest}",
                    source=self.graph.name,
                    remedy="give stages that follow the model's own order (`mtpp partition --algorithm slice`)",
                )
            latest, previous = stage, name
            found[stage].append(v)
        return list(found.values())
