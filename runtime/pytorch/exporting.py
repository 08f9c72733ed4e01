"""Modules exported by PyTorch, and exported programs as archives without weights."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError
from mtpp.formats.torch_export.weightless import weightless_archive
from mtpp.runtime.pytorch.library import first_line, program_text, pytorch

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram

_META = "meta"


def export_module(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None,
    dynamic_shapes: Any,
    source: str,
) -> ExportedProgram:
    """Export a module with ``torch.export.export``, in the mode that it is in.

    A module all of whose weights are on the device ``meta`` makes its own tensors there too, as PyTorch asks for.

    Parameters
    ----------
    dynamic_shapes
        As PyTorch takes them.
    source
        What messages call it.
    """
    torch = pytorch()
    stored = [*module.parameters(), *module.buffers()]
    on_meta = bool(stored) and all(one.device.type == _META for one in stored)
    with _quiet(), torch.device(_META) if on_meta else nullcontext():
        try:
            return torch.export.export(
                module, args, None if kwargs is None else dict(kwargs), dynamic_shapes=dynamic_shapes
            )
        except MemoryError:
            raise
        except Exception as error:  # whatever the module or PyTorch raises
            raise InputError(
                f"PyTorch {torch.__version__} cannot export it: {first_line(error).rstrip('.')}",
                source=source,
                remedy="torch.export.draft_export(module, args) lists what to change; a program exported with"
                " strict=True, or saved as .pt2, is read as well",
            ) from error


def archive_of(exported: ExportedProgram, source: str) -> bytes:
    """Return an exported program as a file without weights; see :func:`weightless_archive`."""
    torch = pytorch()
    with _quiet():
        try:
            text = program_text(exported)
        except MemoryError:
            raise
        except Exception as error:  # whatever its writers stumble over
            raise InputError(
                f"PyTorch {torch.__version__} cannot serialise the program: {first_line(error).rstrip('.')}",
                source=source,
                remedy="run_decompositions() may replace what it has no form for",
            ) from None
        return weightless_archive(text, _storages(exported))


def _storages(exported: ExportedProgram) -> dict[str, int]:
    """Return a number for the memory of each parameter, buffer and constant, by name."""
    torch = pytorch()
    held = {**exported.state_dict, **exported.constants}
    return {name: _storage(value) for name, value in held.items() if isinstance(value, torch.Tensor)}


def _storage(value: torch.Tensor) -> int:
    """Return the address of a tensor's memory, or of the object where it has none: on ``meta``, or empty.

    PyTorch loads all tensors on the device ``meta`` as views of one storage, so that this does not tell them apart.
    """
    if value.device.type == _META:
        return id(value)
    try:
        return value.untyped_storage().data_ptr() or id(value)
    except (NotImplementedError, RuntimeError):  # subclasses that are made of several tensors
        return id(value)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep PyTorch from warning, logging and printing of what it meets: of what fails, the error says it."""
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
