"""Graphs of a plan's degrees of tensor parallelism, on the devices of its machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mtpp.checker.facts import counted
from mtpp.checker.graph import TickGraph, first_difference
from mtpp.checker.machine import PlacedGraph, Times, classes_of, placed_graph
from mtpp.checker.report import Check, fact
from mtpp.checker.stages import StageFigures, stage_figures
from mtpp.document_shape import refuse
from mtpp.errors import InputError

DEGREE, DEGREES, GRAPHS, NONE_EMPTY = "tensor_parallel", "degrees", "graphs", "none_empty"
"""Keys of plans: of a stage and of a device; the degrees considered; their graphs; whether no device is left out."""

ONE_DEGREE = "one_degree"
"""Key of plans whose stages all have to have the same degree."""

ROW, STAGES = "tensor parallelism", "intervals"
"""Names of rows: degrees of stages, and that stages are intervals."""

DegreesDue = Mapping[int, tuple[Any, Sequence[Times | None]]]
"""For each degree above 1 the graph of a GPU's share, and the times of its ops on each device."""


@dataclass(frozen=True)
class DegreeGraphs:
    """Graphs by degree, each on the machine of a plan.

    Attributes
    ----------
    placed
        Of each degree that a stage could have had.
    of_device
        Degrees of each device, of those that could have been.
    embedded
        Whether all graphs above degree 1 are the plan's own.
    """

    placed: Mapping[int, PlacedGraph]
    of_device: Sequence[Sequence[int]]
    embedded: bool

    @classmethod
    def of(
        cls, plan: Mapping[str, Any], whole: PlacedGraph, due: DegreesDue | None
    ) -> tuple[DegreeGraphs, list[Check]]:
        """Return the graphs of a plan that has degrees, and the row on the graphs that it embeds.

        Parameters
        ----------
        whole
            The graph of degree 1.
        due
            Of the model, where it is at hand.

        Raises
        ------
        InputError
            If a graph is missing or malformed.
        """
        machine = plan["machine"]
        if machine["transport"] != "direct":
            refuse("degrees of tensor parallelism go with direct transport", ("machine", "transport"))
        degrees = plan[DEGREES]
        allowed = [device.get(DEGREE, [1]) for device in machine["devices"]]
        for i, degree in enumerate(degrees):
            if (i and degree <= degrees[i - 1]) or not any(degree in row for row in allowed):
                refuse("the degrees are not ascending ones of devices", (DEGREES, i))
        own = embedded_graphs(plan, plan.get(GRAPHS, {}), (GRAPHS,), 2)
        given = {} if due is None else given_graphs(plan, due)
        found, rows = {1: whole}, []
        for degree in degrees:
            if degree == 1:
                continue
            graph = given.get(degree) or own.get(degree)
            if graph is None:
                refuse(f"the plan embeds no graph of degree {degree}", (GRAPHS,), "give the model with ‹model›")
            found[degree] = graph
        rows.append(_considered_row(allowed, degrees) if due is None else _embedded_row(allowed, degrees, own, given))
        of_device = [[degree for degree in row if degree in degrees] for row in allowed]
        placed = {degree: found[degree] for degree in degrees}
        for degree, one in placed.items():
            if names_in_order(one) != names_in_order(whole):
                refuse(f"the graph of degree {degree} has other ops than the whole model", (GRAPHS, str(degree)))
        return cls(placed, of_device, due is None), rows

    def degrees_row(self, plan: Mapping[str, Any]) -> Check:
        """Check that each stage has a degree of its device."""
        for s, stage in enumerate(plan["stages"]):
            degree, device = stage[DEGREE], stage["device"]["index"]
            if degree not in self.of_device[device]:
                own = ", ".join(map(str, self.of_device[device])) or "none"
                return Check(ROW, False, f"stage {s} has degree {degree}, its device {own}")
        return Check(ROW, True, f"each stage has one of the degrees of its device, of {self.words}")

    @property
    def words(self) -> str:
        """The degrees in words."""
        return ", ".join(map(str, self.placed))

    def at_words(self, plan: Mapping[str, Any]) -> str:
        """Return the degrees that stages are at in words; nothing where no stage could have had several GPUs."""
        if list(self.placed) == [1]:
            return ""
        return f" at {'one of ' if plan.get(ONE_DEGREE) else ''}degrees {self.words}"

    def figures(self, plan: Mapping[str, Any], stage_of: list[int]) -> dict[int, StageFigures]:
        """Return the figures of each stage that has ops, at its own degree."""
        return figures_at_degrees(self.placed, plan, stage_of)


def intervals_row(graph: TickGraph, stage_of: Sequence[int]) -> Check:
    """Check that the ops of each stage stand together in the graph's order, and stages in theirs."""
    in_order = [stage_of[v] for v in graph.order]
    for position in range(1, len(in_order)):
        if in_order[position] < in_order[position - 1]:
            name = graph.op_names[graph.order[position]]
            return Check(STAGES, False, f"op {name!r} stands behind a later stage in the graph's order")
    return Check(STAGES, True, f"{counted(len(set(in_order)), 'stage')} of consecutive ops")


