"""Text of machine files: a table for each run of equal devices, with comments on open figures."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby

from mtpp.machine.boards import RATES, board_of, plain_name, rates_of
from mtpp.machine.gpu_listing import Gpu
from mtpp.units import Exact
from mtpp.wording import counted

_OPEN = {"peak_flops": "TFLOP/s", "memory_bandwidth": "GB/s", "bandwidth": "GB/s"}

_HEAD = """\
# Devices of a machine, for --machine. order = "free" where a device may stand anywhere in the pipeline.
# A stage may need at most memory · utilization − reserve; bandwidth and latency are of each device's link.
"""

_PLACES = "# place: GPUs are numbered as nvidia-smi does; CUDA does so with CUDA_DEVICE_ORDER=PCI_BUS_ID.\n"


@dataclass(frozen=True)
class MachineText:
    """A machine file that was made.

    Attributes
    ----------
    text
        TOML.
    devices
        Number of devices in it.
    open_names
        Names of devices whose rates are left open.
    """

    text: str
    devices: int
    open_names: tuple[str, ...]


@dataclass(frozen=True)
class MeasuredCpu:
    """Processor and memory of a machine, with rates as measured.

    Attributes
    ----------
    memory_bytes, free_bytes
        None where the system does not tell.
    peak_flops_per_s, memory_bandwidth_bytes_per_s
        Of all cores together.
    """

    name: str
    cores: int
    memory_bytes: int | None
    free_bytes: int | None
    peak_flops_per_s: int
    memory_bandwidth_bytes_per_s: int


def text_of_gpus(
    gpus: Sequence[Gpu], name: str, utilization: Exact | None = None, tensor_link: int | None = None
) -> MachineText:
    """Return a machine of GPUs in the order of their list, as a TOML file.

    Parameters
    ----------
    utilization
        Share of each memory that stages may use; None: all of it.
    tensor_link
        Bytes a second between GPUs of one board in a row, which are one node then; None: each GPU has a stage.
    """
    if tensor_link is not None:
        return _text_of_nodes(gpus, name, utilization, tensor_link)
    names: set[str] = set()
    tables, unknown = [], []
    for gpu, run in groupby(enumerate(gpus), key=lambda item: item[1]):
        places = [f"cuda:{i}" for i, _ in run]
        own = _unused(_slug(gpu.name), names)
        if board_of(gpu.name) is None:
            unknown.append(own)
        tables.append(_gpu_table(gpu, own, places, utilization))
    return MachineText(_PLACES + _whole(name, tables), len(gpus), tuple(unknown))


def _text_of_nodes(gpus: Sequence[Gpu], name: str, utilization: Exact | None, tensor_link: int) -> MachineText:
    """Return a machine with a device for each run of GPUs of one board, whose stage may be on 1, 2, 4, … of them."""
    names: set[str] = set()
    tables, unknown = [], []
    for _, run in groupby(enumerate(gpus), key=lambda item: (item[1].name, item[1].total_mib)):
        numbered = list(run)
        place, gpu = numbered[0]
        own = _unused(_slug(gpu.name), names)
        if board_of(gpu.name) is None:
            unknown.append(own)
        most = gpu._replace(used_mib=max(one.used_mib for _, one in numbered))
        degrees = [2**i for i in range(len(numbered).bit_length())]
        rate = f"{tensor_link // 10**9}GB/s" if tensor_link % 10**9 == 0 else f"{tensor_link}B/s"
        node = [] if len(numbered) == 1 else [
            f"tensor_parallel = {degrees}  # of {len(numbered)} GPUs: those that may share its stage",
            f'tensor_link = "{rate}"',
        ]  # fmt: skip
        tables.append(_gpu_table(most, own, [f"cuda:{place}"], utilization, node))
    return MachineText(_PLACES + _whole(name, tables), len(tables), tuple(unknown))


def text_of_cpu(cpu: MeasuredCpu, utilization: Exact | None = None) -> MachineText:
    """Return a machine of one device, the processor, as a TOML file, as :func:`text_of_gpus`."""
    lines = [f"# {cpu.name}, {counted(cpu.cores, 'core')}", "[[device]]", 'name = "cpu"']
    if cpu.memory_bytes is not None:
        lines.append(f'memory = "{cpu.memory_bytes >> 20}MiB"')
        lines += _utilization(utilization)
        if cpu.free_bytes is not None:
            used = max(0, (cpu.memory_bytes >> 20) - (cpu.free_bytes >> 20))
            lines.append(f'reserve = "{used}MiB"  # in use')
    rate = f"{cpu.memory_bandwidth_bytes_per_s // 10**6}MB/s"
    lines += ['place = "cpu"', "", *_rates(cpu, 1)]
    lines.append(f'bandwidth = "{rate}"  # as the memory\'s: tensors between stages on this machine stay in it')
    return MachineText(_whole("this machine", ["\n".join(lines)]), 1, ())


def text_of_processes(
    cpu: MeasuredCpu, count: int, threads: int, latency_ps: int, bandwidth_bytes_per_s: int | None
) -> MachineText:
    """Return a machine of equal processes on one processor, with hand-overs as measured, as a TOML file.

    Parameters
    ----------
    count, threads
        Number of processes, and the threads of each: a core for each thread.
    latency_ps, bandwidth_bytes_per_s
        Of messages between processes; None: as the memory's.
    """
    each = max(1, cpu.cores // threads)
    rate = max(10**6, bandwidth_bytes_per_s or cpu.memory_bandwidth_bytes_per_s // each)
    told = "measured by `mtpp run`" if bandwidth_bytes_per_s else "as the memory's, for larger ones took no longer"
    lines = [
        f"# {cpu.name}, {counted(cpu.cores, 'core')}: processes of {counted(threads, 'thread')} on cores of their own.",
        "# Their memory is that of the machine, which all of them share.",
        *("[[device]]", 'name = "core"', f"count = {count}", 'place = "cpu"'),
        f'latency = "{max(1, latency_ps // 1000)}ns"  # of each message, for either process: measured by `mtpp run`',
        "",
        *_rates(cpu, each),
        f'bandwidth = "{rate // 10**6}MB/s"  # of messages between processes: {told}',
    ]
    return MachineText(_whole("this machine", ["\n".join(lines)]), count, ())


def _rates(cpu: MeasuredCpu, parts: int) -> list[str]:
    """Return the rates of a part of a processor, measured on all cores."""
    flops = f"{cpu.peak_flops_per_s // parts // 10**9}GFLOP/s"
    rate = f"{cpu.memory_bandwidth_bytes_per_s // parts // 10**6}MB/s"
    share = "" if parts == 1 else f", shared by {parts}"
    return [
        "[device.system]",
        f'peak_flops = "{flops}"  # measured: products of float32 matrices on all cores{share}',
        f'memory_bandwidth = "{rate}"  # measured: copies of large arrays on all cores, read and written{share}',
    ]


def _whole(name: str, tables: Sequence[str]) -> str:
    shown = name.encode("utf-8", "replace").decode()  # of a file whose name is no text
    head = f'{_HEAD}name = {_text(shown)}\norder = "fixed"'
    return "\n\n".join([head, *tables]) + "\n"


def _text(value: str) -> str:
    """Return a text as TOML has it; JSON leaves one character that TOML refuses as it is."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _utilization(share: Exact | None) -> list[str]:
    """Return the line of a share of the memory: a decimal number, or a ratio where there is none."""
    if share is None:
        return []
    decimal = str(float(share))
    return [f"utilization = {decimal}" if Fraction(decimal) == share else f'utilization = "{share}"']


