"""Result of planning a stage graph, as tables and documents show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mtpp.formats.io.source import Source
    from mtpp.host.stop_reason import StopReason
    from mtpp.training.graph_plan import GraphPlan, NoGraphPlan
    from mtpp.training.graph_problem import GraphProblem


@dataclass(frozen=True)
class PlannedGraph:
    """A model as read, without the bytes of its file, with its plan, or that there is none.

    Attributes
    ----------
    elapsed_s
        Seconds of planning.
    """

    source: Source
    result: GraphPlan | NoGraphPlan
    elapsed_s: float

    @property
    def problem(self) -> GraphProblem:
        """What was to be planned."""
        return self.result.problem

    @property
    def plan(self) -> GraphPlan | None:
        """The plan, None if there is none."""
        from mtpp.training.graph_plan import GraphPlan

        return self.result if isinstance(self.result, GraphPlan) else None

    @property
    def no_plan(self) -> NoGraphPlan | None:
        """What is known where there is no plan."""
        from mtpp.training.graph_plan import NoGraphPlan

        return self.result if isinstance(self.result, NoGraphPlan) else None

    @property
    def stopped(self) -> StopReason:
        """Reason that planning ended."""
        return self.result.stopped

    def document(self) -> dict[str, Any]:
        """Return the ``mtpp-training-plan`` document, version 2."""
        from mtpp.formats.results.graph_plan import graph_plan_document, no_graph_plan_document
        from mtpp.views.training.graph_plan_texts import no_plan_reason

        sha256, none = self.source.sha256, self.no_plan
        if none is not None:
            reason = no_plan_reason(none)
            return no_graph_plan_document(none, reason=reason, sha256=sha256, elapsed_s=self.elapsed_s)
        assert self.plan is not None
        return graph_plan_document(self.plan, sha256=sha256, elapsed_s=self.elapsed_s)