def none_empty_row(plan: Mapping[str, Any]) -> list[Check]:
    """Check that as many devices as may be used have a stage, where the plan says so."""
    if not plan.get(NONE_EMPTY):
        return []
    busy = sum(stage["ops"] > 0 for stage in plan["stages"])
    return [Check("no stage empty", busy == plan["k"], f"{counted(busy, 'stage')} of {plan['k']} have ops")]


def one_degree_row(plan: Mapping[str, Any]) -> list[Check]:
    """Check that all stages with ops have the same degree, where the plan says so."""
    if not plan.get(ONE_DEGREE):
        return []
    found = sorted({stage[DEGREE] for stage in plan["stages"] if stage["ops"]})
    return [Check("one degree", len(found) == 1, f"stages have degree {', '.join(map(str, found))}")]


def embedded_graphs(
    plan: Mapping[str, Any], graphs: Mapping[str, Any], path: tuple[str, ...], least: int
) -> dict[int, PlacedGraph]:
    """Return the graphs that a plan embeds by degree, each on its machine.

    Parameters
    ----------
    path
        Keys that lead to *graphs* in the plan.
    least
        Least degree that there may be.

    Raises
    ------
    InputError
        If a key is no such degree, or a graph is malformed.
    """
    machine, found = plan["machine"], {}
    class_of = classes_of(machine)
    for degree, one in graphs.items():
        at = (*path, degree)
        if not degree.isdecimal() or str(int(degree)) != degree or int(degree) < least:
            refuse("is no degree above 1" if least > 1 else "is no degree", at)
        if len(one["times"]) != max(class_of) + 1:
            refuse("there is not a row of times for each class of devices", (*at, "times"))
        times = [one["times"][c] for c in class_of]
        try:
            found[int(degree)] = placed_graph(machine, one["graph"], plan["k"], times, embedded=False)
        except InputError as error:
            raise InputError(error.problem, where=f"/{'/'.join(at)}{error.where or ''}") from None
    return found


def given_graphs(plan: Mapping[str, Any], due: DegreesDue) -> dict[int, PlacedGraph]:
    """Return the model's graphs by degree, each on the machine of a plan."""
    machine, k = plan["machine"], plan["k"]
    return {degree: placed_graph(machine, graph, k, times, embedded=False) for degree, (graph, times) in due.items()}


def names_in_order(graph: PlacedGraph) -> list[str]:
    """Return the names of the ops in the graph's order."""
    one = graph.by_device[0]
    return [one.op_names[v] for v in one.order]


def figures_at_degrees(
    placed: Mapping[int, PlacedGraph], plan: Mapping[str, Any], stage_of: list[int]
) -> dict[int, StageFigures]:
    """Return the figures of each stage of a plan that has ops, by the graph of its own degree."""
    found: dict[int, StageFigures] = {}
    numbers = [stage["device"]["index"] for stage in plan["stages"]]
    for degree, one in placed.items():
        on = [(one.by_device[i], one.devices[i]) for i in numbers]
        rows = stage_figures(one.by_device[0], stage_of, plan["system"], on)
        found |= {s: row for s, row in rows.items() if plan["stages"][s][DEGREE] == degree}
    return dict(sorted(found.items()))


def _considered_row(allowed: Sequence[Sequence[int]], degrees: Sequence[int]) -> Check:
    """Say which degrees of devices were considered: degree 1 has to be, others a model need not be divisible by."""
    left_out = sorted({degree for row in allowed for degree in row} - set(degrees))
    if 1 in left_out:
        return Check(DEGREES, False, "degree 1 is left out, and devices have it")
    said = f"; not {', '.join(map(str, left_out))}" if left_out else ""
    return fact(DEGREES, f"{', '.join(map(str, degrees))}{said}")


def _embedded_row(
    allowed: Sequence[Sequence[int]],
    degrees: Sequence[int],
    own: Mapping[int, PlacedGraph],
    given: Mapping[int, PlacedGraph],
) -> Check:
    """Compare the degrees and their graphs with those of the model."""
    considered = _considered_row(allowed, degrees)
    if considered.passed is False:
        return considered
    name = DEGREES
    above = [degree for degree in degrees if degree > 1]
    if above != sorted(given):
        said = ", ".join(map(str, above)) or "none"
        return Check(
            name, False, f"the plan has {said} above 1, the model {', '.join(map(str, sorted(given))) or 'none'}"
        )
    for degree, graph in own.items():
        if degree not in given:
            return Check(name, False, f"the plan embeds a graph of degree {degree}, which the model has not")
        pairs = zip(graph.by_device, given[degree].by_device, strict=True)
        for mine, due in {(id(one), id(other)): (one, other) for one, other in pairs}.values():
            difference = first_difference(mine, due)
            if difference is not None:
                return Check(name, False, f"degree {degree}: {difference}")
    return Check(name, True, f"{counted(len(degrees), 'degree')}, as the model may be divided")