def _gpu_table(gpu: Gpu, name: str, places: Sequence[str], utilization: Exact | None, node: Sequence[str] = ()) -> str:
    board = board_of(gpu.name)
    lines = [f"# {_one_line(gpu.name)}", "[[device]]", f'name = "{name}"']
    if len(places) > 1:
        lines.append(f"count = {len(places)}")
    if board is not None and not board[1]:
        lines.append(f'system = "{board[0]}"')
    lines.append(f'memory = "{gpu.total_mib}MiB"')
    lines += _utilization(utilization)
    lines.append(f'reserve = "{gpu.used_mib}MiB"  # in use')
    lines.append(f"place = {json.dumps(places[0] if len(places) == 1 else places)}")
    lines += node
    if board is None:
        lines += ["", *_open_table(name)]
    elif board[1]:
        differing = ", ".join(board[1])
        lines += ["", f"[device.system]  # the preset {board[0]} with another {differing}"]
        lines += [f'{key} = "{value}"' for key, value in rates_of(*board).items()]
    return "\n".join(lines)


def _open_table(name: str) -> list[str]:
    """Return the table of rates that somebody has to fill in."""
    return [
        f"# Fill in the rates of {name}: {', '.join(RATES)} (of one direction).",
        '# Or name a preset above, in place of this table: system = "a100".',
        "[device.system]",
        *(f'# {key} = "…{unit}"' for key, unit in _OPEN.items()),
    ]


def _slug(name: str) -> str:
    """Return a name for tables: words of letters and digits."""
    return re.sub("[^a-z0-9]+", "-", plain_name(name).lower()).strip("-") or "gpu"


def _one_line(name: str) -> str:
    """Return a name that may stand in a comment: without control characters, which TOML refuses there."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)


def _unused(name: str, names: set[str]) -> str:
    """Return the name, with a number if it is taken, and take it."""
    number, found = 1, name
    while found in names:
        number += 1
        found = f"{name}-{number}"
    names.add(found)
    return found
