"""``mtpp run``'s work: options in, a comparison of what was measured with what was predicted out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from mtpp.cli.terminal.clock import deadline_from_start
from mtpp.cli.terminal.console import Console
from mtpp.errors import LimitReached
from mtpp.host.interruption import Interruption
from mtpp.runtime.pipeline.comparison import Comparison
from mtpp.runtime.pipeline.crew import Patience, Stopped
from mtpp.runtime.pipeline.measuring import RunRequest, measure
from mtpp.runtime.pipeline.worker_process import WorkerDied

_OTHER_MACHINE = 3
"""Times as slow or as fast as predicted: beyond, the prediction was for another machine."""


def run_stages(options: dict[str, Any], console: Console) -> Comparison:
    """Measure the stages of a folder.

    Raises
    ------
    MtppError
        If the folder cannot be used, a worker dies, or the time is up before there is anything to tell.
    KeyboardInterrupt
        If the user ends it before.
    """
    request = RunRequest(
        folder=Path(options["folder"]),
        model=None if options["model"] is None else Path(options["model"]),
        batches=options["batches"],
        warmup=options["warmup"],
        queue_depth=options["queue_depth"],
        threads=options["threads"],
        optimise=options["optimise"],
        pin=options["pin"],
        seed=options["seed"],
    )

    def tell(text: str) -> None:
        # Nothing that moves: drawing it would take time from what is being measured.
        if sys.stderr is not None and sys.stderr.isatty():
            console.say(text)
        else:
            console.note(text)

    with Interruption() as interruption:
        patience = Patience(deadline_from_start(options["time_limit"]), lambda: interruption.requested)
        try:
            return Comparison(measure(request, patience, tell))
        except Stopped as stop:
            if stop.reason == "interrupted":
                raise KeyboardInterrupt from None
            raise LimitReached(
                f"{options['time_limit']:g} s were up before every stage had done a batch",
                source="--time-limit",
                remedy="give it more",
            ) from None
        except WorkerDied as death:
            for line in death.last_lines:
                console.quote(death.source or "", line)
            raise


def warn_of_limits(comparison: Comparison, console: Console) -> None:
    """Warn of what makes the figures other than one may think."""
    measured = comparison.measured
    run, request = measured.pipeline, measured.request
    if run.stopped != "finished":
        done = f"after {run.batches:,} of {request.batches:,} batches"
        if run.stopped == "time-limit":
            console.warn(f"the time was up {done}")
        else:
            console.warn_interrupted(done)
    threads, cores = len(comparison.stages) * request.threads, comparison.cores
    if threads > cores:
        console.warn(
            f"{threads} threads of {len(comparison.stages)} workers share {cores} "
            f"core{'s' if cores > 1 else ''}: the speed-up is at most {cores} over one thread"
            if request.threads == 1
            else f"{threads} threads of {len(comparison.stages)} workers share {cores} core{'s' if cores > 1 else ''}"
        )
    if comparison.disturbed:
        console.warn(
            f"other programs had the cores for {comparison.disturbance:.0%} of the time: measure again when they rest"
        )
    ratio = comparison.bottleneck_ratio
    if ratio is not None and not 1 / _OTHER_MACHINE < ratio < _OTHER_MACHINE:
        console.warn("the prediction is of another machine: partition what `mtpp profile` measured on this one")
