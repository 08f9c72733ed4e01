"""Delivery of a plan: its table or another form on standard output, and its JSON in a file if there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtpp.cli.terminal.delivery import deliver

if TYPE_CHECKING:
    from mtpp.api.partition_plan import PartitionPlan
    from mtpp.cli.terminal.console import Console
    from mtpp.views.stage_comparison import StageComparison

_LISTED = 8


def deliver_plan(
    plan: PartitionPlan,
    console: Console,
    output: str | None,
    output_format: str,
    *,
    embed: bool,
    instead: StageComparison | None = None,
) -> None:
    """Write and print a plan, and warn of what its reader should know; *instead* is printed in its place."""
    from mtpp.host.process_age import process_age_s

    def json_text() -> str:
        return plan.json_text(elapsed_s=process_age_s(), embed=embed)

    def shown() -> str:
        if instead is not None:
            return instead.shown(output_format, plan.assumptions)
        return json_text() if output_format == "json" else plan.text(output_format)

    empty = plan.empty_stages
    if empty:
        reason = f"k = {plan.k} is more than the {plan.op_count} ops: " if plan.k > plan.op_count else ""
        listed = ", ".join(map(str, empty[:_LISTED])) + (", …" if len(empty) > _LISTED else "")
        console.warn(f"{reason}{len(empty)} of {plan.k} stages stay empty: {listed}")
    deliver(output, json_text, shown)
