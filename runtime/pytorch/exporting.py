"""Modules built by functions of users, which are run nowhere else, and exported by PyTorch without weights."""

from __future__ import annotations

import io
import logging
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError
from mtpp.formats.torch_export.weightless import weightless_archive
from mtpp.runtime.pytorch.importing import failure, imported, searching
from mtpp.runtime.pytorch.library import first_line, program_text, pytorch

if TYPE_CHECKING:
    from pathlib import Path

    import torch
    from torch.export import ExportedProgram

_META = "meta"

_PLACE = re.compile(r"(?P<module>[^\W\d]\w*(\.[^\W\d]\w*)*):(?P<function>[^\W\d]\w*(\.[^\W\d]\w*)*)")
_OTHER_RESULT = re.compile(r"Found <class '(?:[\w.]*\.)?(?P<type>\w+)'> in output, which is not a known type")
"""Words of PyTorch of a result that is neither a tensor nor made of some."""

_FORM = "write package.module:function"
_SEED = 0
_RETURNS = "return (module, args), (module, args, kwargs) or an ExportedProgram"


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
            problem = first_line(error).rstrip(".")
            if (found := _OTHER_RESULT.search(problem)) is not None:
                raise InputError(
                    f"one of its results is of type {found['type']}, which PyTorch does not export",
                    source=source,
                    remedy="have it return tensors, in tuples and dictionaries: models of transformers with"
                    " use_cache=False",
                ) from error
            raise InputError(
                f"PyTorch {torch.__version__} cannot export it: {problem}",
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


def save_with_weights(exported: ExportedProgram, path: Path, source: str) -> None:
    """Write an exported program with its weights, as ``torch.export.save`` does."""
    torch = pytorch()
    with _quiet():
        try:
            torch.export.save(exported, path)
        except MemoryError:
            raise
        except Exception as error:  # whatever its writers stumble over
            problem = f"PyTorch {torch.__version__} cannot save it with its weights: {first_line(error).rstrip('.')}"
            remedy = f"set TMPDIR to a folder with room; it goes to {path.parent}"
            raise InputError(problem, source=source, remedy=remedy) from None


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


def built_program(place: str) -> ExportedProgram:
    """Import a module, call a function of it without arguments, and export what that returns.

    Parameters
    ----------
    place
        ``package.module:function``; the current folder is searched too, as ``python -m`` does. The function returns a
        module and its example inputs as a tuple, with further ones by name as a dictionary, or an exported program.
        What is printed meanwhile goes to standard error.

    Notes
    -----
    PyTorch's random numbers begin with the same seed whenever a function is called: weights that it draws are those of
    every other command.
    """
    match = _PLACE.fullmatch(place)
    if match is None:
        raise InputError("names no function of a module", source=place or "''", remedy=_FORM)
    torch = pytorch()
    with searching(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(_SEED)
        function = _function(match["module"], match["function"], place)
        try:
            made = function()
        except (MemoryError, InputError):
            raise
        except (Exception, SystemExit) as error:
            raise failure("the function", error, place) from error
        return made if isinstance(made, torch.export.ExportedProgram) else _exported(made, place)


def _exported(made: Any, place: str) -> ExportedProgram:
    """Export the module that a function returned, with its inputs."""
    torch = pytorch()
    parts = made if isinstance(made, tuple) else (made,)
    if not parts or not isinstance(parts[0], torch.nn.Module):
        raise InputError(f"the function returned {_kind(made)}", source=place, remedy=_RETURNS)
    if not 2 <= len(parts) <= 3:
        problem = "a module alone" if len(parts) == 1 else f"{len(parts)} values"
        raise InputError(f"the function returned {problem}", source=place, remedy=_RETURNS)
    args, kwargs = parts[1], parts[2] if len(parts) > 2 else {}
    if not isinstance(args, tuple):
        problem = f"the function returned {_kind(args)} in place of a tuple of inputs"
        raise InputError(problem, source=place, remedy="return (module, (x,)), or (module, ()) for none")
    if not isinstance(kwargs, dict) or not all(isinstance(key, str) for key in kwargs):
        problem = f"the function returned {_kind(kwargs)} in place of a dictionary of inputs by name"
        raise InputError(problem, source=place, remedy=_RETURNS)
    return export_module(parts[0], args, kwargs, None, place)


def _function(module: str, name: str, place: str) -> Callable[[], Any]:
    """Import a module and return a function of it."""
    found: Any = imported(module, place, f"{module.removesuffix('.py')}:{name}")
    for part in name.split("."):
        if not hasattr(found, part):
            problem = f"module {module!r} has no function {name!r}"
            raise InputError(problem, source=place, remedy="define it, or name another one")
        found = getattr(found, part)
    if not callable(found):
        raise InputError(f"{name!r} is no function, but {_kind(found)}", source=place, remedy=_FORM)
    function: Callable[[], Any] = found
    return function


def _kind(value: Any) -> str:
    return "None" if value is None else f"an object of the type {type(value).__name__}"
