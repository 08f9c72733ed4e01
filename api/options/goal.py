"""Objective of plans, the limit on its other figure, and stages on several devices."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from mtpp.api.options.kinds import Choice, Cost, Flag
from mtpp.api.options.option import Options, option
from mtpp.errors import InputError
from mtpp.names import AUTO, BOTTLENECK_OBJECTIVE, CAPACITY_OBJECTIVES, DIRECT, DOWNSET, LATENCY_OBJECTIVE, OBJECTIVES
from mtpp.units import PICOSECONDS, exact_decimal, parse_duration

if TYPE_CHECKING:
    from mtpp.inference.goal import Goal
    from mtpp.inference.instance import Instance
    from mtpp.units import Exact


_EXHAUSTIVE = (AUTO, DOWNSET, "piper")
"""Algorithms that take goals in which latency counts."""


class Goals(Options):
    """Objective of plans, limits on its other figure, and devices of a stage."""

    objective: str = option(
        BOTTLENECK_OBJECTIVE, Choice(OBJECTIVES, "objective"),
        "Least bottleneck, or least latency: the time of one request on an idle pipeline.",
    )  # fmt: skip
    max_latency: str | Fraction | None = option(
        None,
        Cost(),
        "With the bottleneck as objective: plans of at most this latency; with ‹phase› both that of the first token.",
        "TIME",
    )
    max_bottleneck: str | Fraction | None = option(
        None, Cost(), "With the latency as objective: plans of at most this bottleneck.", "TIME"
    )
    replicas: bool = option(
        False, Flag(), "A stage may stand on several devices, which hold it whole and take turns at its requests.",
    )  # fmt: skip

    def __post_init__(self) -> None:
        if self.max_latency is not None and self.objective == LATENCY_OBJECTIVE:
            raise InputError("latency is the objective", parameter="max_latency", remedy="leave it out")
        if self.replicas:
            for given, name in (
                (self.objective == LATENCY_OBJECTIVE, "objective"),
                (self.max_latency is not None, "max_latency"),
            ):
                if given:
                    raise InputError(f"does not go with ‹{name}›", parameter="replicas", remedy="leave one of them out")

    @property
    def limited(self) -> str:
        """Name of the option that limits the figure that is not the objective."""
        return "max_bottleneck" if self.objective == LATENCY_OBJECTIVE else "max_latency"

    @property
    def goal_option(self) -> str:
        """Name of an option without which the goal would be the least bottleneck, a device a stage; empty: none."""
        if self.replicas or self.objective != BOTTLENECK_OBJECTIVE:
            return "replicas" if self.replicas else "objective"
        return "" if self.max_latency is None else "max_latency"

    def refuse_goals(self, beside: str) -> None:
        """Raise InputError if there is any goal but the least bottleneck, which does not go with something."""
        if self.goal_option:
            raise InputError(f"does not go with {beside}", parameter=self.goal_option, remedy="leave it out")

    def refuse_algorithm(self, name: str) -> None:
        """Raise InputError if an algorithm does not search for a goal in which latency counts."""
        if self.counts_latency and name not in _EXHAUSTIVE:
            raise InputError(f"{name} knows nothing of latency", parameter="algorithm", remedy="use auto or downset")

    def goal(self, instance: Instance) -> Goal:
        """Return the objective, and the limit on the other figure in ticks of an instance.

        Raises
        ------
        InputError
            If the limit is no time, or no number where the graph has no unit.
        """
        from mtpp.inference.goal import Goal
        from mtpp.inference.instance import LARGEST_TOTAL

        given = getattr(self, self.limited)
        if given is None:
            return Goal(BOTTLENECK_OBJECTIVE if self.of_capacity else self.objective)
        ticks = int(parse_cost(given, instance.time_unit, self.limited) * instance.ticks_per_unit)
        return Goal(self.objective, min(ticks, LARGEST_TOTAL))

    def applied(self, instance: Instance, algorithm: str = AUTO) -> Instance:
        """Return the instance of the plans that are asked for.

        Raises
        ------
        InputError
            If an algorithm, devices or a transport are not for such plans.
        """
        from mtpp.inference.replicas.partition import replicating

        if not self.replicas:
            return instance
        if algorithm not in (AUTO, DOWNSET):
            raise InputError(f"does not go with the algorithm {algorithm}", parameter="replicas", remedy="use auto")
        if instance.machine.transport != DIRECT:
            raise InputError(f"does not go with the transport {instance.machine.transport}", parameter="replicas")
        return replicating(instance)

    @property
    def of_capacity(self) -> bool:
        """Whether the context or the sequences that fit are the objective; of such plans the fastest is searched."""
        return self.objective in CAPACITY_OBJECTIVES

    @property
    def counts_latency(self) -> bool:
        """Whether the latency is the objective, or limited."""
        return self.objective == LATENCY_OBJECTIVE or self.max_latency is not None


class TableGoals(Goals):
    """The same of cells of tables, whose numbers of stages are given."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_bottleneck is not None and self.objective != LATENCY_OBJECTIVE:
            raise InputError(
                "limits the bottleneck, which is the objective", parameter="max_bottleneck", remedy="leave it out"
            )


def parse_cost(given: str | Fraction, time_unit: str, parameter: str) -> Exact:
    """Read a bottleneck or latency, in the graph's time unit: a duration, or a plain number for an abstract graph.

    Raises
    ------
    InputError
        If it is neither.
    """
    text = str(given)
    try:
        if time_unit == "1":
            value = given if isinstance(given, Fraction) else exact_decimal(text)
            if value < 0:
                raise ValueError(f"{text!r} must be at least zero")
            return value
        return Fraction(parse_duration(text), PICOSECONDS[time_unit])
    except InputError as error:
        raise InputError(error.problem, parameter=parameter, remedy=error.remedy) from None
    except ValueError as error:
        raise InputError(
            f"{error}", parameter=parameter, remedy="the graph has no time unit: write a plain number"
        ) from None
