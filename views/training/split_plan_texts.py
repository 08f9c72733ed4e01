"""Texts on plans of split points and schedules: times, what bounds hold for, and why no plan fits."""

from __future__ import annotations

from mtpp.formats.results.split_plan import no_plan_reason
from mtpp.training.pfeife.line import FASTEST, LEAST_KEPT, SMALLEST, ModelLine
from mtpp.training.pfeife.looped import LoopedSchedule
from mtpp.training.pfeife.plan import FAMILY, LOADS, SCHEDULE, NoSplitPlan, SplitPlan
from mtpp.training.pfeife.problem import SplitProblem
from mtpp.views.training.training_texts import of_machine, whole_mebibytes, would_do
from mtpp.wording import counted

_CONFIGURATIONS = {
    FASTEST: "the fastest configurations for one device",
    LEAST_KEPT: "the configurations that keep least for a micro-batch",
    SMALLEST: "the configurations that hold least",
}


def schedule_text(plan: SplitPlan) -> str:
    """Return a schedule on one line: its name, or its parameters."""
    if plan.looped is None:
        return f"{plan.schedule_name}, {counted(plan.stages, 'stage')}"
    looped: LoopedSchedule = plan.looped
    loops = counted(looped.loops, "loop")
    batch = "" if looped.loops == 1 else f" of {counted(looped.loop_batch, 'micro-batch')}"
    prefetch, warm_up = (", ".join(map(str, numbers)) for numbers in (looped.prefetch, looped.warm_up))
    name = "" if plan.schedule_name is None else f"{plan.schedule_name}: "
    passes = "pass" if warm_up == "1" else "passes"
    return f"{name}{loops}{batch}, prefetch {prefetch} ({warm_up} forward {passes} before the first backward pass)"


def own_scope(plan: SplitPlan) -> str:
    """Return which plans the bound on the plan's own schedule is of: ``split under …``."""
    method = plan.family.method if plan.lower.method == FAMILY else plan.lower.method
    return f"split under this schedule{_along(plan, method)}"


def family_scope(plan: SplitPlan) -> str:
    """Return which plans the bound on all schedules is of: ``split under …``."""
    method = plan.lower.method if plan.family.method == SCHEDULE else plan.family.method
    return f"split under {_schedules(plan.problem)}{_along(plan, method)}"


def _along(plan: SplitPlan, method: str) -> str:
    """Return the orders of ops, and the configurations of layers, that a bound by a method is of."""
    line = plan.problem.line
    order = "along this order of ops" if plan.problem.rules.order == "search" else "along the file's order"
    configurations = f"with {_CONFIGURATIONS[line.choice]}" if line.configurations else ""
    return "".join(f", {text}" for text in ("" if method == LOADS else order, configurations) if text)


def _schedules(problem: SplitProblem) -> str:
    rules = problem.rules
    if rules.schedule is not None:
        return "this schedule, the only one allowed"
    *others, last = map(str, problem.loops)
    which = f"{', '.join(others)} or {last} loops" if others else f"{last} loop{'' if last == '1' else 's'}"
    if set(problem.loops) != {1} and rules.loop_batches == "any":
        which += ", any loop batch"
    prefetch = "any prefetch" if rules.prefetch is None else "this prefetch"
    return f"looped schedules with whole backward passes, {which}, {prefetch}"


def no_split_plan_text(none: NoSplitPlan) -> str:
    """Return the same with the memory that would do; parameters are named as in messages."""
    least = none.least_memory_bytes
    text = f"{no_plan_reason(none)}{of_machine(none.problem)}"
    if least is None:
        return text
    most = none.memory.value - 1
    short = f", {most}B would not" if 0 < most < 2**20 else f", {most // 2**20}MiB would not" if most > 0 else ""
    return f"{text}; {would_do(none.problem, enough_memory(least))}{short}"


def enough_memory(least: int) -> str:
    """Write a size that holds so many bytes as an option takes it: in whole MiB, or in bytes below one."""
    return whole_mebibytes(least) if least >= 2**20 else f"{least}B"


def configurations_text(line: ModelLine) -> str:
    """Return which configuration each layer of a model runs as."""
    return f"layers run as {_CONFIGURATIONS[line.choice]}"
