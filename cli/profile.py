"""``mtpp profile``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mtpp.cli.options.file_types import INPUTS, MODEL, OUTPUT, SYSTEM
from mtpp.cli.options.limits import memory_limit_option
from mtpp.cli.options.shared import output_options
from mtpp.cli.options.sizes import size_options, sizes_of

if TYPE_CHECKING:
    from mtpp.cli.terminal.console import Console

_PLAIN = ("warmup", "repeats", "threads", "optimise", "beside", "backward", "inputs", "seed")


@click.command("profile")
@click.argument("model", type=MODEL)
@click.option("-o", "--output", type=OUTPUT, metavar="FILE", help="Write the graph with measured costs there, as JSON.")
@click.option("--warmup", type=click.IntRange(min=0), default=3, show_default=True, help="Runs that do not count.")
@click.option("--repeats", type=click.IntRange(1, 10_000), default=20, show_default=True, help="Runs that count.")
@click.option("--threads", type=click.IntRange(1, 1024), default=1, show_default=True, help="Of one kernel.")
@click.option(
    "--optimise", is_flag=True, help="Let ONNX Runtime fuse and rearrange ops; a fused kernel's time is shared out."
)
@click.option(
    "--beside",
    type=click.IntRange(0, 1024),
    default=0,
    show_default=True,
    metavar="N",
    help="Run an ONNX model N times more at the same time: stages have others beside them.",
)
@click.option("--backward", is_flag=True, help="Of an exported program: measure the backward pass of each op too.")
@click.option("--inputs", type=INPUTS, metavar="FILE.npz", help="Contents of the inputs by name [default: random].")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="Of all that is made up.")
@size_options("Set a size that the model leaves open; '*=1': all others.", "Propose the sizes that are left open.")
@click.option("--system", type=SYSTEM, default=None, metavar="NAME|FILE", help="Whose modelled costs to compare with.")
@memory_limit_option("; an ONNX model is run in pieces if need be [default: what is free]")
@click.option("--max-input-size", default="2GiB", show_default=True, metavar="SIZE", help="Refuse larger files.")
@output_options("table", "json", "csv", "markdown")
def command(model: str, output: str | None, output_format: str, console: Console, **options: Any) -> None:
    """Measure on this machine what each op of MODEL takes: in ONNX Runtime, or as an exported program in PyTorch.

    The graph that -o writes can be partitioned as it is, or give its costs to the model (--costs). Weights that are
    absent and inputs are random.

    ONNX (needs mtpp[run]): an op costs the mean of the middle half of its times; all together cost what a run without
    the profiler takes. A .pt2 (needs mtpp[torch]): an op costs the median of its times, on a GPU if there is one; with
    --backward also that of its backward pass, which `mtpp plan --planner pfeife --costs` takes.
    """
    from mtpp.api.output import check_output
    from mtpp.api.profile import ProfileModelRequest, profile_model_file
    from mtpp.cli.options.values import bytes_option, input_limit
    from mtpp.cli.terminal.delivery import deliver

    if output not in (None, "-"):
        check_output(output)
    request = ProfileModelRequest(
        model,
        options["system"],
        memory_bytes=bytes_option("--memory-limit", options["memory_limit"]),
        dims=sizes_of(options),
        max_input_bytes=input_limit(options["max_input_size"]),
        **{name: options[name] for name in _PLAIN},
    )
    profile = profile_model_file(request, console)
    deliver(output, profile, output_format)
