"""What ``verify`` reads and shows around the independent verifier, for a plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError
from mtpp.terminal_safe import visible

if TYPE_CHECKING:
    from mtpp.checker.plan import Report
    from mtpp.cli.options.verify_terms import Terms
    from mtpp.formats.io.source import Source
    from mtpp.formats.measured.measured_costs import MeasuredCosts

MARKS = {"ok": "ok", "false": "false", "unchecked": "unchecked", None: "–"}
"""Beginning of a row of a report, by its verdict."""


def check_plan_document(plan: Any, source: Source, model_path: str | None, terms: Terms) -> Report:
    """Read the model if one is given, and verify the plan that *source* was."""
    from mtpp.checker.document import check_plan
    from mtpp.checker.plan import verify_plan
    from mtpp.cli.deep_check import downset_search
    from mtpp.formats.io.source import read_source
    from mtpp.host.alarm import TimeIsUp

    try:
        check_plan(plan, ())
        graph, digest = None, None
        costs = costs_for(terms.costs_path, terms.limit)
        if model_path is not None:
            refuse_missing_costs(plan["model"], costs)
            model = read_source(model_path, max_bytes=terms.limit)
            graph = model_document(model, plan["model"]["dims"], plan["system"], terms.reading, costs)
            digest = model.sha256
        elif costs is not None:
            raise InputError("go with a model", source="--costs", remedy="give it with --model")
        return verify_plan(
            plan,
            graph,
            graph_sha256=digest,
            costs_sha256=None if costs is None else costs.sha256,
            model_given=graph is not None,
            search=None if terms.shallow else downset_search(terms.console),
            system_due=terms.system_due,
            dims_due=terms.dims_due,
            ended_by=(TimeIsUp,),
        )
    except InputError as error:
        where = model_path if error.source == "model" else error.source or source.display
        raise InputError(error.problem, source=where, where=error.where, remedy=error.remedy) from None


def costs_for(path: str | None, limit: int) -> MeasuredCosts | None:
    """Read the file with measured costs that ``--costs`` names."""
    from mtpp.formats.io.source import read_source
    from mtpp.formats.measured.measured_costs import read_costs

    return None if path is None else read_costs(read_source(path, max_bytes=limit))


def refuse_missing_costs(stated: Mapping[str, Any], costs: MeasuredCosts | None) -> None:
    """Raise InputError if a document was made with measured costs, and there are none: nothing could be compared."""
    if "costs_sha256" in stated and costs is None:
        raise InputError(
            "was made with measured costs", remedy=f"give them with --costs (SHA-256 {stated['costs_sha256']})"
        )


def model_document(
    source: Source,
    dims: dict[str, int],
    system: dict[str, Any],
    reading: Mapping[str, Any],
    costs: MeasuredCosts | None = None,
) -> dict[str, Any]:
    """Return a model as a graph document, read with the dimensions and the system that a document states."""
    from mtpp.formats.graphs.native import to_document
    from mtpp.formats.graphs.recognise import read_graph
    from mtpp.formats.measured.measured_costs import with_costs
    from mtpp.inference.system import System

    graph = read_graph(source, dims=dims, system=System.from_document(system), **reading)
    return to_document(graph if costs is None else with_costs(graph, costs))


def report_text(report: Report, output_format: str) -> str:
    """Return the report on a plan as ``table`` or ``json``."""
    if output_format == "json":
        from mtpp.formats.io.json_text import dump_json

        return dump_json(report.to_document())
    marks = max(len(MARKS[check.verdict]) for check in report.checks)
    names = max(len(check.name) for check in report.checks)
    lines = [f"{MARKS[check.verdict]:<{marks}}  {check.name:<{names}}  {check.detail}" for check in report.checks]
    return "\n".join(map(visible, [*lines, "", report.sentence()]))  # no name makes a row of its own


def unmet_tier(report: Report, required: str) -> str | None:
    """Say why a lower bound is trusted less than is *required*; None if it is not."""
    from mtpp.checker.plan import meets_tier

    if meets_tier(report, required):
        return None
    if report.tier == "none":
        return "the bound is not proven"
    checked = "" if report.bound_rechecked else ", and was not checked"
    return f"the bound is of tier {report.tier}{checked}"
