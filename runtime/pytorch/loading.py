"""Exported programs loaded by PyTorch, with nothing of the file run or unpickled; absent weights are made up."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mtpp.errors import InputError
from mtpp.formats.io.large_file import Stored
from mtpp.formats.torch_export.loadable import loadable_copy
from mtpp.host.capacity import free_bytes
from mtpp.runtime.pytorch.library import first_line, has_operator, pytorch
from mtpp.runtime.random_values import drawn_weight, refuse_too_many

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram

META, CPU = "meta", "cpu"
"""Devices: of tensors that have no values, and of those that do here."""


@dataclass(frozen=True)
class LoadedProgram:
    """A program in memory.

    Attributes
    ----------
    made_up
        Names of weights, buffers and constants that the file has no values of: they were drawn at random.
    """

    exported: ExportedProgram
    made_up: tuple[str, ...]


def load_program(stored: Stored, source: str, seed: int | None = 0, *, recorded: Sequence[str] = ()) -> LoadedProgram:
    """Load what ``torch.export.save`` wrote.

    Parameters
    ----------
    source
        What messages call it.
    seed
        Of values for what the file has none of: programs exported on the device ``meta``. The same name and seed give
        the same values in any program. None: such weights stay without values.
    recorded
        Modules named by a manifest as those that register operators; they are not imported.

    Raises
    ------
    InputError
        If PyTorch is not installed, or the file is refused (:func:`mtpp.formats.torch_export.loadable.loadable_copy`)
        or not understood.
    """
    torch = pytorch()
    pickled = io.BytesIO()
    torch.save(((), {}), pickled)
    with loadable_copy(stored, source, pickled.getvalue(), has_operator, recorded) as copy, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exported = torch.export.load(copy)
        except Exception as error:  # whatever its readers stumble over
            raise InputError(
                f"PyTorch {torch.__version__} cannot load it: {first_line(error)}",
                source=source,
                remedy="export it again with this version",
            ) from None
    return LoadedProgram(exported, () if seed is None else tuple(_fill(exported, seed, source)))


def _fill(exported: ExportedProgram, seed: int, source: str) -> list[str]:
    """Give values to what is on the device ``meta``, and have the program run on the CPU; return the names."""
    torch = pytorch()
    absent = [
        (held, name)
        for held in (exported.state_dict, exported.constants)
        for name, value in held.items()
        if isinstance(value, torch.Tensor) and value.device.type == META
    ]
    refuse_too_many(sum(held[name].nbytes for held, name in absent), free_bytes(), source)
    for held, name in absent:
        value = held[name]
        filled = drawn(name, value, seed)
        is_parameter = isinstance(value, torch.nn.Parameter)
        held[name] = torch.nn.Parameter(filled, requires_grad=value.requires_grad) if is_parameter else filled
    if absent:
        for module in exported.graph_module.modules():
            for node in getattr(getattr(module, "graph", None), "nodes", ()):
                node.args = torch.fx.node.map_aggregate(node.args, _on_cpu)
                node.kwargs = torch.fx.node.map_aggregate(node.kwargs, _on_cpu)
    return [name for _, name in absent]


def _on_cpu(value: Any) -> Any:
    torch = pytorch()
    return torch.device(CPU) if isinstance(value, torch.device) and value.type == META else value


def drawn(name: str, like: torch.Tensor, seed: int) -> torch.Tensor:
    """Return random values for a weight of that name, of the type, shape and order in memory of *like*."""
    library = pytorch()
    whole = not (like.is_floating_point() or like.is_complex())
    values = library.from_numpy(np.asarray(drawn_weight(name, tuple(like.shape), seed, whole=whole)))
    filled = library.empty_strided(like.shape, like.stride(), dtype=like.dtype)
    filled.copy_(values)
    result: torch.Tensor = filled
    return result
