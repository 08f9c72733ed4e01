"""Delivery of a plan's report, where a command that makes a plan is asked for one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model
    from mtpp.api.partition_plan import PartitionPlan
    from mtpp.cli.terminal.console import Console


def check_page(path: str) -> None:
    """Check that a report can be made and written to *path*, before the work.

    Raises
    ------
    InputError
        If it cannot.
    """
    from mtpp.api.reporting.report import check_report
    from mtpp.errors import InputError

    if path == "-":
        problem = "goes to a file: standard output has the plan"
        raise InputError(problem, parameter="report", remedy="name it report.html")
    check_report(path, "report")


def deliver_page(plan: PartitionPlan, model: Model, path: str, console: Console, *, shallow: bool) -> None:
    """Verify a plan and write its report; *shallow* leaves exhaustive searches out."""
    from mtpp.api.options.verifying import Verifying
    from mtpp.api.reporting.report import result_page
    from mtpp.api.verify import request_of
    from mtpp.cli.flags import flag_of

    request = request_of(plan, model, Verifying(shallow=shallow))
    made = result_page(request, console, named=flag_of)
    made.save(path)
    console.say(f"{path}: {made.said}")
