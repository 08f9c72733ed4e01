"""Number of repeated blocks in each stage, for engines that take nothing finer.

Such an engine keeps what comes before the blocks (embeddings) in its first stage, and what comes after them in its
last. Ops outside the blocks that read no parameters (masks, positions, reshapes) do not count: engines compute those
wherever they are needed.
"""

from __future__ import annotations

from dataclasses import dataclass

from mtpp.errors import InputError
from mtpp.formats.exporters.blocks import Blocks, find_blocks
from mtpp.formats.exporters.request import Request

_LISTED = 3
_HIDDEN_SHARE = 0.25
"""Share of the parameters of an average block that ops of unknown modules before and after the blocks may read."""


@dataclass(frozen=True)
class LayerCounts:
    """Blocks per stage, of the stages that run an op, and the path that the blocks have without their numbers."""

    family: str
    counts: list[int]


def layer_counts(request: Request) -> LayerCounts:
    """Count the blocks of each stage."""
    blocks = find_blocks(request)
    stage_of = _stages(request, blocks)
    _check_open(request, blocks, stage_of)
    _check_ends(request, blocks)
    counts = [stage_of.count(stage) for stage in request.stages]
    return LayerCounts(blocks.family, counts)


def _stages(request: Request, blocks: Blocks) -> list[int]:
    """Return the one stage of each block."""
    ops: list[dict[int, list[str]]] = [{} for _ in range(blocks.count)]
    for v in request.order:
        if (block := blocks.block_of[v]) is not None:
            ops[block].setdefault(int(request.assignment[v]), []).append(request.graph.op_names[v])
    for block, by_stage in enumerate(ops):
        if len(by_stage) > 1:
            parts = "; ".join(
                f"stage {stage} runs {len(names)} of its ops: {_listed(names)}" for stage, names in by_stage.items()
            )
            raise InputError(
                f"a boundary between stages cuts through block {blocks.name(block)}: {parts}",
                source=request.graph.name,
                remedy="plan with ‹together_blocks›",
            )
    return [next(iter(by_stage)) for by_stage in ops]


def _listed(names: list[str]) -> str:
    return ", ".join(names[:_LISTED]) + (", …" if len(names) > _LISTED else "")


def _check_open(request: Request, blocks: Blocks, stage_of: list[int]) -> None:
    """Check that the counts are the same wherever the ops belong of which it is open."""
    _check_hidden(request, blocks)
    for v, before in blocks.open_between.items():
        if before is None or before == blocks.count - 1:
            continue
        stage, name = int(request.assignment[v]), request.graph.op_names[v]
        names = blocks.name(before), blocks.name(before + 1)
        if stage_of[before] != stage_of[before + 1]:
            problem = (
                f"a boundary between stages lies between {names[0]} and {names[1]}, and it is open where that is: "
            )
            raise InputError(f"{problem}op {name!r} may belong to either", source=request.graph.name)
        if stage != stage_of[before]:
            problem = f"op {name!r} of {names[0]} or {names[1]} is in stage {stage}, they are in {stage_of[before]}"
            raise InputError(problem, source=request.graph.name)


def _check_hidden(request: Request, blocks: Blocks) -> None:
    """Check that no block can be hidden among the ops before or after the known ones, by the parameters they read."""
    sizes = request.graph.read_bytes
    inside = sum(int(sizes[v]) for v, block in enumerate(blocks.block_of) if block is not None)
    ends = [v for v, before in blocks.open_between.items() if before is None or before == blocks.count - 1]
    if sum(int(sizes[v]) for v in ends) * blocks.count > _HIDDEN_SHARE * inside:
        largest = request.graph.op_names[max(ends, key=lambda v: int(sizes[v]))]
        problem = f"it is open whether op {largest!r}, which reads parameters, belongs to a block of {blocks.family}"
        raise InputError(problem, source=request.graph.name)


def _check_ends(request: Request, blocks: Blocks) -> None:
    graph = request.graph
    position = {v: i for i, v in enumerate(request.order)}
    inside = [position[v] for v, block in enumerate(blocks.block_of) if block is not None]
    for v in request.order:
        if blocks.block_of[v] is not None or v in blocks.open_between or not graph.read_bytes[v]:
            continue
        stage, where = int(request.assignment[v]), position[v]
        if min(inside) < where < max(inside):
            problem = f"op {graph.op_names[v]!r} reads parameters and lies between the blocks, not in one"
            raise InputError(problem, source=graph.name)
        before = where < min(inside)
        expected = request.stages[0 if before else -1]
        if stage != expected:
            raise InputError(
                f"op {graph.op_names[v]!r} comes {'before the first' if before else 'after the last'} block and is in "
                f"stage {stage}, where the engine keeps it in stage {expected}",
                source=graph.name,
            )
