"""Result of planning split points and a schedule, as tables and documents show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mtpp.formats.io.source import Source
    from mtpp.host.stop_reason import StopReason
    from mtpp.training.pfeife.plan import NoSplitPlan, SplitPlan
    from mtpp.training.pfeife.problem import SplitProblem


@dataclass(frozen=True)
class PlannedSplit:
    """A model as read, without the bytes of its file, with its plan, or that there is none.

    Attributes
    ----------
    about
        What a document says of the model.
    elapsed_s
        Seconds of planning.
    """

    source: Source
    about: Mapping[str, Any]
    result: SplitPlan | NoSplitPlan
    elapsed_s: float

    @property
    def problem(self) -> SplitProblem:
        """What was to be planned; its ops in the order that was found, where that was searched."""
        return self.result.problem

    @property
    def plan(self) -> SplitPlan | None:
        """The plan, None if there is none."""
        from mtpp.training.pfeife.plan import SplitPlan

        return self.result if isinstance(self.result, SplitPlan) else None

    @property
    def no_plan(self) -> NoSplitPlan | None:
        """What is known where there is no plan."""
        from mtpp.training.pfeife.plan import NoSplitPlan

        return self.result if isinstance(self.result, NoSplitPlan) else None

    @property
    def stopped(self) -> StopReason:
        """Reason that planning ended."""
        return self.result.stopped

    def document(self) -> dict[str, Any]:
        """Return the ``mtpp-training-plan`` document, version 2."""
        from mtpp.formats.results.split_plan import no_split_plan_document, split_plan_document
        from mtpp.views.training.split_plan_texts import no_plan_reason

        none, about = self.no_plan, self.about
        if none is not None:
            return no_split_plan_document(none, reason=no_plan_reason(none), model=about, elapsed_s=self.elapsed_s)
        assert self.plan is not None
        return split_plan_document(self.plan, model=about, elapsed_s=self.elapsed_s)
