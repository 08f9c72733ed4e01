"""``mtpp-training-plan``, version 2, of the planner ``graphpipe``: a plan, or that there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mtpp.host.stop_reason import LIMITS_REACHED, StopReason
from mtpp.training.graph_plan import FORMAT, PLANNER, VERSION, GraphPlan, NoGraphPlan
from mtpp.training.graph_problem import GraphProblem
from mtpp.training.stage_costs import ScheduledStage
from mtpp.units import PICOSECONDS
from mtpp.wording import counted

if TYPE_CHECKING:
    from mtpp.formats.io.source import Source


@dataclass(frozen=True)
class PlannedGraph:
    """A model as read, without the bytes of its file, with its plan, or that there is none.

    Attributes
    ----------
    elapsed_s
        Seconds of planning.
    """

    source: Source
    result: GraphPlan | NoGraphPlan
    elapsed_s: float

    @property
    def problem(self) -> GraphProblem:
        """What was to be planned."""
        return self.result.problem

    @property
    def plan(self) -> GraphPlan | None:
        """The plan, None if there is none."""
        return self.result if isinstance(self.result, GraphPlan) else None

    @property
    def no_plan(self) -> NoGraphPlan | None:
        """What is known where there is no plan."""
        return self.result if isinstance(self.result, NoGraphPlan) else None

    @property
    def stopped(self) -> StopReason:
        """Reason that planning ended."""
        return self.result.stopped

    def document(self) -> dict[str, Any]:
        """Return the ``mtpp-training-plan`` document, version 2."""
        found = self.result
        return {
            **_header(self.problem, self.source.identity),
            **(_no_plan(found) if isinstance(found, NoGraphPlan) else _plan(found)),
            "notes": notes(self.problem),
            "stopped": str(self.stopped),
            "elapsed_s": round(self.elapsed_s, 6),
        }


def no_plan_reason(none: NoGraphPlan) -> str:
    """Return on one line why there is no plan."""
    if none.stopped in LIMITS_REACHED and not none.proven and not none.fits:
        memory = none.stopped == StopReason.MEMORY_LIMIT
        return "the memory did not suffice to find a plan" if memory else "no plan was found in the time"
    devices = counted(none.problem.devices, "device")
    if none.hopeless:
        return (
            f"there is no plan for {devices}, whatever memory they have: no stages that their layers "
            "have costs of make up the model"
        )
    if not none.proven and not none.fits:
        return f"no plan for {devices} was found, with any memory"
    text = f"no plan fits into the memory of {devices}"
    return text if none.proven else f"{text}, as far as was found"


def _plan(plan: GraphPlan) -> dict[str, Any]:
    problem, graph = plan.problem, plan.graph
    time, second = plan.time_per_sample, PICOSECONDS["s"]
    return {
        "feasible": True,
        "least_memory_bytes": None,
        "iteration_ticks": plan.iteration,
        "iteration_time": plan.iteration / PICOSECONDS[problem.model.time_unit],
        "samples_per_s": problem.mini_batch * second / plan.iteration if plan.iteration else None,
        "time_per_sample_ticks": [time.numerator, time.denominator],
        "lower_bound": plan.lower.to_document(),
        "ratio": plan.ratio,
        "optimal": plan.optimal,
        "depth": graph.depth,
        "devices_used": plan.devices_used,
        "transfers": [
            {
                "source": one.source,
                "target": one.target,
                "forward_ticks": one.forward_ticks,
                "backward_ticks": one.backward_ticks,
            }
            for one in graph.transfers
        ],
        "stages": stage_documents(problem, plan.stages),
    }


def _no_plan(none: NoGraphPlan) -> dict[str, Any]:
    return {
        "feasible": False,
        "least_memory_bytes": none.least_memory_bytes,
        "memory_bound": none.memory.to_document(),
        "proven": none.proven,
        "least_memory_stages": stage_documents(none.problem, none.fits),
        "reason": no_plan_reason(none),
        "iteration_ticks": None,
        "transfers": [],
        "stages": [],
    }


def _header(problem: GraphProblem, file: Mapping[str, str]) -> dict[str, Any]:
    model, costs, rules = problem.model, problem.costs, problem.rules
    return {
        "format": FORMAT,
        "version": VERSION,
        "planner": PLANNER,
        "model": {"name": model.name, **file, "layers": len(model.layers), "edges": len(model.edges)},
        "time_unit": model.time_unit,
        "ticks_per_unit": PICOSECONDS[model.time_unit],
        "system": {
            "devices": problem.devices,
            "memory_bytes": problem.memory_bytes,
            "bandwidth_bytes_per_s": costs.link.bandwidth_bytes_per_s,
            "latency_ticks": costs.link.latency_ps,
            "sequential": rules.sequential,
        },
        "rules": {
            "times_of": costs.times_of,
            "micro_batch_sizes": list(problem.sizes),
            "per_stage_micro_batch": rules.per_stage,
            "forwards_backwards": sorted(set(rules.intervals)),
            "in_flight": rules.in_flight,
            "data_parallel": rules.data_parallel,
            "recompute": rules.recompute,
        },
        "mini_batch": problem.mini_batch,
    }


def notes(problem: GraphProblem) -> list[str]:
    """Return what was assumed of costs that a model does not list."""
    if all(one.micro_batches for here in problem.choices for one in here):
        return []
    of = "1 sample" if problem.costs.times_of == 1 else f"{problem.costs.times_of:,} samples"
    return [f"costs in proportion to those of {of}; a backward pass takes twice a forward pass"]


def stage_documents(problem: GraphProblem, stages: Sequence[ScheduledStage]) -> list[dict[str, Any]]:
    """Return what JSON says of stages."""
    return [_stage(problem, index, stage) for index, stage in enumerate(stages)]


def _stage(problem: GraphProblem, index: int, stage: ScheduledStage) -> dict[str, Any]:
    layers = problem.model.layers
    costs = [problem.costs.passes(one, stage.samples) for one in stage.configurations.values()]
    return {
        "index": index,
        "layers": [layers[layer].id for layer in stage.configurations],
        "data_parallel": stage.data_parallel,
        "tensor_parallel": 1,
        "devices": stage.data_parallel,
        "micro_batch": stage.micro_batch,
        "forwards_backwards": stage.interval,
        "in_flight": stage.in_flight,
        "forward_ticks": sum(one.forward_ticks for one in costs),
        "backward_ticks": sum(one.backward_ticks for one in costs),
        "synchronisation_ticks": problem.costs.synchronisation(stage),
        "memory_bytes": problem.costs.memory_bytes(stage),
        "configurations": {str(layers[layer].id): one.id for layer, one in stage.configurations.items()},
    }
