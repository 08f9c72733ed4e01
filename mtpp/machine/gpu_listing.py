"""GPUs as ``nvidia-smi --query-gpu=name,memory.total,memory.used --format=csv`` lists them."""

from __future__ import annotations

import re
from typing import NamedTuple

from mtpp.errors import InputError
from mtpp.ranges import MOST_STAGES
from mtpp.wording import counted

QUERY = ("--query-gpu=name,memory.total,memory.used", "--format=csv")
"""Arguments of nvidia-smi that print such a list."""

_COLUMNS = ("name", "memory.total", "memory.used")
_HEADER = re.compile(r"(?P<column>[a-z._]+)(?: \[MiB\])?")
_SIZE = re.compile(r"(?P<number>[0-9]{1,9})(?: MiB)?")
_REMEDY = f"write it with nvidia-smi {' '.join(QUERY)}"


class Gpu(NamedTuple):
    """One line of the list, memory in MiB."""

    name: str
    total_mib: int
    used_mib: int


def gpus_of_listing(text: str, source: str) -> list[Gpu]:
    """Return the GPUs of a list, with or without its header and units.

    Raises
    ------
    InputError
        If a line is malformed, or no GPU is listed; it names the line.
    """
    gpus: list[Gpu] = []
    first = True
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split(",")]
        try:
            if not (first and _is_header(cells)):
                gpus.append(_gpu(cells))
        except ValueError as error:
            raise InputError(str(error), source=source, where=f"line {number}", remedy=_REMEDY) from None
        if len(gpus) > MOST_STAGES:
            raise InputError(f"more than {MOST_STAGES} GPUs", source=source, where=f"line {number}")
        first = False
    if not gpus:
        raise InputError("lists no GPU", source=source, remedy=_REMEDY)
    return gpus


def _is_header(cells: list[str]) -> bool:
    """Return whether the cells are the header; one of other columns is refused."""
    columns = [match["column"] if (match := _HEADER.fullmatch(cell)) else "" for cell in cells]
    if not set(columns) & {*_COLUMNS, "index", "uuid", "memory.free"}:
        return False
    if tuple(columns) != _COLUMNS:
        raise ValueError(f"the columns are {', '.join(cells)[:200]}, not {', '.join(_COLUMNS)}")
    return True


def _gpu(cells: list[str]) -> Gpu:
    """Return the GPU of a line; its name may have commas, but no cell of it is a size or the index of a GPU."""
    *named, total_cell, used_cell = cells if len(cells) >= len(_COLUMNS) else ("", "")
    if not named or (len(named) > 1 and any(not cell or _SIZE.fullmatch(cell) for cell in named)):
        raise ValueError(f"{counted(len(cells), 'column')}, not {', '.join(_COLUMNS)}")
    name, sizes = ", ".join(named), (total_cell, used_cell)
    if not name or name.startswith("["):
        raise ValueError(f"name is {name!r}" if name else "name is empty")
    total, used = (_mib(cell, column) for cell, column in zip(sizes, _COLUMNS[1:], strict=True))
    if not total:
        raise ValueError("memory.total is 0")
    if used > total:
        raise ValueError(f"memory.used ({used} MiB) is above memory.total ({total} MiB)")
    return Gpu(name, total, used)


def _mib(cell: str, column: str) -> int:
    match = _SIZE.fullmatch(cell)
    if match is None:
        raise ValueError(f"{column} is {cell[:60]!r}, no size in MiB")
    return int(match["number"])
