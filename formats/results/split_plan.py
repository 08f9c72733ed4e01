"""``mtpp-training-plan``, version 2, of the planner ``pfeife``: a plan, or that there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from mtpp.host.stop_reason import LIMITS_REACHED, StopReason
from mtpp.training.graph_plan import FORMAT, VERSION
from mtpp.training.pfeife.looped import LoopedSchedule
from mtpp.training.pfeife.plan import PLANNER, NoSplitPlan, SplitPlan
from mtpp.training.pfeife.problem import SplitProblem
from mtpp.training.pfeife.schedule import PassSchedule
from mtpp.units import Exact
from mtpp.wording import counted

if TYPE_CHECKING:
    from mtpp.formats.io.source import Source


@dataclass(frozen=True)
class PlannedSplit:
    """A model as read, without the bytes of its file, with its plan, or that there is none.

    Attributes
    ----------
    about
        What a document says of the model.
    elapsed_s
        Seconds of planning.
    """

    source: Source
    about: Mapping[str, Any]
    result: SplitPlan | NoSplitPlan
    elapsed_s: float

    @property
    def problem(self) -> SplitProblem:
        """What was to be planned; its ops in the order that was found, where that was searched."""
        return self.result.problem

    @property
    def plan(self) -> SplitPlan | None:
        """The plan, None if there is none."""
        return self.result if isinstance(self.result, SplitPlan) else None

    @property
    def no_plan(self) -> NoSplitPlan | None:
        """What is known where there is no plan."""
        return self.result if isinstance(self.result, NoSplitPlan) else None

    @property
    def stopped(self) -> StopReason:
        """Reason that planning ended."""
        return self.result.stopped

    def document(self) -> dict[str, Any]:
        """Return the ``mtpp-training-plan`` document, version 2."""
        found = self.result
        return {
            **_header(self.problem, self.about),
            **(_no_plan(found) if isinstance(found, NoSplitPlan) else _plan(found)),
            "stopped": str(self.stopped),
            "elapsed_s": round(self.elapsed_s, 6),
        }


def no_plan_reason(none: NoSplitPlan) -> str:
    """Return on one line why there is no plan."""
    if none.stopped in LIMITS_REACHED and not none.proven and none.schedule is None:
        memory = none.stopped == StopReason.MEMORY_LIMIT
        return "the memory did not suffice to find a plan" if memory else "no plan was found in the time"
    devices = counted(none.problem.devices, "device")
    text = f"no plan fits into the memory of {devices}"
    return text if none.proven else f"{text}, as far as was found"


def _plan(plan: SplitPlan) -> dict[str, Any]:
    return {
        "feasible": True,
        "least_memory_bytes": None,
        "iteration_ticks": plan.iteration,
        "lower_bound": {**plan.lower.to_document(), "scope": "schedule"},
        "ratio": plan.ratio,
        "family_bound": plan.family.to_document(),
        "family_ratio": plan.family_ratio,
        "optimal": plan.optimal,
        "stages": _stages(plan),
        "schedule": _schedule(plan.schedule, plan.looped, plan.schedule_name),
        "devices": _devices(plan),
        "baselines": [
            {
                "name": one.name,
                "split": list(one.split),
                "iteration_ticks": one.iteration,
                "fits": one.fits,
            }
            for one in plan.baselines
        ],
    }


def _no_plan(none: NoSplitPlan) -> dict[str, Any]:
    least = None
    if none.schedule is not None:
        least = {
            "split": list(none.split),
            "schedule": _schedule(none.schedule, none.looped, None),
            "peak_bytes": list(none.peak_bytes),
        }
    return {
        "feasible": False,
        "least_memory_bytes": none.least_memory_bytes,
        "memory_bound": none.memory.to_document(),
        "proven": none.proven,
        "least_memory_plan": least,
        "reason": no_plan_reason(none),
        "iteration_ticks": None,
        "stages": [],
    }


def _header(problem: SplitProblem, model: Mapping[str, Any]) -> dict[str, Any]:
    line, rules = problem.line, problem.rules
    return {
        "format": FORMAT,
        "version": VERSION,
        "planner": PLANNER,
        "model": dict(model),
        "time_unit": line.time_unit,
        "ticks_per_unit": line.ticks_per_unit,
        "system": {
            "devices": problem.devices,
            "memory_bytes": None if problem.memory_bytes is None else _one_or_all(problem.memory_bytes),
            "bandwidth_bytes_per_s": problem.machine.device.link.bandwidth_bytes_per_s,
            "latency_ticks": line.costs.latency,
            "speed": _one_or_all([exact_text(speed) for speed in problem.speeds]),
            "transport": rules.transport,
        },
        "costs": {
            "backward_ratio": exact_text(problem.backward_ratio),
            "state": exact_text(problem.state),
            "configurations": line.choice if line.configurations else None,
            "trained": None if line.kind == "layers" else "all" if line.trained is None else "stated",
            "buffers": rules.buffers,
        },
        "micro_batches": problem.micro_batches,
        "rules": {
            "loops": list(problem.loops) if rules.schedule is None else None,
            "loop_batches": rules.loop_batches,
            "prefetch": None if rules.prefetch is None else list(rules.prefetch),
            "schedule": None if rules.schedule is None else rules.schedule[0],
            "order": rules.order,
            "search": rules.search,
        },
        "order": list(line.names) if rules.order == "search" else None,
    }


def exact_text(number: Exact) -> str:
    """Return an exact number as text: ``2``, ``1/3``."""
    return str(Fraction(number))


def _one_or_all(values: Sequence[Any]) -> Any:
    return values[0] if len(set(values)) == 1 else list(values)


def _stages(plan: SplitPlan) -> list[dict[str, Any]]:
    line, rows = plan.problem.line, []
    direct = plan.problem.rules.transport == "direct"
    for s, (forward, backward, handover) in enumerate(plan.stage_ticks):
        row: dict[str, Any] = {
            "index": s,
            "device": s % plan.problem.devices,
            "layers": list(plan.layers(s)),
            "forward_ticks": forward,
            "backward_ticks": backward,
            "handover_ticks": None if direct else handover,
        }
        if direct:
            row["handovers"] = [[target, ticks] for source, target, ticks in plan.straight_handovers if source == s]
        if line.configurations:
            here = line.configurations[plan.split[s] : plan.split[s + 1]]
            row["configurations"] = {str(name): one.id for name, one in zip(plan.layers(s), here, strict=True)}
        rows.append(row)
    return rows


def _schedule(schedule: PassSchedule, looped: LoopedSchedule | None, name: str | None) -> dict[str, Any]:
    return {
        "name": name,
        "micro_batches": schedule.micro_batches,
        "loops": schedule.stages // schedule.devices if looped is None else looped.loops,
        "loop_batch": None if looped is None else looped.loop_batch,
        "prefetch": None if looped is None else list(looped.prefetch),
        "order": [[one.name for one in row] for row in schedule.rows],
        "dependencies": [[one.name, other.name] for one, other in schedule.dependencies],
    }


def _devices(plan: SplitPlan) -> list[dict[str, Any]]:
    known = plan.problem.line.sizes_known
    return [
        {
            "index": d,
            "busy_ticks": busy,
            "idle_ticks": plan.iteration - busy,
            "peak_bytes": peak if known else None,
            "in_flight": flying,
        }
        for d, (busy, peak, flying) in enumerate(
            zip(plan.busy_ticks, plan.peak_bytes, plan.schedule.in_flight, strict=True)
        )
    ]
