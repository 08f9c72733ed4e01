"""Delivery of a plan: its table or another form on standard output, and its JSON in a file if there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtpp.cli.terminal.delivery import deliver

if TYPE_CHECKING:
    from mtpp.api.model import Model
    from mtpp.cli.terminal.console import Console
    from mtpp.inference.plan import Plan
    from mtpp.views.stage_comparison import StageComparison


def deliver_plan(
    plan: Plan,
    model: Model,
    console: Console,
    output: str | None,
    output_format: str,
    *,
    embed: bool,
    instead: StageComparison | None = None,
) -> None:
    """Write and print a plan, and warn of what its reader should know; *instead* is printed in its place."""
    from mtpp.api.plan import empty_stages_text, plan_json
    from mtpp.host.process_age import process_age_s
    from mtpp.views.plan import plan_text

    def json_text() -> str:
        return plan_json(plan, model, elapsed_s=process_age_s(), embed=embed)

    def shown() -> str:
        if instead is not None:
            return instead.shown(output_format, model.assumptions())
        return json_text() if output_format == "json" else plan_text(plan, output_format, model.assumptions())

    empty = empty_stages_text(plan)
    if empty:
        console.warn(empty)
    deliver(output, json_text, shown)
