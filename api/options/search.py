"""Limits of searches for partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mtpp.api.options.goal import Goals, TableGoals
from mtpp.api.options.kinds import Choice, Cost, Flag, Groups, MemoryLimit, Names, Seconds, StageCounts, Text, Whole
from mtpp.api.options.option import Options, option
from mtpp.api.options.path_kinds import InputPath
from mtpp.errors import InputError
from mtpp.names import ALGORITHMS, AUTO, BOTTLENECK_OBJECTIVE, CAPACITY_OBJECTIVES, LATENCY_OBJECTIVE, OBJECTIVES
from mtpp.ranges import MOST_SEED, MOST_STAGES

if TYPE_CHECKING:
    from fractions import Fraction


def search_memory(limit: int | None) -> int:
    """Return what an exhaustive search may keep in memory, in bytes: a share of what this process's own limit leaves.

    Where there is none it is *limit*, or half of what is free.
    """
    from mtpp.host.capacity import memory_budget
    from mtpp.host.memory_limit import memory_left, search_share

    left = memory_left()
    if left is not None:
        return search_share(left)
    return memory_budget() if limit is None else limit


class Search(Options):
    """Limits of a search."""

    time_limit_s: float | None = option(None, Seconds(), "From process start.", "S")
    work_limit: int | None = option(None, Whole(), "Evaluate at most N candidates.", "N")
    seed: int = option(0, Whole(0, MOST_SEED), "Of all random choices.")
    jobs: int | None = option(
        None, Whole(), "Threads [default: all cores]; without ‹time_limit_s› they never change the result.", also="-j"
    )
    memory_limit: int | None = option(
        None, MemoryLimit(),
        "Of all processes together, at least 512MiB; by default an exhaustive search may take half of what is free.",
        "SIZE",
    )  # fmt: skip

    def limits(self) -> dict[str, Any]:
        """Return seed, threads and memory as :class:`mtpp.solvers.limits.InstanceLimits` has them."""
        from mtpp.host.capacity import available_cores

        jobs = self.jobs or available_cores()
        return {"seed": self.seed, "jobs": jobs, "memory_bytes": search_memory(self.memory_limit)}


class _Stages(Options):
    """Number of stages."""

    k: int | None = option(None, Whole(1, MOST_STAGES), "Number of stages at most.", also="--stages")


class _StageCounts(Options):
    """Numbers of stages."""

    k: tuple[int, ...] | None = option(
        None,
        StageCounts(),
        "Number of stages at most; several, such as 1-16 or 1,2,4,8, have a plan each.",
        "K,K-K,…",
        also="--stages",
        more="A range or a list has a plan for each number.",
    )


class _Cut(Goals):
    """Cuts that are asked for."""

    objective: str = option(
        BOTTLENECK_OBJECTIVE, Choice((*OBJECTIVES, *CAPACITY_OBJECTIVES), "objective"),
        "Least bottleneck, or least latency: the time of one request on an idle pipeline. Of a language model: the "
        "largest context, or most sequences, that devices hold, and of such plans one of least bottleneck.",
    )  # fmt: skip
    max_bottleneck: str | Fraction | None = option(
        None, Cost(), "In place of ‹k›: the fewest stages, or devices of ‹machine›, that all stay within TIME.", "TIME",
        more="A plain number where the graph's costs have no unit. With ``objective=\"latency\"`` a limit beside ‹k›.",
    )  # fmt: skip
    frontier: bool = option(
        False, Flag(), "All plans that no other one beats in both bottleneck and latency; CSV has these alone."
    )
    algorithm: str = option(
        AUTO, Text(ALGORITHMS),
        "auto, downset (also called piper), series-parallel, anneal, brkga, mla, mla-weighted, random or slice; "
        "even, memory or fill: rules of engines; "
        "random-100: 100 orders, brkga-100: 10 × 10.",
    )  # fmt: skip
    together: tuple[tuple[str, ...], ...] = option(
        (), Groups(), "Keep these ops in one stage (repeatable).", "OP,OP",
        more='Each group a list of names, or ``"a,b"``.',
    )  # fmt: skip
    together_blocks: bool = option(
        False, Flag(), "Keep each repeated block of an ONNX model or program, as layers.7, in one."
    )
    layers_only: bool = option(
        False, Flag(),
        "For engines that cut between layers alone: the embedding of a language model stays with its first layer, the "
        "head with its last, stages have one tensor degree, and none is empty where that costs nothing.",
    )  # fmt: skip
    ignore_engine: bool = option(False, Flag(), "Cut where `mtpp split` cannot, too: for who only wants the number.")


class _Evolution(Options):
    """Sizes of evolutionary searches."""

    population: int | None = option(None, Whole(2, 100_000), "Of brkga and mla [default: 100].", "P")
    generations: int | None = option(None, Whole(), "Of brkga and mla [default: 100 if no limit is set].", "G")


class AskedPartition(_Evolution, Search, _Cut):
    """Stages and limits of the search for a partition, but for the number of stages."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_latency is not None and self.max_bottleneck is not None:
            raise InputError("goes with ‹k›, not with ‹max_bottleneck›", parameter="max_latency")
        if self.frontier and (self.objective == LATENCY_OBJECTIVE or self.max_latency is not None):
            other = "objective" if self.objective == LATENCY_OBJECTIVE else "max_latency"
            raise InputError("has every bottleneck and latency", parameter="frontier", remedy=f"leave ‹{other}› out")
        if self.frontier and self.max_bottleneck is not None:
            raise InputError("goes with ‹k›, not with ‹max_bottleneck›", parameter="frontier")
        for given, name in ((self.frontier, "frontier"), (self.max_bottleneck is not None, "max_bottleneck")):
            if given and self.replicas:
                raise InputError(f"does not go with ‹{name}›", parameter="replicas", remedy="leave one of them out")
        self.refuse_algorithm(self.algorithm)
        if self.of_capacity:
            for given, name in (
                (self.max_latency is not None, "max_latency"),
                (self.max_bottleneck is not None, "max_bottleneck"),
                (self.frontier, "frontier"),
                (self.replicas, "replicas"),
            ):
                if given:
                    problem = f"does not go with the objective {self.objective}"
                    raise InputError(problem, parameter=name, remedy="leave one of them out")

    @property
    def counts_latency(self) -> bool:
        """Whether the latency is the objective, or limited, or every one is asked for."""
        return super().counts_latency or self.frontier

    @property
    def goal_option(self) -> str:
        """Name of an option without which the goal would be the least bottleneck, a device a stage; empty: none."""
        return super().goal_option or ("frontier" if self.frontier else "")


