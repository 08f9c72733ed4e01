"""The mixed-integer programs behind the bounds, written to a file for another solver."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from mtpp.errors import InputError
from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.bottleneck_guess import guess_model
from mtpp.solvers.bounds.exact_mip import exact_model
from mtpp.solvers.bounds.mip.block_model import BlockModel, middle_model
from mtpp.solvers.bounds.mip.block_problem import BeyondPrecision, BlockProblem, block_problem
from mtpp.wording import did_you_mean

EXPORTED = ("bottleneck-no-dag", "bottleneck-no-cut-io", "bottleneck", "bottleneck-guess", "exact-mip")
"""Names of the bounds that are a MIP each; ``bottleneck-guess`` is one per position."""


@dataclass(frozen=True)
class ExportedModel:
    """What was written.

    Attributes
    ----------
    columns, rows
        Of the model.
    ticks_per_objective
        What one unit of the objective, the column ``bottleneck``, is in ticks.
    cutoff
        The model is about partitions below so many ticks; if it is infeasible, that is a lower bound.
    """

    columns: int
    rows: int
    ticks_per_objective: float
    cutoff: int


def export_mps(instance: Instance, name: str, path: Path, *, cutoff: int, position: int | None = None) -> ExportedModel:
    """Write the MIP of a bound to *path*, whole or not at all: MPS, or LP if that is how the name ends.

    Columns are called ``y_OP_B`` (op number OP of the graph, in file order, is in the first B blocks), ``c_TENSOR_B``
    (block B cuts the tensor) and ``bottleneck``; what the cutoff settles is left out.

    Parameters
    ----------
    name
        One of :data:`EXPORTED`.
    cutoff
        Only partitions below so many ticks are of interest; the model reaches a little beyond.
    position
        Of the stage with the simple bound's work, from 1 on, for ``bottleneck-guess``.

    Raises
    ------
    InputError
        If there is no such model, or nothing is left of it; if the file cannot be written.
    """
    from mtpp.solvers.bounds.mip.highs import write_model

    if name not in EXPORTED:
        remedy = did_you_mean(name, EXPORTED, f"use one of {', '.join(EXPORTED)}")
        raise InputError(f"{name!r} is not a MIP", parameter="export", remedy=remedy)
    try:
        problem = block_problem(instance, cutoff, with_windows=name in ("bottleneck-guess", "exact-mip"))
    except BeyondPrecision as error:
        raise InputError(str(error), parameter="export", remedy="choose a bound of tier exact or enumerated") from None
    model = None if problem is None else _model(problem, name, position)
    mip = None if model is None else model.compiled.model
    if problem is None or model is None or mip is None:
        raise InputError(
            f"the MIP of {name} is empty: it takes no solver to show that no partition is below {cutoff} ticks",
            parameter="export",
            remedy="choose another bound or number of stages",
        )
    columns = model.builder.names()
    beside = path.with_name(f".{path.stem}-{os.getpid()}{path.suffix}")
    try:
        write_model(mip, [columns[column] for column in model.compiled.kept.tolist()], beside)
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise InputError(str(error), parameter="export", remedy="check the path") from None
    return ExportedModel(mip.column_count, mip.row_count, 1.0 / problem.scale.objective(1), problem.scale.cutoff)


def _model(problem: BlockProblem, name: str, position: int | None) -> BlockModel | None:
    if name in ("bottleneck", "bottleneck-no-dag", "bottleneck-no-cut-io"):
        return middle_model(problem, ordered=name != "bottleneck-no-dag", cuts=name != "bottleneck-no-cut-io")
    if problem.lowest is None:
        return None
    if name == "exact-mip":
        return exact_model(problem)
    if position is None or not 1 <= position <= problem.stages:
        raise InputError(
            f"bottleneck-guess is one MIP per position 1 … {problem.stages}", parameter="export", remedy="name one"
        )
    return guess_model(problem, position)
