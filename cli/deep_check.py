"""The exhaustive search behind a lower bound, run again for ``verify``, and what is seen of it meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mtpp.api.observer import Steps
    from mtpp.checker.claim import BoundClaim
    from mtpp.checker.merged import MergedGraph
    from mtpp.checker.report import Outcome, Search
    from mtpp.cli.terminal.console import Console


class SearchProgress:
    """Shows how far a search has come, of the number of downsets that its proof states."""

    def __init__(self, console: Console, bar: Steps, downsets: int) -> None:
        self._console = console
        self._bar = bar
        self._downsets = downsets
        self._next_note = 1

    def compiling(self) -> None:
        """Say that there is a wait, as kernels are compiled."""
        self._console.say("compiling (once) …")

    def searched(self, downsets: int) -> None:
        """Show that so many downsets have been gone on from; each time that they are twice as many, as a note too."""
        if downsets >= self._next_note:
            self._console.note(f"searched again: {downsets:,} of {self._downsets:,} downsets")
            self._next_note = 2 * downsets
        self._bar.show("downsets searched again", min(downsets, self._downsets), self._downsets)


def downset_search(console: Console, memory_bytes: int | None = None) -> Search:
    """Return what runs the search behind a bound again, as :func:`mtpp.checker.plan.verify_plan` takes it.

    Parameters
    ----------
    memory_bytes
        That it may take; None: :data:`mtpp.solvers.recheck.downset.MEMORY_BYTES`.
    """

    def search(claim: BoundClaim, merged: MergedGraph) -> Outcome:
        from mtpp.host.overrun import run_beside
        from mtpp.solvers.recheck.downset import MEMORY_BYTES, recheck_downset

        limit = MEMORY_BYTES if memory_bytes is None else memory_bytes
        console.note("running the search again")
        with console.steps() as bar:
            progress = SearchProgress(console, bar, claim.proof["downsets"])
            asked = (claim.graph, claim.system, claim.k, claim.value, claim.proof)
            return run_beside(lambda: recheck_downset(merged, *asked, progress, limit))

    return search
