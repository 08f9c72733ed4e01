"""Schedules that have a name in the field, from their definitions: a plan that names one has to have its passes.

Part of the independent verifier (:mod:`mtpp.checker.plan`). D devices, B micro-batches, L stages on a device. ``gpipe``
and ``bfs`` run all forward passes first, ``1f1b`` as few as it can (of one loop, the first and the last of these names;
``bfs`` has any number). ``interleaved`` takes micro-batches in rounds, as many as have at least D of them, and device d
runs D - 1 - d forward passes more than it has to (Narayanan et al. 2021). ``zero-bubble`` has the same rounds and none
of these; a backward pass is two halves I and W, and device d runs W that many backward passes behind I (ZB-H1 of Qi et
al. 2024), what is left of them at its end.
"""

from __future__ import annotations

from mtpp.checker.training.pfeife.schedule import Pass, Rows, looped_rows

NAMES = ("gpipe", "1f1b", "interleaved", "bfs", "zero-bubble")
"""Names that stand for passes; any other one is that of a file, or of whatever a caller calls a schedule."""

_OF_ONE_LOOP = ("gpipe", "1f1b")


def named_rows(name: str, devices: int, micro_batches: int, loops: int) -> Rows | str:
    """Return the passes that one of :data:`NAMES` stands for, or why there is no such schedule of these sizes."""
    if name in _OF_ONE_LOOP and loops != 1:
        return f"the schedule {name} has one stage on each device, not {loops}"
    if name in ("gpipe", "bfs"):
        return looped_rows(devices, micro_batches, loops, micro_batches, [loops * micro_batches] * devices)
    if name == "1f1b":
        return looped_rows(devices, micro_batches, 1, micro_batches, [0] * devices)
    rounds = max(1, micro_batches // devices)
    if micro_batches % rounds:
        return f"the schedule {name} has rounds of equally many micro-batches, which {micro_batches} do not make"
    more = [devices - 1 - d if name == "interleaved" else 0 for d in range(devices)]
    rows = looped_rows(devices, micro_batches, loops, micro_batches // rounds, more)
    if name == "interleaved":
        return rows
    return Rows([_in_halves(row, behind) for behind, row in enumerate(rows.rows)], [])


def _in_halves(row: list[Pass], behind: int) -> list[Pass]:
    """Return the passes of a device, each half W *behind* halves I later than the half I that it belongs to."""
    halves: list[Pass] = []
    due: list[Pass] = []
    for stage, kind, m in row:
        if kind == "F":
            halves.append((stage, kind, m))
            continue
        halves.append((stage, "I", m))
        due.append((stage, "W", m))
        if len(due) > behind:
            halves.append(due.pop(0))
    return halves + due


def fault_of_name(name: str, rows: Rows, micro_batches: int) -> str | None:
    """Return how passes differ from those that a name stands for; None if they do not, or it stands for none."""
    if name not in NAMES:
        return None
    due = named_rows(name, rows.devices, micro_batches, rows.stages // rows.devices)
    if isinstance(due, str):
        return due
    if rows.dependencies:
        return f"the schedule {name} has no dependencies besides those of its passes"
    wrong = next((d for d, (row, own) in enumerate(zip(rows.rows, due.rows, strict=True)) if row != own), None)
    return None if wrong is None else f"the passes of device {wrong} are not those of {name}"
