"""Delivery of a command's result: standard output in the format asked for, and a file if there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mtpp.cli.terminal.output import write_stdout
from mtpp.host.interrupts import held

if TYPE_CHECKING:
    from fractions import Fraction

    from mtpp.api.evaluate import ComparedStages
    from mtpp.api.output import ShownResult
    from mtpp.api.partition_plan import PartitionPlan
    from mtpp.api.run_pipeline import ComparedRun
    from mtpp.cli.terminal.console import Console

_LISTED = 8


def check_output(output: str | None) -> None:
    """Check that a result can be written where it should be, before the work; nothing is in the way of none.

    Raises
    ------
    InputError
        If there is no place for a file.
    """
    from mtpp.api.output import check_output as check

    if output not in (None, "-"):
        check(output)


def deliver(output: str | None, result: ShownResult, output_format: str, **choices: Any) -> None:
    """Write a result as JSON to *output* if given, and show it in a format; *choices* are more of its method ``text``.

    See :func:`deliver_texts`.
    """
    deliver_texts(output, result.to_json, lambda: result.text(output_format, **choices))


def deliver_texts(output: str | None, json_text: Callable[[str | None], str], shown: Callable[[], str]) -> None:
    """Write JSON to *output* if given (``-``: standard output, and nothing else then), and show the rest.

    What is to be shown is shown even if the file cannot be written; a signal that comes meanwhile waits for both.
    """
    with held():
        if output == "-":
            write_stdout(json_text(None))
            return
        try:
            if output is not None:
                from mtpp.api.output import write_text_atomically

                write_text_atomically(output, json_text(output))
        finally:
            write_stdout(shown())


def deliver_folder(folder: str, written: Callable[[str], None] | None, result: ShownResult, output_format: str) -> None:
    """Have the folder written, None where there is nothing to write, and show the result, as :func:`deliver` does."""
    with held():
        try:
            if written is not None:
                written(folder)
        finally:
            write_stdout(result.text(output_format))


def deliver_plan(
    plan: PartitionPlan,
    console: Console,
    output: str | None,
    output_format: str,
    *,
    embed: bool,
    instead: ComparedStages | ComparedRun | None = None,
    emitted: Callable[[], str] | None = None,
) -> None:
    """Write and print a plan, and warn of what its reader should know; *instead* or *emitted* are in its place."""
    from mtpp.host.deadline import process_age_s

    def json_text(file: str | None = None) -> str:
        return plan.json_text(file, elapsed_s=process_age_s(), embed=embed)

    def shown() -> str:
        if emitted is not None:
            return emitted()
        if instead is not None:
            return instead.text(output_format)
        return json_text() if output_format == "json" else plan.text(output_format)

    empty, stages = plan.empty_stages, len(plan.stages)
    if plan.replicated:
        if len(empty) > plan.device_count - plan.k:
            console.warn(f"{len(empty)} of {plan.device_count} devices have no ops")
    elif len(empty) > stages - plan.k:  # of a machine's devices, more than have to be left out
        reason = f"k = {plan.k} is more than the {plan.op_count} ops: " if plan.k > plan.op_count else ""
        listed = ", ".join(map(str, empty[:_LISTED])) + (", …" if len(empty) > _LISTED else "")
        stay = "stays" if len(empty) == 1 else "stay"
        console.warn(f"{reason}{len(empty)} of {stages} stages {stay} empty: {listed}")
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
    if allowed is not None and (plan.ratio is None or plan.reached > allowed):
        proven = "none" if plan.ratio is None else f"{plan.ratio:.6g}"
        if plan.ratio is not None and plan.ratio <= 1:
            proven = "above 1"
        return f"{required}: the proven ratio is {proven}"
    return None
