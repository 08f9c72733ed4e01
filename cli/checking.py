"""What ``verify`` reads and shows around the independent verifier, for a plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.cli.console import Console
    from mtpp.formats.measured_costs import MeasuredCosts
    from mtpp.formats.source import Source
    from mtpp.verify import Report

MARKS = {True: "ok", False: "WRONG", None: "–"}


def check_plan_document(
    plan: Any,
    source: Source,
    model_path: str | None,
    limit: int,
    reading: Mapping[str, Any],
    deep: Console | None = None,
    costs_path: str | None = None,
) -> Report:
    """Read the model if one is given, and verify the plan that *source* was.

    Parameters
    ----------
    limit
        On the bytes of the model.
    reading
        How to read it; see :func:`mtpp.cli.options.reading_of`.
    deep
        With it, the exhaustive search behind a bound runs again if all else is true; what it does is said there.
    costs_path
        File with the measured costs that the plan was made with.
    """
    from mtpp.formats.source import read_source
    from mtpp.verify import plan_claim, verify_plan
    from mtpp.verify_document import check_plan

    try:
        check_plan(plan, ())
        graph, digest = None, None
        costs = costs_for(costs_path, limit)
        if model_path is not None:
            refuse_missing_costs(plan["model"], costs)
            model = read_source(model_path, max_bytes=limit)
            graph = model_document(model, plan["model"]["dims"], plan["system"], reading, costs)
            digest = model.sha256
        elif costs is not None:
            raise InputError("go with a model", source="--costs", remedy="give it with --model")
        report = verify_plan(
            plan,
            graph,
            graph_sha256=digest,
            costs_sha256=None if costs is None else costs.sha256,
            model_given=graph is not None,
        )
        if deep is not None and report.passed and report.tier == "enumerated":
            from mtpp.cli.deep_check import recheck

            return recheck(report, plan_claim(plan, graph), plan["lower_bound"]["method"], deep)
        return report
    except InputError as error:
        where = error.source or source.display
        raise InputError(error.problem, source=where, where=error.where, remedy=error.remedy) from None


def costs_for(path: str | None, limit: int) -> MeasuredCosts | None:
    """Read the file with measured costs that ``--costs`` names."""
    from mtpp.formats.measured_costs import read_costs
    from mtpp.formats.source import read_source

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
    from mtpp.formats.measured_costs import with_costs
    from mtpp.formats.native import to_document
    from mtpp.formats.recognise import read_graph
    from mtpp.system import System

    graph = read_graph(source, dims=dims, system=System.from_document(system), **reading)
    return to_document(graph if costs is None else with_costs(graph, costs))


def report_text(report: Report, output_format: str) -> str:
    """Return the report on a plan as ``table`` or ``json``."""
    if output_format == "json":
        from mtpp.formats.json_text import dump_json

        return dump_json(report.to_document())
    width = max(len(check.name) for check in report.checks)
    lines = [f"{MARKS[check.passed]:<6} {check.name:<{width}}  {check.detail}" for check in report.checks]
    verdict = "valid" if report.passed else "INVALID"
    return "\n".join([*lines, "", f"{verdict}; {report.subject} is of tier {report.tier}"])


def unmet_tier(report: Report, required: str) -> str | None:
    """Say why a lower bound is trusted less than is *required*; None if it is not."""
    from mtpp.verify import meets_tier

    if meets_tier(report, required):
        return None
    if report.tier == required:
        return f"the bound, of tier {report.tier}, was not checked again: use --deep"
    return f"the bound is of tier {report.tier}"
