"""``verify --deep``: the exhaustive search behind a lower bound, run again, and what is seen of it meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mtpp.cli.console import Console, ProgressBar
    from mtpp.verify import Report
    from mtpp.verify_claim import BoundClaim


class SearchProgress:
    """Shows how far a search has come, of the number of downsets that its proof states."""

    def __init__(self, console: Console, bar: ProgressBar, downsets: int) -> None:
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


def recheck(report: Report, claim: BoundClaim, method: str, console: Console) -> Report:
    """Run the search behind the bound of a document that passed again, and add the outcome to its report.

    Raises
    ------
    InputError
        If the proof is malformed.
    """
    from mtpp.cli.console import ProgressBar
    from mtpp.solvers.recheck import check_downset_proof, recheck_downset
    from mtpp.verify_claim import merges_hold

    if method != "downset":
        return report.with_deep_recheck(False, f"no search is known by the name of {method[:60]!r}")
    proof = claim.proof
    check_downset_proof(proof, claim.path)
    merged = claim.merged()
    assert not isinstance(merged, str)  # the report passed
    console.note("running the search again")
    with ProgressBar(console) as bar:
        progress = SearchProgress(console, bar, proof["downsets"])
        passed, detail = recheck_downset(merged, claim.graph, claim.system, claim.k, claim.value, proof, progress)
    detail = f"{method}: {merges_hold(len(proof['merges']))}; {detail}"
    if passed and claim.together:
        detail += "; among partitions that keep the groups together"
    return report.with_deep_recheck(passed, detail)
