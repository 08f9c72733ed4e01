"""The exhaustive searches behind training plans, run again for ``verify``, and what is seen of them meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mtpp.api.observer import Steps
    from mtpp.checker.report import Check
    from mtpp.checker.training.bounds import TrainingClaim
    from mtpp.checker.training.model import TickModel
    from mtpp.checker.training.plan import TrainingSearches
    from mtpp.cli.terminal.console import Console


class PipelineProgress:
    """Shows how far a search over downsets has come."""

    def __init__(self, console: Console, bar: Steps) -> None:
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


def training_searches(console: Console) -> TrainingSearches:
    """Return what runs searches again, as :func:`mtpp.checker.training.plan.verify_training_plan` takes it."""
    from mtpp.checker.training.plan import TrainingSearches
    from mtpp.host.overrun import run_beside
    from mtpp.solvers.recheck.training import recheck_bound, recheck_no_plan

    def bound(claim: TrainingClaim, method: str) -> Check:
        with _progress(console) as progress:
            return run_beside(lambda: recheck_bound(claim, method, progress))

    def no_plan(plan: dict[str, Any], model: TickModel) -> list[Check]:
        with _progress(console) as progress:
            return run_beside(lambda: recheck_no_plan(plan, model, progress))

    return TrainingSearches(bound, no_plan)


@contextmanager
def _progress(console: Console) -> Iterator[PipelineProgress]:

    console.note("running the search again")
    with console.steps() as bar:
        yield PipelineProgress(console, bar)
