"""Options of ``mtpp plan``: devices, batch, schemes, and the problem that they make of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mtpp.cli.options.file_types import TOPOLOGY
from mtpp.cli.options.limits import memory_limit_option
from mtpp.cli.options.shared import FiniteRange, stack
from mtpp.errors import InputError
from mtpp.solvers.planners.limits import KNAPSACKS
from mtpp.training.problem import CONVENTIONS

if TYPE_CHECKING:
    from mtpp.formats.io.source import Source
    from mtpp.formats.results.training_plan import Problem
    from mtpp.training.device_tree import Topology
    from mtpp.training.model import TrainingModel

F = TypeVar("F", bound=Callable[..., Any])

MOST_DEVICES = 1_000_000
_MOST_MICRO_BATCHES = 10**9
_EXAMPLES = {
    "--devices": "--devices 64",
    "--memory": "--memory 16GiB",
    "--bandwidth": "--bandwidth 25GB/s",
    "--max-micro-batches": "--max-micro-batches 512, or --batch-size 1024 --micro-batch-size 2",
}
_BATCH = ("batch_size", "micro_batch_size", "gradient_accumulation")


def system_options() -> Callable[[F], F]:
    """Add what says which devices there are and how large a batch may be; see :class:`TrainingSystem`."""
    return stack(
        click.option("--devices", type=click.IntRange(1, MOST_DEVICES), metavar="K", help="Devices at most."),
        click.option("--memory", metavar="SIZE", help="Of each device, such as 8GiB."),
        click.option("--bandwidth", metavar="RATE", help="Of each device's link, such as 25GiB/s or 25GiB/ms."),
        click.option(
            "--topology", type=TOPOLOGY, metavar="FILE.toml",
            help="In place of --devices and --bandwidth: networks within networks."
        ),
        click.option(
            "--max-micro-batches", type=click.IntRange(1, _MOST_MICRO_BATCHES), metavar="N",
            help="Degrees of data parallelism add up to at most N.",
        ),
        click.option(
            "--batch-size", type=click.IntRange(1), metavar="B", help="Largest safe batch; gives N = ⌊B / (g · b)⌋."
        ),
        click.option(
            "--micro-batch-size", type=click.IntRange(1), metavar="b", help="Samples that the layers' times are of."
        ),
        click.option(
            "--gradient-accumulation", type=click.IntRange(1), metavar="g", help="Passes to an update [default: 1]."
        ),
        click.option("--exact-micro-batches", is_flag=True, help="Degrees of data parallelism add up to exactly N."),
    )  # fmt: skip


def rule_options() -> Callable[[F], F]:
    """Add what says which plans are allowed and what they cost."""
    return stack(
        click.option(
            "--convention", type=click.Choice(CONVENTIONS), default=CONVENTIONS[0], show_default=True,
            help="Piper's paper, or its published program: gradients cost less, every d divides N.",
        ),
        click.option("--no-data-parallel", is_flag=True, help="Only d = 1."),
        click.option("--no-tensor-parallel", is_flag=True, help="Only t = 1."),
        click.option("--no-recompute", is_flag=True, help="No configurations that compute activations twice."),
    )  # fmt: skip


def run_options() -> Callable[[F], F]:
    """Add what bounds a planner."""
    return stack(
        click.option(
            "--knapsack", type=click.Choice(KNAPSACKS), default=KNAPSACKS[0], show_default=True,
            help="Choose configurations of layers as well as possible, or by the paper's bang per buck.",
        ),
        click.option(
            "--time-limit", type=FiniteRange(min=0, min_open=True), metavar="S", help="From process start."
        ),
        click.option("-j", "--jobs", type=click.IntRange(min=1), help="Threads [default: all cores]."),
        memory_limit_option(),
    )  # fmt: skip


@dataclass(frozen=True)
class MicroBatches:
    """N, and where it comes from.

    Attributes
    ----------
    text
        N for people, with the sizes that it follows from.
    size
        Samples of a micro-batch; None where nobody said.
    """

    count: int
    text: str
    size: int | None = None


@dataclass(frozen=True)
class TrainingSystem:
    """The devices and the batch as far as options say; None: not given."""

    devices: int | None
    memory_bytes: int | None
    bandwidth_bytes_per_s: int | None
    topology: Topology | None
    micro_batches: MicroBatches | None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> TrainingSystem:
        """Read what :func:`system_options` collected."""
        from mtpp.cli.options.shared import option_value
        from mtpp.units import parse_bandwidth, parse_bytes

        memory: int | None = option_value("--memory", partial(parse_bytes, round_down=True), options["memory"])
        if memory == 0:
            raise InputError("must be above zero", source="--memory")
        bandwidth: int | None = option_value("--bandwidth", parse_bandwidth, options["bandwidth"])
        micro_batches = micro_batches_of(options)
        if options["topology"] is None:
            return cls(options["devices"], memory, bandwidth, None, micro_batches)
        from mtpp.training.device_tree import load_topology

        for option in ("devices", "bandwidth"):
            if options[option] is not None:
                raise click.UsageError(f"--topology says what --{option} does: give one of them")
        topology = load_topology(options["topology"])
        innermost = topology.levels[0]
        several = topology if len(topology.levels) > 1 else None
        return cls(topology.devices, memory, innermost.bandwidth_bytes_per_s, several, micro_batches)

    def problem(self, model: TrainingModel, source: Source, options: Mapping[str, Any]) -> Problem:
        """Return the problem that *model* makes on this system, with the rules of :func:`rule_options`.

        Raises
        ------
        InputError
            If something was not given; the model's file may say what it was written for, but is not asked unsaid: its
            numbers are examples as often as not (the published ones plan 5.9 billion parameters for 10 devices).
        """
        from mtpp.formats.io.json_shape import attributed
        from mtpp.training.nested_problem import HierarchicalProblem
        from mtpp.training.problem import PlanningProblem, Schemes

        if None in (self.devices, self.memory_bytes, self.bandwidth_bytes_per_s, self.micro_batches):
            raise self._incomplete(model, source)
        assert self.devices is not None
        assert self.memory_bytes is not None
        assert self.bandwidth_bytes_per_s is not None
        assert self.micro_batches is not None
        schemes = Schemes(
            data_parallel=not options["no_data_parallel"],
            tensor_parallel=not options["no_tensor_parallel"],
            recompute=not options["no_recompute"],
        )
        with attributed(source.display):
            if self.topology is not None:
                return HierarchicalProblem.build(
                    model,
                    self.topology,
                    memory_bytes=self.memory_bytes,
                    micro_batches=self.micro_batches.count,
                    exact_micro_batches=options["exact_micro_batches"],
                    convention=options["convention"],
                    schemes=schemes,
                )
            return PlanningProblem.build(
                model,
                devices=self.devices,
                memory_bytes=self.memory_bytes,
                bandwidth_bytes_per_s=self.bandwidth_bytes_per_s,
                micro_batches=self.micro_batches.count,
                exact_micro_batches=options["exact_micro_batches"],
                convention=options["convention"],
                schemes=schemes,
            )

    def _incomplete(self, model: TrainingModel, source: Source) -> InputError:
        parts = (
            ("--devices", self.devices, "devices", str),
            ("--memory", self.memory_bytes, "memory_bytes", exact_bytes),
            ("--bandwidth", self.bandwidth_bytes_per_s, "bandwidth_bytes_per_s", lambda rate: f"{exact_bytes(rate)}/s"),
            ("--max-micro-batches", self.micro_batches, "micro_batches", str),
        )
        missing = [option for option, value, *_ in parts if value is None]
        written_for = [
            f"{option} {write(model.defaults[key])}"
            for option, value, key, write in parts
            if value is None and model.defaults.get(key)
        ]
        remedy = f"the file is written for {' '.join(written_for)}" if written_for else f"write {_EXAMPLES[missing[0]]}"
        return InputError(f"{', '.join(missing)} must be given", source=source.display, remedy=remedy)


def micro_batches_of(options: Mapping[str, Any]) -> MicroBatches | None:
    """Return N, given as such or by the sizes of appendix A of the paper; None where neither is.

    Raises
    ------
    click.UsageError
        If both are given, a size is missing, or N comes to 0.
    """
    count = options["max_micro_batches"]
    sizes = [f"--{name.replace('_', '-')}" for name in _BATCH if options[name] is not None]
    if count is not None:
        if sizes:
            raise click.UsageError(f"--max-micro-batches and {sizes[0]} say the same: give one of them")
        return MicroBatches(count, f"{count:,}")
    if not sizes:
        return None
    batch, micro, steps = (options[name] for name in _BATCH)
    if batch is None or micro is None:
        missing = "--batch-size" if batch is None else "--micro-batch-size"
        raise click.UsageError(
            f"{sizes[0]} needs {missing} as well: N = batch size / (accumulation · micro-batch size)"
        )
    steps = steps or 1
    count, rest = divmod(batch, steps * micro)
    text = f"{batch:,} / ({steps:,} × {micro:,})" if steps > 1 else f"{batch:,} / {micro:,}"
    if rest:
        text = f"⌊{text}⌋"
    if count < 1:
        raise click.UsageError(f"no micro-batch fits into the batch: N = {text} = 0")
    if count > _MOST_MICRO_BATCHES:
        raise click.UsageError(f"N = {text} is above {_MOST_MICRO_BATCHES:,}")
    return MicroBatches(count, f"{count:,} = {text}", micro)


def exact_bytes(count: int) -> str:
    """Write an amount of memory so that it reads back as what it is: ``80GB``, ``8GiB``, ``1234567B``."""
    units = {f"{prefix}iB": 2**power for prefix, power in (("T", 40), ("G", 30), ("M", 20), ("K", 10))}
    units |= {f"{prefix}B": 10**power for prefix, power in (("T", 12), ("G", 9), ("M", 6), ("k", 3))}
    fitting = [(count // size, unit) for unit, size in units.items() if count and count % size == 0]
    number, unit = min(fitting, default=(count, "B"))
    return f"{number}{unit}"
