"""The lower bounds by name, from cheap to strong: what each rests on, and where it lives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import cast

from mtpp.errors import InputError
from mtpp.instance import Instance
from mtpp.solvers.bounding import BoundLimits, BoundResult

Bound = Callable[[Instance, BoundLimits], BoundResult]


@dataclass(frozen=True)
class BoundEntry:
    """A lower bound that users can name.

    Attributes
    ----------
    summary
        One line of help.
    tier
        How far it is to be trusted, one of ``mtpp.certificate.TIERS``.
    module
        Module whose function ``bound`` it is; imported on first use, for it brings numba or HiGHS.
    """

    name: str
    summary: str
    tier: str
    module: str

    def load(self) -> Bound:
        """Import the bound and return it."""
        return cast(Bound, import_module(self.module).bound)


BOUNDS = {
    entry.name: entry
    for entry in (
        BoundEntry("simple", "the largest op, or the average stage", "exact", "mtpp.solvers.bounds.simple"),
        BoundEntry(
            "bottleneck-no-dag",
            "the cheapest set of ops with the work of simple (MIP)",
            "solver",
            "mtpp.solvers.bounds.bottleneck_no_dag",
        ),
        BoundEntry(
            "bottleneck-no-cut-io",
            "the least work of a stage with the work of simple (MIP)",
            "solver",
            "mtpp.solvers.bounds.bottleneck_no_cut_io",
        ),
        BoundEntry(
            "bottleneck",
            "the cheapest stage with the work of simple (MIP)",
            "solver",
            "mtpp.solvers.bounds.bottleneck",
        ),
        BoundEntry(
            "bottleneck-guess",
            "the same for each position of that stage (k MIPs)",
            "solver",
            "mtpp.solvers.bounds.bottleneck_guess",
        ),
        BoundEntry(
            "node-convex",
            "the cheapest stage around each op (MIPs)",
            "solver",
            "mtpp.solvers.bounds.node_convex",
        ),
        BoundEntry(
            "exact-mip",
            "all stages at once (MIP)",
            "solver",
            "mtpp.solvers.bounds.exact_mip",
        ),
    )
}


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
            f"no bound is called {name!r}", source="--bounds", remedy=f"use some of {', '.join(BOUNDS)}"
        ) from None
