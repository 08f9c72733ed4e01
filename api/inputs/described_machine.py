"""Machine files made from lists of GPUs, or of the machine that mtpp runs on."""

from __future__ import annotations

import os
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError

if TYPE_CHECKING:
    from fractions import Fraction

    from mtpp.machine.machine_text import MachineText, MeasuredCpu
    from mtpp.runtime.pipeline.comparison import Comparison
    from mtpp.units import Exact

_MAX_BYTES = 2**24
"""Of a list of GPUs: a million of them, and more than enough."""


@dataclass(frozen=True)
class MachineFile:
    """A machine file that was made.

    Attributes
    ----------
    text
        TOML, with a table for each run of equal devices.
    devices
        Number of devices.
    open_names
        Names of devices whose rates nobody knows: keys to fill in before models without times of their own are cut
        for them.
    """

    text: str
    devices: int
    open_names: tuple[str, ...]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file, whole or not at all, and over no other.

        Raises
        ------
        InputError
            If a file is there already, or it cannot be written.
        """
        from mtpp.api.output import write_text_atomically
        from mtpp.api.parameters import path_text

        target = path_text(path, "path")
        check_new_file(target)
        write_text_atomically(target, self.text)


def check_new_file(path: str) -> None:
    """Raise InputError if a file cannot be written, or would take the place of one that is not empty."""
    from mtpp.api.output import check_output

    check_output(path)
    if os.path.isfile(path) and os.path.getsize(path):
        raise InputError("is there already", source=path, remedy="name another file")


def describe_machine(
    listing: str | os.PathLike[str] | None = None,
    *,
    utilization: int | float | str | Fraction | None = None,
    tensor_link: int | str | None = None,
) -> MachineFile:
    """Make a machine file from a list of GPUs, or of the machine at hand.

    Keywords that are not listed are fields of :class:`mtpp.api.options.machine.Describing`.

    Parameters
    ----------
    listing
        File with the output of ``nvidia-smi --query-gpu=name,memory.total,memory.used --format=csv``, ``"-"``: standard
        input. None: the GPUs that nvidia-smi lists here; without it the processor, whose rates are measured.

    Returns
    -------
    A file whose devices stand in the order of the list, those that are equal in one table. Memory in use is their
    ``reserve``. Boards of known names have rates; those of others are left open. With *tensor_link* the GPUs of one
    board in a row are one device.

    Raises
    ------
    InputError
        If the list cannot be read, which names the line, or a parameter is wrong.

    Examples
    --------
    >>> import mtpp
    >>> mtpp.describe_machine("gpus.csv").devices  # doctest: +SKIP
    3
    """
    from mtpp.api.options.machine import Describing
    from mtpp.api.parameters import path_text

    asked = Describing(utilization=utilization, tensor_link=tensor_link)
    share: Any = asked.utilization
    link = None if asked.tensor_link is None else int(asked.tensor_link)
    made = _this_machine(share, link) if listing is None else _of_file(path_text(listing, "listing"), share, link)
    return MachineFile(made.text, made.devices, made.open_names)


def _of_file(path: str, share: Exact | None, link: int | None) -> MachineText:
    from mtpp.formats.io.source import read_source
    from mtpp.machine.gpu_listing import gpus_of_listing
    from mtpp.machine.machine_text import text_of_gpus

    try:
        source = read_source(path, max_bytes=_MAX_BYTES, expected="a list of GPUs")
    except InputError as error:
        if error.remedy is None or "‹max_input_size›" not in error.remedy:
            raise
        raise InputError(error.problem, source=error.source, remedy="give a list of GPUs") from None
    try:
        text = source.data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("is not a text in UTF-8", source=source.display) from None
    name = "GPUs" if source.is_stdin else source.stem
    return text_of_gpus(gpus_of_listing(text, source.display), name, share, link)


def _this_machine(share: Exact | None, link: int | None) -> MachineText:
    from mtpp.host.gpus import listed_gpus
    from mtpp.machine.gpu_listing import QUERY, gpus_of_listing
    from mtpp.machine.machine_text import text_of_cpu, text_of_gpus

    listed = listed_gpus(QUERY)
    if listed is not None:
        return text_of_gpus(gpus_of_listing(listed, "nvidia-smi"), "this machine", share, link)
    if link is not None:
        raise InputError("there are no GPUs here", parameter="tensor_link", remedy="leave it out")
    return text_of_cpu(_this_cpu(), share)


def _this_cpu() -> MeasuredCpu:
    from mtpp.host.capacity import free_bytes, machine, memory_bytes
    from mtpp.host.measured_rates import memory_bandwidth_bytes_per_s, peak_flops_per_s
    from mtpp.machine.machine_text import MeasuredCpu

    figures = machine()
    return MeasuredCpu(
        str(figures["cpu"]),
        int(figures["cores"]),
        memory_bytes(),
        free_bytes(),
        peak_flops_per_s(),
        memory_bandwidth_bytes_per_s(),
    )


def machine_of_run(comparison: Comparison) -> MachineFile:
    """Return the machine that a pipeline ran on: a device for each process that has cores of its own.

    The line of its hand-overs is the link of each; rates of arithmetic and memory are measured now, in a second.

    Raises
    ------
    InputError
        If no hand-over was measured, or stages ran on GPUs, whose rates are not those of the processor.
    """
    from mtpp.formats.results.stage_records import CPU
    from mtpp.machine.machine_text import text_of_processes

    line = comparison.hand_overs.line
    if any(stage.place != CPU for stage in comparison.measured.wiring.manifest.stages):
        raise InputError("stages ran on GPUs", remedy="describe them: `mtpp machine --this`")
    if line is None:
        raise InputError("no stage hands anything to another", remedy="run a model in two stages or more")
    threads = comparison.measured.request.threads
    bandwidth = line.bandwidth_bytes_per_s
    made = text_of_processes(
        _this_cpu(),
        max(1, comparison.cores // threads),
        threads,
        round(line.latency_s * 10**12),
        int(bandwidth) if bandwidth < inf else None,
    )
    return MachineFile(made.text, made.devices, made.open_names)
