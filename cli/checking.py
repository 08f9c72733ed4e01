"""What ``verify`` reads and shows around the independent verifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.cli.console import Console
    from mtpp.verify import Report


def check_plan_file(plan_path: str, model_path: str | None, max_input_size: str, deep: Console | None = None) -> Report:
    """Read a plan, and the model if one is given, and verify.

    With *deep*, the exhaustive search behind a bound runs again if all else is true; what it does is said there.
    """
    from mtpp.cli.options import input_limit
    from mtpp.formats.plan import read_plan
    from mtpp.formats.source import read_source
    from mtpp.verify import plan_claim, verify_plan
    from mtpp.verify_document import check_plan

    limit = input_limit(max_input_size)
    source = read_source(plan_path, max_bytes=limit)
    plan = read_plan(source.data, source.display)
    try:
        check_plan(plan, ())
        graph, sha256 = (None, None) if model_path is None else _model_document(plan, model_path, limit)
        report = verify_plan(plan, graph, graph_sha256=sha256, model_given=graph is not None)
        if deep is not None and report.passed and report.tier == "enumerated":
            from mtpp.cli.deep_check import recheck

            return recheck(report, plan_claim(plan, graph), plan["lower_bound"]["method"], deep)
        return report
    except InputError as error:
        where = error.source or source.display
        raise InputError(error.problem, source=where, where=error.where, remedy=error.remedy) from None


def _model_document(plan: dict[str, Any], path: str, limit: int) -> tuple[dict[str, Any], str]:
    """Return the model as a graph document, read with the dimensions and the system that the plan states."""
    from mtpp.formats.native import to_document
    from mtpp.formats.recognise import read_graph
    from mtpp.formats.source import read_source
    from mtpp.system import System

    source = read_source(path, max_bytes=limit)
    graph = read_graph(source, dims=plan["model"]["dims"], system=System.from_document(plan["system"]))
    return to_document(graph), source.sha256


def report_text(report: Report, output_format: str) -> str:
    """Return a verification report as ``table`` or ``json``."""
    if output_format == "json":
        from mtpp.formats.json_text import dump_json

        return dump_json(report.to_document())
    mark = {True: "ok", False: "WRONG", None: "–"}
    width = max(len(check.name) for check in report.checks)
    lines = [f"{mark[check.passed]:<6} {check.name:<{width}}  {check.detail}" for check in report.checks]
    verdict = "valid" if report.passed else "INVALID"
    return "\n".join([*lines, "", f"{verdict}; the lower bound is of tier {report.tier}"])
