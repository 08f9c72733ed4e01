"""``verify --deep`` of training plans: the search behind one, run again, and what is seen of it meanwhile."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mtpp.cli.console import Console, ProgressBar
    from mtpp.training_model import TrainingModel
    from mtpp.verify import Report


class PipelineProgress:
    """Shows how far a search over downsets has come."""

    def __init__(self, console: Console, bar: ProgressBar) -> None:
        self._console = console
        self._bar = bar
        self._tenth = -1

    def compiling(self) -> None:
        """Say that there is a wait, as kernels are compiled."""
        self._console.say("compiling (once) …")

    def searched(self, done: int, downsets: int) -> None:
        """Show that so many downsets have been gone on from; at every tenth of them as a note too."""
        if done * 10 // downsets != self._tenth:
            self._tenth = done * 10 // downsets
            self._console.note(f"searched again: {done:,} of {downsets:,} downsets")
        self._bar.show("downsets searched again", done, downsets)


def recheck_plan(report: Report, plan: dict[str, Any], model: TrainingModel, console: Console) -> Report:
    """Run the search behind a document that passed again, and put the outcome into its report."""
    from mtpp.cli.console import ProgressBar
    from mtpp.solvers.recheck_training import recheck_bound, recheck_no_plan
    from mtpp.verify_report import NO_TIER
    from mtpp.verify_training import training_claim
    from mtpp.verify_training_model import training_model_in_ticks

    console.note("running the search again")
    with ProgressBar(console) as bar:
        progress = PipelineProgress(console, bar)
        if plan["feasible"]:
            found = [recheck_bound(training_claim(plan, model), plan["lower_bound"]["method"], progress)]
        else:
            ticks = training_model_in_ticks(model, plan["system"]["bandwidth_bytes_per_s"])
            found = recheck_no_plan(plan, ticks, progress)
    outcome = {check.name: check for check in found}
    checks = tuple(outcome.get(check.name, check) for check in report.checks)
    if any(check.passed is False for check in found):
        return replace(report, checks=checks, tier=NO_TIER, ratio=None, bound_rechecked=False)
    rechecked = report.tier != NO_TIER and all(check.passed for check in found)
    return replace(report, checks=checks, bound_rechecked=report.bound_rechecked or rechecked)
