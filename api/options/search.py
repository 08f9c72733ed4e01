"""Limits of searches for partitions."""

from __future__ import annotations

from typing import Any

from mtpp.api.options.kinds import MemoryLimit, Names, Seconds, StageCounts, Whole
from mtpp.api.options.option import REQUIRED, Options, option
from mtpp.names import ALGORITHMS
from mtpp.ranges import MOST_SEED


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
        from mtpp.host.cores import available_cores
        from mtpp.host.free_memory import memory_budget

        memory_bytes = memory_budget() if self.memory_limit is None else self.memory_limit
        return {"seed": self.seed, "jobs": self.jobs or available_cores(), "memory_bytes": memory_bytes}


class _Table(Options):
    """Rows and columns of a comparison."""

    k: tuple[int, ...] = option(
        REQUIRED, StageCounts(), "Numbers of stages, a column each, such as 2,4,8.", "K,K,…", also="--stages"
    )
    algorithms: tuple[str, ...] | None = option(
        None, Names(ALGORITHMS),
        "Rows, such as auto,brkga-10000,random-100: -T is for T evaluations [default: those of the paper, then ours].",
        "NAME,NAME,…",
    )  # fmt: skip


class Comparing(Search, _Table):
    """Algorithms to compare, and the limits of each run."""
