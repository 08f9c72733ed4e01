"""The ladder of one cell: what becomes of the strong bounds that are worked at side by side."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from graph_strategies import LINK, random_graph

from mtpp.certificate import LowerBound
from mtpp.errors import InconsistentBound
from mtpp.instance import Instance
from mtpp.solvers import certifying
from mtpp.solvers.bounding import BoundLimits, BoundResult
from mtpp.solvers.certifying import STRONG, CertifyLimits, certify


def test_a_bound_that_fails_ends_the_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A contradiction is reported at once, not when the time of the cell is up."""
    stops: list[str | None] = []

    def absurd(instance: Instance, limits: BoundLimits) -> BoundResult:
        return BoundResult(LowerBound(limits.upper + 1, "exact-mip", "solver", {}), solved=True)

    def endless(instance: Instance, limits: BoundLimits) -> BoundResult:
        while not limits.ended():
            pass
        stops.append(limits.stop)
        return BoundResult(None, solved=False)

    bounds = {"configuration": endless, "exact-mip": absurd}
    monkeypatch.setattr(
        certifying, "bound_entry", lambda name: SimpleNamespace(load=lambda: bounds[name], tier="solver")
    )
    instance = Instance.build(random_graph(1, 8), LINK, 3)
    with pytest.raises(InconsistentBound):
        certify(instance, CertifyLimits(10.0, bounds=STRONG, algorithm="random"))
    assert stops == ["interrupted"]
