"""Claims of bounds of plans by ``graphpipe``, as the verifier makes them of a document."""

from __future__ import annotations

from typing import Any

from graph_plan_documents import as_training_model, setting_document

from mtpp.checker.training.graphpipe.bounds import GraphClaim, Measure
from mtpp.checker.training.graphpipe.costs import graph_model
from mtpp.checker.training.graphpipe.setting import Setting


def bound_claim(
    model: dict[str, Any],
    asked: dict[str, Any],
    method: str,
    value: int,
    measure: Measure = "iteration",
    left_out: frozenset[int] = frozenset(),
) -> GraphClaim:
    """Return the claim that no plan of a model document is below *value*."""
    setting = Setting.of(setting_document(model, asked))
    return GraphClaim(graph_model(as_training_model(model), setting), setting, measure, value, method, left_out)
