"""Tables of certificates, re-derived row by row in plain Python integers.

Part of the independent verifier (:mod:`mtpp.verify`). A row with an upper side is checked like a plan, a row of bounds
alone for its bound. Of the bounds that a row lists beside its best one, no proof is kept: they are only held against
the bottleneck, which none may be above.
"""

from __future__ import annotations

from typing import Any

from mtpp.verify_checks import (
    check_assignment,
    check_bound,
    check_costs,
    check_counts,
    check_edges,
    check_file,
    check_gap,
    check_memory,
    check_model_ticks,
    check_together,
    compare,
    model_graph,
    quotient,
    refuse_impossible_system,
)
from mtpp.verify_claim import BoundClaim
from mtpp.verify_document import (
    TIERS,
    Path,
    Rule,
    any_whole,
    anything,
    array,
    choice,
    flag,
    mapping,
    nullable,
    number,
    record,
    refuse,
    sha256,
    system,
    tagged,
    text,
    time_unit,
    whole,
)
from mtpp.verify_graph import TickGraph
from mtpp.verify_means import check_summary
from mtpp.verify_report import BOUND_CHECK, NO_TIER, Check, Report
from mtpp.verify_stages import stage_figures

FORMAT = "mtpp-certificates"
_ROW = "the row"

_UPPER_SIDE: dict[str, Rule] = {
    "upper": whole(),
    "upper_algorithm": text,
    "ratio": nullable(number),
    "optimal": flag,
    "assignment": mapping(any_whole),
}

_row = record(
    {
        "model": text,
        "path": text,
        "sha256": sha256,
        "dims": mapping(whole(1)),
        "ops": whole(),
        "tensors": whole(),
        "time_unit": time_unit,
        "ticks_per_unit": whole(1),
        "system": system,
        "k": whole(1),
        "lower": whole(),
        "lower_method": text,
        "tier": choice(*TIERS),
        "lower_proof": anything,
        "bounds": mapping(nullable(whole())),
        "solved": array(text),
        "seconds": mapping(number),
        "stopped": text,
    },
    {**_UPPER_SIDE, "together": array(array(text)), "costs_sha256": sha256},
)


def _whole_row(value: Any, path: Path) -> None:
    _row(value, path)
    present = [key for key in _UPPER_SIDE if key in value]
    if present and len(present) < len(_UPPER_SIDE):
        missing = next(key for key in _UPPER_SIDE if key not in value)
        refuse("missing key", (*path, missing), f"a row with {present[0]} needs all of {', '.join(_UPPER_SIDE)}")


check_table = tagged(FORMAT, {"rows": array(_whole_row), "summary": check_summary})
"""Rule of a table of certificates; the content of proofs is not looked at."""


def row_path(index: int) -> Path:
    """Return where a row stands in its table."""
    return ("rows", index)


def row_claim(row: dict[str, Any], index: int, graph: Any) -> BoundClaim:
    """Return what a row, whose model is an mtpp-graph document, claims of its lower bound."""
    return _claim(row, index, model_graph(graph, row["system"], row["k"]))


def verify_row(
    row: dict[str, Any], index: int, graph: Any, graph_sha256: str, costs_sha256: str | None = None
) -> Report:
    """Re-derive what a row of a table says and compare.

    Parameters
    ----------
    row
        Of a table that :data:`check_table` took.
    index
        Its place there, for messages.
    graph
        The model as an mtpp-graph document (numbers int, Decimal or Fraction).
    graph_sha256
        Of the file that it was read from.
    costs_sha256
        Of the file with measured costs that it was given, if any.

    Raises
    ------
    InputError
        If the proof or the graph is malformed; *source* is ``model`` for the latter.
    """
    subject = model_graph(graph, row["system"], row["k"])
    refuse_impossible_system(row["system"], subject, (*row_path(index), "system"))
    checks = [
        check_file(row["sha256"], graph_sha256, _ROW),
        *check_costs(row.get("costs_sha256"), costs_sha256, _ROW),
        check_counts(row, subject, _ROW),
        check_model_ticks(row["time_unit"], row["ticks_per_unit"], subject, _ROW),
    ]
    bottleneck = None
    if "upper" in row:
        partition, bottleneck = _check_partition(row, subject)
        checks += partition
    bound, tier = check_bound(_claim(row, index, subject), row["lower_method"], row["tier"])
    checks.append(bound)
    if "upper" in row:
        reached = row["upper"] if bottleneck is None else bottleneck
        checks += check_gap(reached, row["lower"], row["ratio"], row["optimal"], _ROW)
        checks.append(_check_other_bounds(row["bounds"], reached))
    ratio = None if bottleneck is None or tier == NO_TIER else quotient(bottleneck, row["lower"])
    return Report(tuple(checks), tier, ratio, bound_rechecked=bound.passed is True)


def missing_model(row: dict[str, Any]) -> Report:
    """Return the report on a row whose model was not found."""
    lost = Check("model file", False, f"no file with SHA-256 {row['sha256']} among the models, and no {row['path']!r}")
    unchecked = Check(BOUND_CHECK, None, "not checked: no model")
    return Report((lost, unchecked), NO_TIER, None, bound_rechecked=False)


def _claim(row: dict[str, Any], index: int, graph: TickGraph) -> BoundClaim:
    path = (*row_path(index), "lower_proof")
    return BoundClaim(graph, row["system"], row["k"], row.get("together", []), row["lower"], row["lower_proof"], path)


def _check_partition(row: dict[str, Any], graph: TickGraph) -> tuple[list[Check], int | None]:
    """Return the checks of a row's assignment, and its bottleneck if that could be derived."""
    assigned = check_assignment(row["assignment"], row["k"], graph)
    if not assigned.passed:
        return [assigned], None
    stage_of = [row["assignment"][name] for name in graph.op_names]
    stages = stage_figures(graph, stage_of, row["system"])
    bottleneck = max(stage.cost for stage in stages.values())
    checks = [
        assigned,
        check_edges(graph, stage_of),
        check_together(row.get("together", []), row["assignment"]),
        check_memory(stages, row["system"].get("stage_memory_bytes")),
        compare("bottleneck", row["upper"], bottleneck, "ticks", _ROW),
    ]
    return checks, bottleneck


def _check_other_bounds(bounds: dict[str, int | None], bottleneck: int) -> Check:
    name = "bounds tried"
    for method, value in bounds.items():
        if value is not None and value > bottleneck:
            return Check(name, False, f"{method}: {value} ticks are above the bottleneck {bottleneck}")
    return Check(name, True, f"none of {len(bounds)} is above the bottleneck; their proofs are not in the table")
