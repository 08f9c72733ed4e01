"""Delivery of a plan: its table or another form on standard output, and its JSON in a file if there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtpp.cli.terminal.delivery import deliver_texts

if TYPE_CHECKING:
    from fractions import Fraction

    from mtpp.api.evaluate import ComparedStages
    from mtpp.api.partition_plan import PartitionPlan
    from mtpp.cli.terminal.console import Console

_LISTED = 8


def deliver_plan(
    plan: PartitionPlan,
    console: Console,
    output: str | None,
    output_format: str,
    *,
    embed: bool,
    instead: ComparedStages | None = None,
) -> None:
    """Write and print a plan, and warn of what its reader should know; *instead* is printed in its place."""
    from mtpp.host.deadline import process_age_s

    def json_text() -> str:
        return plan.json_text(elapsed_s=process_age_s(), embed=embed)

    def shown() -> str:
        if instead is not None:
            return instead.text(output_format)
        return json_text() if output_format == "json" else plan.text(output_format)

    empty = plan.empty_stages
    if empty:
        reason = f"k = {plan.k} is more than the {plan.op_count} ops: " if plan.k > plan.op_count else ""
        listed = ", ".join(map(str, empty[:_LISTED])) + (", …" if len(empty) > _LISTED else "")
        console.warn(f"{reason}{len(empty)} of {plan.k} stages stay empty: {listed}")
    deliver_texts(output, json_text, shown)


def unmet_requirements(plan: PartitionPlan, ratio: Fraction | None, *, optimal: bool) -> str | None:
    """Return what a requirement of the user's lacks, or None."""
    if optimal and not plan.optimal:
        known = plan.ratio is not None and plan.lower_bound.is_proof
        proven = f"the proven ratio is {plan.ratio:.6g}" if known else "no ratio is proven"
        return f"--require-optimal: not proven optimal; {proven}"
    required = None if ratio is None else f"--require-ratio {float(ratio):g}"
    if ratio is not None and not plan.lower_bound.is_proof:
        return f"{required}: no ratio is proven, the bound is of tier {plan.lower_bound.tier}"
    allowed = None if ratio is None else ratio * plan.lower_bound.value
    if allowed is not None and (plan.ratio is None or plan.bottleneck > allowed):
        proven = "none" if plan.ratio is None else f"{plan.ratio:.6g}"
        if plan.ratio is not None and plan.ratio <= 1:
            proven = "above 1"
        return f"{required}: the proven ratio is {proven}"
    return None