class Partitioning(AskedPartition, _Stages):
    """Number of stages, and limits of the search for a partition."""


class Partitions(AskedPartition, _StageCounts):
    """Numbers of stages, and limits of the searches for a partition into each."""

    @property
    def counts(self) -> tuple[int, ...]:
        """Numbers of stages; none where nobody says any."""
        return self.k or ()

    def single(self, k: int | None) -> Partitioning:
        """Return what is asked of the plan for one number of stages."""
        return Partitioning.of(**(self.values() | {"k": k}))

    def refuse_beside_several(self) -> None:
        """Refuse what is of one number of stages."""
        if self.frontier:
            problem = "is of one plan, and there are several numbers of stages"
            raise InputError(problem, parameter="frontier", remedy="give one ‹k›")

    def lacks_stages(self, *, on_machine: bool) -> bool:
        """Tell whether it is not clear how many stages there may be, or two options say so."""
        if self.counts_latency:
            return self.k is None and not on_machine
        return (self.k is None) == (self.max_bottleneck is None) and (self.k is not None or not on_machine)


class Scoring(Options):
    """A partition that is brought along."""

    assignment: str | None = option(
        None, InputPath("an assignment"),
        'A plan, JSON {"op": stage, …}, a CSV with op and stage, or a split of a placement workload; -: stdin.', "FILE",
    )  # fmt: skip
    cuts: tuple[str, ...] | None = option(
        None, Names(), "Ops that end a stage, in the order in which the file lists the ops.", "OP,OP"
    )
    k: int | None = option(
        None, Whole(1, MOST_STAGES), "Stages at most [default: as many as are used].", also="--stages"
    )


class _Table(Options):
    """Rows and columns of a comparison."""

    k: tuple[int, ...] | None = option(
        None,
        StageCounts(),
        "Numbers of stages, a column each, such as 2,4,8 or 1-16 [of a machine: its devices].",
        "K,K-K,…",
        also="--stages",
    )
    algorithms: tuple[str, ...] | None = option(
        None, Names(ALGORITHMS),
        "Rows, such as auto,brkga-10000,random-100: -T is for T evaluations [default: those of the paper, then ours].",
        "NAME,NAME,…",
    )  # fmt: skip


class Comparing(Search, TableGoals, _Table):
    """Algorithms to compare, and the limits of each run."""

    time_limit_s: float | None = option(None, Seconds(), "For each run: one algorithm on one graph for one k.", "S")
