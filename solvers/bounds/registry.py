"""Lower bounds by name, from cheap to strong: tier, module, and place in the schedule of a cell."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from importlib import import_module
from math import inf
from typing import cast

from mtpp import names
from mtpp.errors import InputError
from mtpp.inference.certificate import Tier
from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.limits import BoundLimits, BoundResult
from mtpp.wording import did_you_mean

Bound = Callable[[Instance, BoundLimits], BoundResult]

WEAK_SHARE = 0.08
"""Of the time left, at most, for a bound that comes to its end soon."""


@dataclass(frozen=True)
class BoundEntry:
    """A lower bound that users can name.

    Attributes
    ----------
    tier
        How far it is to be trusted.
    module
        Module whose function ``bound`` it is; imported on first use, for it brings numba or HiGHS.
    in_ladder
        Whether ``certify`` tries it unless told what to try: not if others give more in less time, or if the search for
        a partition has it already.
    first
        Whether it comes before the search for a partition: it takes next to no time, and is often the optimum where
        stages hold few ops.
    lane
        Number of its lane, for a bound that gets better as long as it is given time: the lanes are worked at side by
        side, the bounds of a lane in turns. None for those that come one after the other, before.
    share
        Of the time left, at most, for its first turn. It is below 1 for bounds that cannot be resumed. In a lane it
        holds where others of the lane are to come or to go on. A bound that alone of its lane came to something ahead
        of the lanes has half of the time of these others as well.
    ahead
        Of the time left, for a turn ahead of the lanes, beside others of that kind: it closes many a gap at once. A
        lane begins in its place when it ends.
    due
        Of the time left, after which the turn ahead of the lanes ends if nothing is proven by then.
    makes_room
        Whether it may go on for ever without result: its turn ends early where its lane trails, or it has come to
        nothing; and before the next it makes room for lanes that are further. The search for partitions goes on in the
        meantime, if a core is free.
    parallel
        Whether it works on as many cores as it may have.
    largest, power
        Ops times this power of the stages beyond which it follows in the first lane: a model of all stages then takes
        too long, and says too little, for a lane of its own.
    device_orders
        Orders in which devices that differ may stand for it to be searched on these, and not on their envelope.
    """

    name: str
    tier: Tier
    module: str
    in_ladder: bool = True
    first: bool = False
    lane: int | None = None
    share: float = WEAK_SHARE
    ahead: float = 0.0
    due: float = 0.1
    makes_room: bool = False
    parallel: bool = False
    largest: float = inf
    power: int = 1
    device_orders: tuple[str, ...] = ()

    def load(self) -> Bound:
        """Import the bound and return it."""
        return cast(Bound, import_module(self.module).bound)


_HERE = "mtpp.solvers.bounds"

BOUNDS = {
    entry.name: entry
    for entry in (
        BoundEntry(names.SIMPLE, Tier.EXACT, f"{_HERE}.simple"),
        BoundEntry(names.DOWNSET, Tier.ENUMERATED, f"{_HERE}.downset", in_ladder=False),
        BoundEntry(names.NODE, Tier.EXACT, f"{_HERE}.node", first=True),
        BoundEntry(names.CROSSINGS, Tier.EXACT, f"{_HERE}.crossings"),
        BoundEntry(names.FRACTION, Tier.EXACT, f"{_HERE}.fraction"),
        BoundEntry(names.CAPACITY, Tier.ENUMERATED, f"{_HERE}.capacity.bound", in_ladder=False),
        BoundEntry(names.NO_DAG, Tier.SOLVER, f"{_HERE}.bottleneck_no_dag", in_ladder=False),
        BoundEntry(names.NO_CUT_IO, Tier.SOLVER, f"{_HERE}.bottleneck_no_cut_io", in_ladder=False),
        BoundEntry(names.BOTTLENECK, Tier.SOLVER, f"{_HERE}.bottleneck", in_ladder=False),
        BoundEntry(names.BOTTLENECK_GUESS, Tier.SOLVER, f"{_HERE}.bottleneck_guess", in_ladder=False),
        BoundEntry(names.RELAXATION, Tier.ENUMERATED, f"{_HERE}.relaxation", lane=0, share=1.0, makes_room=True),
        BoundEntry(names.NODE_CONVEX, Tier.SOLVER, f"{_HERE}.node_convex", lane=0),
        BoundEntry(
            names.CONVEX_WEIGHTS,
            Tier.EXACT,
            f"{_HERE}.convex_weights.bound",
            lane=1,
            share=0.75,
            ahead=0.3,
            due=0.15,
            device_orders=names.DEVICE_ORDERS,
        ),
        BoundEntry(
            names.POSITION_WEIGHTS,
            Tier.EXACT,
            f"{_HERE}.position_weights.bound",
            lane=1,
            share=0.7,
            ahead=0.4,
            device_orders=(names.FIXED,),
        ),
        BoundEntry(names.CONFIGURATION, Tier.EXACT, f"{_HERE}.configuration.bound", lane=1, share=1.0, parallel=True),
        BoundEntry(
            names.BRANCH_AND_BOUND,
            Tier.EXACT,
            f"{_HERE}.branch_and_bound.bound",
            lane=2,
            share=1.0,
            largest=25_000,
            power=2,
        ),
        BoundEntry(names.EXACT_MIP, Tier.SOLVER, f"{_HERE}.exact_mip", lane=2, share=0.4, largest=1_500),
    )
}

BY_DEFAULT = tuple(name for name, entry in BOUNDS.items() if entry.in_ladder)
"""Bounds that ``certify`` tries."""


def lanes(instance: Instance, among: Collection[str]) -> list[list[str]]:
    """Return the lanes that hold bounds *among* some, bounds of large models at the end of the first."""
    made: dict[int, list[str]] = {entry.lane: [] for entry in BOUNDS.values() if entry.lane is not None}
    behind: list[str] = []
    for name, entry in BOUNDS.items():
        if entry.lane is not None and name in among:
            large = instance.op_count * instance.k**entry.power > entry.largest
            (behind if large else made[entry.lane]).append(name)
    made[0] += behind
    return [lane for lane in made.values() if lane]


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
        remedy = did_you_mean(name, BOUNDS, f"use some of {', '.join(BOUNDS)}")
        raise InputError(f"no bound is called {name!r}", parameter="bounds", remedy=remedy) from None
