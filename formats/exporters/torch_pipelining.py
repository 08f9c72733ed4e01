"""``torch``: a ``split_spec`` for ``torch.distributed.pipelining.pipeline``, as Python.

    from torch.distributed.pipelining import SplitPoint

    split_spec = {
        "layers.8": SplitPoint.BEGINNING,
    }

PyTorch traces the module and cuts it before (BEGINNING) or after (END) every call of the modules named
(``annotate_split_points`` in ``torch/distributed/pipelining/_IR.py``, PyTorch 2.4 and later), so a stage is a run of
ops in the order in which the program computes them. That is the order of an exported file. A module counts only if its
ops stand together in that order: one that is called twice would cut twice. A container that only holds a list
(``layers`` of ``layers.0``) is never called, so the name that is given is never one with a number right below it.
"""

from __future__ import annotations

from mtpp.errors import InputError
from mtpp.formats.exporters.blocks import find_blocks
from mtpp.formats.exporters.request import Request
from mtpp.formats.io.json_text import dump_json


def emit_torch(request: Request) -> str:
    """Return the Python text."""
    request.require_modules()
    segments, names = request.segments(), request.graph.op_names
    modules = _Modules(_known_paths(request), [request.paths[v] is not None for v in request.order])
    chosen: dict[str, int] = {}
    candidates: list[list[tuple[str, str]]] = []
    begin = 0
    for stage, before, after in zip(request.stages[1:], segments, segments[1:], strict=False):
        begin += len(before)
        candidates.append(modules.split_points(begin))
        if not _choose(len(candidates) - 1, candidates, chosen):
            raise InputError(
                f"stage {stage} begins between {names[before[-1]]!r} and {names[after[0]]!r}, where no module is known "
                "to begin or to end that does not stand for another boundary",
                source=request.graph.name,
                remedy="plan with ‹together_blocks›, or keep the ops of each module ‹together›",
            )
    kinds = [dict(points) for points in candidates]
    found = sorted((boundary, module) for module, boundary in chosen.items())
    lines = [f"    {dump_json(module)}: SplitPoint.{kinds[boundary][module]}," for boundary, module in found]
    said = "".join(request.left_out())
    return (
        said
        + "\n".join(["from torch.distributed.pipelining import SplitPoint", "", "split_spec = {", *lines, "}"])
        + "\n"
    )


def _choose(boundary: int, candidates: list[list[tuple[str, str]]], chosen: dict[str, int]) -> bool:
    """Give a boundary the first module that stands for no other; one boundary before it may be given another module.

    A specification names each module once, with one kind of split point.
    """
    for module, _ in candidates[boundary]:
        if module not in chosen:
            chosen[module] = boundary
            return True
    for module, _ in candidates[boundary]:
        holder = chosen[module]
        for other, _ in candidates[holder]:
            if other not in chosen:
                chosen |= {other: holder, module: boundary}
                return True
    return False


def _known_paths(request: Request) -> list[str | None]:
    """Return the module of each op in the graph's own order; that of its block where nothing finer is known."""
    paths = list(request.paths)
    try:
        blocks = find_blocks(request)
    except InputError:  # a model without blocks
        return [paths[v] for v in request.order]
    for v, block in enumerate(blocks.block_of):
        if paths[v] is None and block is not None:
            paths[v] = blocks.name(block)
    return [paths[v] for v in request.order]


class _Modules:
    """Where each module begins and ends.

    Parameters
    ----------
    paths
        Module of each op in the order in which they run; None where it is not known, ``""`` for the whole model.
    exact
        Whether that is the innermost module around the op; else the op may be in any module inside it.
    """

    def __init__(self, paths: list[str | None], exact: list[bool]) -> None:
        self._paths = paths
        self._exact = exact
        self._unknown = [0]
        self._first: dict[str, int] = {}
        self._last: dict[str, int] = {}
        self._ops: dict[str, int] = {}
        for position, path in enumerate(paths):
            self._unknown.append(self._unknown[-1] + (path is None))
            for module in _around(path):
                self._first.setdefault(module, position)
                self._last[module] = position
                self._ops[module] = self._ops.get(module, 0) + 1

    def split_points(self, position: int) -> list[tuple[str, str]]:
        """Return the modules that stand for the cut before *position*, each with ``BEGINNING`` or ``END``."""
        before, after = self._paths[position - 1], self._paths[position]
        if before is None or after is None:
            return []
        found = [
            (module, "BEGINNING")
            for module in _around(after)
            if self._first[module] == position
            and self._is_outside(position - 1, module)
            and self._is_called_once(module, after)
        ]
        return found + [
            (module, "END")
            for module in _around(before)
            if self._last[module] == position - 1
            and self._is_outside(position, module)
            and self._is_called_once(module, before)
        ]

    def _is_outside(self, position: int, module: str) -> bool:
        """Return whether an op, which is not known to be in *module*, is known not to be in it."""
        return self._exact[position] or not module.startswith(f"{self._paths[position]}.")

    def _is_called_once(self, module: str, path: str) -> bool:
        if path[len(module) + 1 :].partition(".")[0].isdecimal():  # perhaps a list, which is never called
            return False
        first, last = self._first[module], self._last[module]
        return self._ops[module] + self._unknown[last + 1] - self._unknown[first] == last + 1 - first


def _around(path: str | None) -> list[str]:
    """Return the modules around an op, the outermost first, the whole model left out."""
    parts = path.split(".") if path else []
    return [".".join(parts[: i + 1]) for i in range(len(parts))]
