"""Shell and Python offer the same: every option has a parameter, every column of a table an attribute."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import click
import pytest

import mtpp
from mtpp.cli.main import root

FUNCTIONS = {
    "partition": ["partition", "Reading"],
    "certify": ["certify", "Reading"],
    "bound": ["bound", "Reading"],
    "compare": ["compare", "compare_layouts", "Reading"],
    "verify": ["verify"],
    "report": ["report"],
    "evaluate": ["evaluate", "evaluate_layout", "Reading"],
    "inspect": ["inspect", "Reading"],
    "convert": ["convert", "Reading"],
    "profile": ["profile", "Reading"],
    "split": ["split", "emit"],
    "run": ["run_pipeline", "run_training"],
    "plan": ["plan_training", "sweep_training", "Piper", "Equi", "PipeDream2BW", "GraphPipe", "Pfeife"],
    "simulate": ["simulate"],
    "machine": ["describe_machine"],
    "systems": ["systems"],
    "warmup": ["warmup"],
}
"""Command → names of the library that do the same."""

SHELL_ALONE = {"help", "quiet", "verbose", "debug", "output", "output_format", "memory_limit", "warm_up_behind"}
"""Options of the process and of what it prints; results have ``save`` and ``text`` for these."""

SIZES = ("auto_dims", "trips")
"""Flags for sizes beside ``--dim``: ``dims="auto"`` and ``dims={"trips:…": 3}``."""

ELSEWHERE = {
    ("partition", "form"): "mtpp.emit:form",
    ("partition", "virtual_stages"): "mtpp.emit:virtual_stages",
    ("partition", "require_ratio"): "mtpp.api.partition_plan.PartitionPlan.ratio",
    ("partition", "require_optimal"): "mtpp.api.partition_plan.PartitionPlan.optimal",
    ("partition", "report"): "mtpp.report:path",
    ("partition", "title"): "mtpp.report:title",
    ("partition", "open_page"): "mtpp.report:open_page",
    ("plan", "report"): "mtpp.report:path",
    ("plan", "title"): "mtpp.report:title",
    ("plan", "open_page"): "mtpp.report:open_page",
    ("partition", "embed"): "mtpp.api.partition_plan.PartitionPlan.save:embed",
    ("certify", "paths"): "mtpp.certify:models",
    ("certify", "require_ratio"): "mtpp.api.cells.certificate_table.CertificateTable.unmet:ratio",
    ("certify", "plot"): "mtpp.api.cells.certificate_table.CertificateTable.plot:path",
    ("certify", "shown_as"): "mtpp.api.cells.certificate_table.CertificateTable.text:as_fraction",
    ("bound", "paths"): "mtpp.bound:models",
    ("bound", "shown_as"): "mtpp.api.cells.certificate_table.BoundTable.text:as_fraction",
    ("bound", "export"): "mtpp.api.mip_export.export:path",
    ("bound", "position"): "mtpp.api.mip_export.export:position",
    ("bound", "overlapping"): "mtpp.api.cells.overlapping.bound_overlapping",
    ("compare", "paths"): "mtpp.compare:models",
    ("verify", "documents"): "mtpp.verify:result",
    ("verify", "beside"): "mtpp.api.verification.verified_files.verify_files:beside",
    ("verify", "accept_unchecked"): "mtpp.api.verify.Verification.verdict",
    ("verify", "require_tier"): "mtpp.api.verify.Verification.unmet:tier",
    ("evaluate", "require_ratio"): "mtpp.api.partition_plan.PartitionPlan.ratio",
    ("evaluate", "run"): "mtpp.api.run_pipeline.compare_run:run",
    ("evaluate", "embed"): "mtpp.api.partition_plan.PartitionPlan.save:embed",
    ("convert", "assignment"): "mtpp.convert:plan",
    ("machine", "this"): "mtpp.describe_machine:listing",
    ("plan", "form"): "mtpp.api.training.plan_results.SplitPlanResult.emit:form",
    ("plan", "force"): "mtpp.api.training.plan_results.SplitPlanResult.emit:force",
    ("plan", "imports"): "mtpp.api.training.plan_results.SplitPlanResult.emit:imports",
    ("plan", "sweep"): "mtpp.sweep_training",
    ("run", "engine"): "mtpp.run_training",
    ("run", "write_machine"): "mtpp.api.run_pipeline.PipelineRun.write_machine:path",
    ("simulate", "gantt"): "mtpp.api.training.simulated.SimulatedPipeline.gantt:path",
    ("simulate", "trace"): "mtpp.api.training.simulated.SimulatedPipeline.trace:path",
}
"""Options that are an attribute of the result, or a parameter of something else: ``place:parameter``."""

OF_A_DEVICE = {"bandwidth", "fast_memory", "activation_reserve", "peak", "stage_memory", "sequences"}
OF_A_MODEL = {"from_format", "backward", "loading_time", "keep_state", "costs", "dims", "system", "machine"}
"""Of the models of ``verify``, ``report`` and ``inspect``, which take a device and a model of ``mtpp.read``."""


def _options() -> Iterator[tuple[str, str]]:
    context = click.Context(root)
    for name in root.list_commands(context):
        command = root.get_command(context, name)
        if name in FUNCTIONS and command is not None:
            yield from ((name, str(option.name)) for option in command.params)


def _parameters(command: str) -> set[str]:
    return {name for function in FUNCTIONS[command] for name in inspect.signature(getattr(mtpp, function)).parameters}


def _found(place: str) -> bool:
    """Tell whether there is an attribute, or a callable with the parameter."""
    path, _, parameter = place.partition(":")
    names = path.split(".")
    found: Any = mtpp
    for i, name in enumerate(names[1:], 2):
        try:
            found = getattr(found, name)
        except AttributeError:
            try:
                found = importlib.import_module(".".join(names[:i]))
            except ModuleNotFoundError:
                return False
    return not parameter or parameter in inspect.signature(found).parameters


def test_every_option_has_its_parameter() -> None:
    """By the same name, or where the list above says."""
    missing = []
    for command, option in _options():
        known = option in _parameters(command) or option in SHELL_ALONE or option in SIZES
        if not known and command in ("verify", "report", "inspect") and option in OF_A_DEVICE | OF_A_MODEL:
            known = option in inspect.signature(mtpp.Reading).parameters
        if not known and not ((place := ELSEWHERE.get((command, option))) and _found(place)):
            missing.append((command, option))
    assert missing == []
    assert not [pair for pair in ELSEWHERE if pair not in set(_options())]


def test_every_column_has_its_attribute(tmp_path: Any) -> None:
    """Columns of stages, rows of certificates and figures below tables."""
    model = mtpp.read(mtpp.datasets.sample_path("resnet50"))
    plan = mtpp.partition(model, 3)
    header = plan.text("csv").splitlines()[0].split(",")
    for column in header:
        name = {"first": "ops", "last": "ops", "time_unit": "", "ticks_per_unit": ""}.get(column, column)
        assert not name or hasattr(plan.stages[0], name), column
    (row,) = mtpp.certify(model, 2, time_limit_s=1, jobs=1)
    columns = mtpp.certify(model, 2, time_limit_s=1, jobs=1).text("csv").splitlines()[0].split(",")
    of_proofs = {"lower_method", "tier", "proven_method", "proven_tier"}
    for column in columns:
        tried = column.removesuffix("_seconds")
        assert tried in row.bounds or column in of_proofs or hasattr(row, column), column


@pytest.mark.parametrize("name", ["throughput_per_s", "latency", "speed_up", "crossing_tensors", "memory_bytes"])
def test_figures_of_a_plan_are_attributes(name: str) -> None:
    """Figures that stand below the table."""
    plan = mtpp.partition(mtpp.datasets.sample_path("resnet50"), 2)
    assert getattr(plan, name) > 0


def test_results_show_themselves_in_notebooks() -> None:
    """Plans with their bars, verifications, splits, runs, profiles, models and graphs."""
    model = mtpp.read(mtpp.datasets.sample_path("resnet50"))
    plan = mtpp.partition(model, 2)
    assert "█" in plan._repr_html_()
    for shown in (model, model.graph, mtpp.verify(plan, model)):
        assert "<table>" in shown._repr_html_()
    for place in ("split.SplitResult", "run_pipeline.PipelineRun", "profile.Profile", "evaluate.ComparedStages"):
        assert _found(f"mtpp.api.{place}._repr_html_"), place
