"""Texts on devices, rules, times and proofs of plans for training."""

from __future__ import annotations

from fractions import Fraction
from itertools import groupby
from typing import TYPE_CHECKING

from mtpp.formats.results.graph_plan import no_plan_reason
from mtpp.terminal_safe import terminal_safe
from mtpp.training.graph_plan import NoGraphPlan
from mtpp.training.nested_problem import NestedProblem
from mtpp.units import PICOSECONDS, format_bytes, format_picoseconds
from mtpp.wording import counted

if TYPE_CHECKING:
    from mtpp.formats.results.training_plan import TrainingTask
    from mtpp.machine.machine import OnMachine
    from mtpp.training.plan import NoPlan

_MIB = 2**20
_VISIBLY_ABOVE_1 = 1.0001
_NEAR = 2.0
"""Below this ratio, it is said in percent."""
_THOUSANDTHS = 1000
_UNITS = {"TiB": 2**40, "TB": 10**12, "GiB": 2**30, "GB": 10**9, "MiB": 2**20, "MB": 10**6}


def unit_of(time: Fraction) -> tuple[str, int]:
    """Return the largest unit in which *time* (in ticks) is at least 1, and the ticks in it."""
    for unit in ("s", "ms", "µs", "ns"):
        if time >= PICOSECONDS[unit]:
            return unit, PICOSECONDS[unit]
    return "ps", 1


def size_text(count: int) -> str:
    """Write an amount of memory as it was given where that is short: ``80 GB``, ``8 GiB``, ``2.5 GiB``."""
    for unit, size in _UNITS.items():
        if count >= size and count * _THOUSANDTHS % size == 0:
            return f"{count / size:,.10g} {unit}"
    return format_bytes(count)


def system_text(task: TrainingTask) -> str:
    """Return the devices and what connects them."""
    problem, flat = task.problem, task.flat
    devices = f"{counted(problem.devices, 'device')} of {size_text(flat.memory_bytes)}"
    levels = [(flat.devices, flat.link.bandwidth_bytes_per_s)]
    if isinstance(problem, NestedProblem):
        levels = [(level.devices, level.link.bandwidth_bytes_per_s) for level in problem.machine.levels]
    rates = [f"{f'{count:,} × ' if len(levels) > 1 else ''}{size_text(rate)}/s" for count, rate in levels]
    return f"{devices}, {', '.join(rates)}"


def rules_text(task: TrainingTask) -> str:
    """Return what plans were allowed, and by which convention they were costed."""
    schemes = task.flat.schemes
    named = {
        "data parallelism": schemes.data_parallel,
        "tensor parallelism": schemes.tensor_parallel,
        "recomputation": schemes.recompute,
    }
    allowed = ", ".join(name for name, used in named.items() if used) or "pipelines alone"
    forbidden = [name for name, used in named.items() if not used]
    texts = [f"convention {task.flat.convention}", allowed, *(f"no {name}" for name in forbidden)]
    texts += task.problem.model.assumptions
    return "; ".join(texts)


def rate_text(time: Fraction, micro_batch_size: int | None) -> str:
    """Return the throughput of a pipeline that takes *time* ticks for each micro-batch."""
    text = f"{throughput(time)} micro-batches/s"
    return text if micro_batch_size is None else f"{text}, {throughput(time / micro_batch_size)} samples/s"


def throughput(time: Fraction) -> str:
    """Return how many times a second something happens that takes *time* ticks."""
    per_second = float(PICOSECONDS["s"] / time)
    return f"{per_second:,.0f}" if per_second >= 1000 else f"{per_second:.4g}"


LINES = "pipelines of stages in a line by these rules"
"""Plans that bounds on the time per sample are of."""

GRAPHS = "with kFkB orders of whole backward passes by these rules"
"""The same of bounds on the iteration of stage graphs, or lines of stages."""


def proven_text(time: Fraction, lower: Fraction, ratio: float | None, method: str, tier: str, among: str) -> str:
    """Return how close to the best plan *among* a class one of so many ticks is, and what proves it."""
    bound = f"lower bound {format_picoseconds(float(lower))} by {method}, tier {tier}"
    if lower == time:
        return f"1, proven optimal among {among}: {bound}"
    if ratio is None:
        return f"none proven: {bound}"
    text = f"{ratio:.4f}" if ratio >= _VISIBLY_ABOVE_1 else f"{ratio:.10g}"
    near = f", within {distance_text(time, lower)} of optimal" if ratio < _NEAR else ""
    return f"{text} proven{near} among {among}: {bound}"


def distance_text(time: Fraction, lower: Fraction) -> str:
    """Return how far above its lower bound, which is not 0, a time can be: ``1.3%``."""
    above = 100 * float(time / lower - 1)
    return f"{above:.2g}%" if above < 100 else f"{above / 100 + 1:.3g}×"


def alike_text(configuration: str, layers: int) -> str:
    """Return that all layers run as one configuration."""
    both = {1: "", 2: " for both layers"}
    return configuration + both.get(layers, f" for all {counted(layers, 'layer')}")


def least_memory_text(none: NoPlan) -> str:
    """Return the memory that a device would need, rounded up to what can be given as ``--memory`` or in a machine."""
    least = none.least_memory_bytes
    if least is None:
        return "none would do" if none.proven else "not known"
    return f"{memory_each(least)}: {would_do(none.problem, whole_mebibytes(least), '--memory')}"


def memory_each(least: int) -> str:
    """Return that every device needs so many bytes."""
    return f"{format_bytes(least)} a device ({least:,} bytes)"


def would_do(problem: OnMachine, size: str, option: str = "‹memory›") -> str:
    """Return that a size of each device's memory would do: as the option, or in the file of the machine."""
    return f"a limit of {size} on each would do" if problem.machine.name else f"{option} {size} would do"


def of_machine(problem: OnMachine) -> str:
    """Return in brackets the machine with its devices and their memories; nothing where options gave these."""
    machine = problem.machine
    if not machine.name:
        return ""
    alike = groupby((name, device.memory_bytes) for name, device in zip(machine.names, machine.devices, strict=True))
    counts = [(len(list(same)), name, size) for (name, size), same in alike]
    each = [
        f"{f'{count} × ' if count > 1 else ''}{name}{'' if size is None else f' of {size_text(size)}'}"
        for count, name, size in counts
    ]
    return terminal_safe(f" (machine {machine.name}: {', '.join(each)})")


def whole_mebibytes(least: int) -> str:
    """Write the least whole number of MiB that holds so many bytes."""
    return f"{-(-least // _MIB)}MiB"


def no_plan_text(none: NoPlan) -> str:
    """Return on one line why there is no plan, and what would help; parameters are named as in messages."""
    least = none.least_memory_bytes
    text = f"{none.reason}{of_machine(none.problem)}"
    return text if least is None else f"{text}; {would_do(none.problem, whole_mebibytes(least))}"


def no_graph_plan_text(none: NoGraphPlan) -> str:
    """Return the same with the memory that would do; parameters are named as in messages."""
    least = none.least_memory_bytes
    text = f"{no_plan_reason(none)}{of_machine(none.problem)}"
    return text if least is None else f"{text}; {would_do(none.problem, whole_mebibytes(least))}{_short_of(none)}"


def _short_of(none: NoGraphPlan) -> str:
    """Return the most whole MiB that are proven not to be enough, where less than what would do may be."""
    most = none.memory.value - 1
    return "" if none.exact or most < _MIB else f", {most // _MIB}MiB would not"
