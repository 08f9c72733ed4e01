"""Time to the first token of a plan for both phases: its stages, working on prompts before they decode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mtpp.checker.graph import first_difference
from mtpp.checker.intervals.degree_graphs import (
    DegreesDue,
    embedded_graphs,
    figures_at_degrees,
    given_graphs,
    names_in_order,
)
from mtpp.checker.machine import PlacedGraph
from mtpp.checker.report import Check
from mtpp.checker.stages import StageFigures
from mtpp.document_shape import refuse

FIRST_TOKEN = "first_token"
"""Key of plans."""

ROW = "first token"

PromptsDue = DegreesDue
"""For each degree, 1 among them, the graph of a prefill, and the times of its ops on each device."""


@dataclass(frozen=True)
class Prompts:
    """Graphs of a prefill by degree, each on the machine of a plan.

    Attributes
    ----------
    placed
        Of each degree that a stage could have had.
    limit
        Ticks that all stages together may take; None: any.
    fault
        First thing in which the embedded graphs differ from the model's; None where nothing does.
    """

    placed: Mapping[int, PlacedGraph]
    limit: int | None
    fault: str | None

    @classmethod
    def of(cls, plan: Mapping[str, Any], whole: PlacedGraph, due: PromptsDue | None) -> Prompts | None:
        """Return the graphs of a plan for both phases; None of other plans.

        Parameters
        ----------
        whole
            The graph of decoding at degree 1.
        due
            Of the model, where it is at hand.

        Raises
        ------
        InputError
            If a graph is missing or malformed, or has other ops than the plan's.
        """
        if FIRST_TOKEN not in plan:
            return None
        own = embedded_graphs(plan, plan[FIRST_TOKEN].get("graphs", {}), (FIRST_TOKEN, "graphs"), 1)
        given = given_graphs(plan, due or {})
        found, fault = {}, None
        for degree in plan["degrees"]:
            graph = given.get(degree) or own.get(degree)
            if graph is None:
                at = (FIRST_TOKEN, "graphs")
                refuse(f"the plan embeds no graph of prompts at degree {degree}", at, "give the model with ‹model›")
            if names_in_order(graph) != names_in_order(whole):
                refuse(f"prompts at degree {degree} have other ops than decoding", (FIRST_TOKEN,))
            found[degree] = graph
            if due is not None and degree not in given:
                fault = fault or f"the model has no prompts at degree {degree}"
            if degree in own and degree in given:
                devices = plan["machine"]["devices"]
                places = [i for i, one in enumerate(devices) if degree in one.get("tensor_parallel", [1])]
                pairs = [(own[degree].by_device[i], given[degree].by_device[i]) for i in places]
                differences = (first_difference(mine, other) for mine, other in pairs)
                difference = next((text for text in differences if text is not None), None)
                fault = fault or (None if difference is None else f"degree {degree}: {difference}")
        return cls(found, plan[FIRST_TOKEN].get("max_latency"), fault)

    @property
    def words(self) -> str:
        """The limit in words; nothing where there is none."""
        return "" if self.limit is None else f", whose first token takes at most {self.limit} ticks,"

    def row(self, plan: Mapping[str, Any], stage_of: list[int]) -> Check:
        """Check the stages of a plan at prefill: times, memory, and the limit on all together."""
        stated = plan[FIRST_TOKEN]
        fault = self.fault or _fault_in_sizes(plan)
        if fault is not None:
            return Check(ROW, False, fault)
        if len(stated["stages"]) != len(plan["stages"]):
            return Check(ROW, False, f"{len(stated['stages'])} stages, the plan has {len(plan['stages'])}")
        figures = figures_at_degrees(self.placed, plan, stage_of)
        for s, row in enumerate(stated["stages"]):
            mine = figures.get(s, StageFigures())
            for key, due in (("cost", mine.cost), ("peak_bytes", mine.peak_bytes)):
                if row[key] != due:
                    return Check(ROW, False, f"stage {s}: the plan says {key} {row[key]}, it is {due}")
            limit = plan["machine"]["devices"][plan["stages"][s]["device"]["index"]]["stage_memory_bytes"]
            held = mine.param_bytes + mine.state_bytes + mine.peak_bytes
            if limit is not None and held > limit:
                return Check(ROW, False, f"stage {s} needs {held} bytes, the limit of its device is {limit}")
        latency = sum(row.cost for row in figures.values())
        if stated["latency"] != latency:
            return Check(ROW, False, f"the plan says {stated['latency']} ticks, it is {latency}")
        if self.limit is not None and latency > self.limit:
            return Check(ROW, False, f"it takes {latency} ticks, more than the {self.limit} allowed")
        within = "" if self.limit is None else f", {self.limit} allowed"
        return Check(ROW, True, f"{latency} ticks{within}; no stage needs more than the limit of its device")


def _fault_in_sizes(plan: Mapping[str, Any]) -> str | None:
    """Return the first size in which prompts are not those of the contexts that the plan decodes at."""
    dims, own = plan["model"]["dims"], plan[FIRST_TOKEN]["dims"]
    due = {("prompt" if key == "context" else key): size for key, size in dims.items()}
    for key in sorted({*due, *own}):
        if due.get(key) != own.get(key):
            return f"its {key} is {own.get(key)}, it has to be {due.get(key)}"
    return None
