"""``mtpp profile``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mtpp.api.options.profiling import Profiling
from mtpp.cli.options.file_types import MODEL
from mtpp.cli.options.made import options
from mtpp.cli.options.shared import output_options, output_path

if TYPE_CHECKING:
    from mtpp.cli.terminal.console import Console


@click.command("profile")
@click.argument("model", type=MODEL)
@output_path("Write the graph with measured costs there, as JSON.")
@options(Profiling)
@output_options("table", "json", "csv", "markdown")
def command(model: str, output: str | None, output_format: str, console: Console, profiling: Profiling) -> None:
    """Measure on this machine what each op of MODEL takes: in ONNX Runtime, or as an exported program in PyTorch.

    The graph that -o writes can be partitioned as it is, or give its costs to the model (--costs). Weights that are
    absent and inputs are random.

    ONNX (needs mtpp[run]): an op costs the mean of the middle half of its times; all together cost what a run without
    the profiler takes. A .pt2 (needs mtpp[torch]): an op costs the median of its times, on a GPU if there is one; with
    --backward also that of its backward pass, which `mtpp plan --planner pfeife --costs` takes.
    """
    from mtpp.api.inputs.python_models import runnable_model
    from mtpp.api.profile import profile_model_file
    from mtpp.cli.terminal.delivery import check_output, deliver

    check_output(output)
    with runnable_model(model, profiling.from_format, int(profiling.max_input_size)) as found:
        profile = profile_model_file(found, profiling, console)
    deliver(output, profile, output_format)
