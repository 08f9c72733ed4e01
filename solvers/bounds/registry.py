"""The lower bounds by name, from cheap to strong: what each rests on, and where it lives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import cast

from mtpp import names
from mtpp.errors import InputError
from mtpp.inference.certificate import Tier
from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.limits import BoundLimits, BoundResult

Bound = Callable[[Instance, BoundLimits], BoundResult]


@dataclass(frozen=True)
class BoundEntry:
    """A lower bound that users can name.

    Attributes
    ----------
    summary
        One line of help.
    tier
        How far it is to be trusted.
    module
        Module whose function ``bound`` it is; imported on first use, for it brings numba or HiGHS.
    in_ladder
        Whether ``certify`` tries it unless told what to try: not if others give more in less time, or if the search for
        a partition has it already.
    """

    name: str
    summary: str
    tier: Tier
    module: str
    in_ladder: bool = True

    def load(self) -> Bound:
        """Import the bound and return it."""
        return cast(Bound, import_module(self.module).bound)


_HERE = "mtpp.solvers.bounds"

BOUNDS = {
    entry.name: entry
    for entry in (
        BoundEntry(names.SIMPLE, "the largest op, or the average stage", Tier.EXACT, f"{_HERE}.simple"),
        BoundEntry(
            names.DOWNSET,
            "an exhaustive search for better partitions; `auto` makes it part of its own",
            Tier.ENUMERATED,
            f"{_HERE}.downset",
            in_ladder=False,
        ),
        BoundEntry(names.NODE, "the most expensive op with what is best beside it", Tier.EXACT, f"{_HERE}.node"),
        BoundEntry(names.CROSSINGS, "what crosses between stages at least", Tier.EXACT, f"{_HERE}.crossings"),
        BoundEntry(names.FRACTION, "the share of its stage that each op takes", Tier.EXACT, f"{_HERE}.fraction"),
        BoundEntry(
            names.NO_DAG,
            "the cheapest set of ops with the work of simple (MIP)",
            Tier.SOLVER,
            f"{_HERE}.bottleneck_no_dag",
            in_ladder=False,
        ),
        BoundEntry(
            names.NO_CUT_IO,
            "the least work of a stage with the work of simple (MIP)",
            Tier.SOLVER,
            f"{_HERE}.bottleneck_no_cut_io",
            in_ladder=False,
        ),
        BoundEntry(
            names.BOTTLENECK,
            "the cheapest stage with the work of simple (MIP)",
            Tier.SOLVER,
            f"{_HERE}.bottleneck",
            in_ladder=False,
        ),
        BoundEntry(
            names.BOTTLENECK_GUESS,
            "the same for each position of that stage (k MIPs)",
            Tier.SOLVER,
            f"{_HERE}.bottleneck_guess",
            in_ladder=False,
        ),
        BoundEntry(
            names.RELAXATION,
            "an exhaustive search without ops that fit anywhere and cost little",
            Tier.ENUMERATED,
            f"{_HERE}.relaxation",
        ),
        BoundEntry(names.NODE_CONVEX, "the cheapest stage around each op (MIPs)", Tier.SOLVER, f"{_HERE}.node_convex"),
        BoundEntry(
            names.CONFIGURATION,
            "weights of ops of which no stage can hold more than its share",
            Tier.EXACT,
            f"{_HERE}.configuration.bound",
        ),
        BoundEntry(
            names.BRANCH_AND_BOUND,
            "all stages at once, as cases that HiGHS's dual values refute in integers",
            Tier.EXACT,
            f"{_HERE}.branch_and_bound.bound",
        ),
        BoundEntry(names.EXACT_MIP, "all stages at once (MIP)", Tier.SOLVER, f"{_HERE}.exact_mip"),
    )
}

BY_DEFAULT = tuple(name for name, entry in BOUNDS.items() if entry.in_ladder)
"""Bounds that ``certify`` tries."""


def bound_entry(name: str) -> BoundEntry:
    """Return the bound called *name*.

    Raises
    ------
    InputError
        If there is none; lists those there are.
    """
    try:
        return BOUNDS[name]
    except KeyError:
        raise InputError(
            f"no bound is called {name!r}", parameter="bounds", remedy=f"use some of {', '.join(BOUNDS)}"
        ) from None
