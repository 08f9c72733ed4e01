"""Models that Python code makes: modules of PyTorch, exported programs, and functions that build them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError
from mtpp.names import FROM_TRANSFORMERS, LANGUAGE_MODEL

if TYPE_CHECKING:
    from mtpp.api.options.language_models import Serving
    from mtpp.formats.io.source import Source

TORCH = "torch"
"""Format of a text that names a function in place of a file: ``package.module:build``."""

_EXAMPLE = "write args=(x,), or args=() for a module that takes none"


@dataclass(frozen=True)
class ExportTerms:
    """Inputs that a module is exported with; None where the caller gives none.

    Attributes
    ----------
    args, kwargs
        Example inputs by position and by name.
    dynamic_shapes
        Sizes that may change, as ``torch.export.export`` takes them.
    """

    args: Any = None
    kwargs: Any = None
    dynamic_shapes: Any = None

    def refuse(self, why: str) -> None:
        """Raise InputError of the first of them that is given, where none of them means anything."""
        for name in ("args", "kwargs", "dynamic_shapes"):
            if getattr(self, name) is not None:
                raise InputError(f"has no effect on {why}", parameter=name, remedy="leave it out")


def is_of(value: Any, library: str, name: str) -> bool:
    """Return whether a value is of a class of a library, which need not be imported to tell."""
    return any(kind.__name__ == name and kind.__module__.partition(".")[0] == library for kind in type(value).__mro__)


def is_torch_model(value: Any) -> bool:
    """Return whether a value is a module of PyTorch or an exported program."""
    return is_of(value, "torch", "Module") or is_of(value, "torch", "ExportedProgram")


def exported_source(value: Any, terms: ExportTerms, parameter: str, max_bytes: int) -> Source:
    """Return the program of a module, exported with inputs, or of an exported program, without weights.

    Notes
    -----
    O(size of the program) time and memory; no weight is copied.
    """
    from mtpp.formats.io.source import source_of_bytes
    from mtpp.runtime.pytorch.exporting import archive_of, export_module

    display = f"<{type(value).__name__}>"
    if is_of(value, "torch", "ExportedProgram"):
        terms.refuse("an exported program")
        return source_of_bytes(archive_of(value, display), display, max_bytes=max_bytes)
    if terms.args is None and terms.kwargs is None:
        raise InputError(
            f"the module {type(value).__name__} needs example inputs to be exported",
            parameter=parameter,
            remedy="read it with mtpp.read(module, args=(x,))",
        )
    args = () if terms.args is None else terms.args
    if not isinstance(args, tuple):
        raise InputError(f"must be a tuple of inputs, not {type(args).__name__}", parameter="args", remedy=_EXAMPLE)
    kwargs = terms.kwargs
    if kwargs is not None and not (isinstance(kwargs, Mapping) and all(isinstance(name, str) for name in kwargs)):
        remedy = 'write kwargs={"mask": mask}'
        raise InputError("must be a mapping of inputs by name", parameter="kwargs", remedy=remedy)
    exported = export_module(value, args, kwargs, terms.dynamic_shapes, display)
    return source_of_bytes(archive_of(exported, display), display, max_bytes=max_bytes)


@contextmanager
def runnable_model(
    model: Any, from_format: str | None, max_bytes: int, parameter: str = "model", *, weights: bool = True
) -> Iterator[Any]:
    """Yield a model as it is; the program that a function builds, and one in memory, as a source with its weights.

    Parameters
    ----------
    from_format
        :data:`TORCH` of ``package.module:function``; the function is called once.
    weights
        Whether the program is to be run: its weights are in a temporary file until the end of the block.

    Notes
    -----
    The source's SHA-256 is that of :func:`mtpp.read`, without weights: a plan of the same function is of this model.
    """
    import tempfile
    from dataclasses import replace

    from mtpp.api.parameters import path_text
    from mtpp.formats.io.large_file import LargeFile
    from mtpp.formats.io.source import source_of_bytes
    from mtpp.host.interrupts import unwinding

    in_memory = is_of(model, "torch", "ExportedProgram")
    if from_format is not None and in_memory:
        raise InputError("has no effect on an exported program", parameter="from_format", remedy="leave it out")
    if from_format is None and not in_memory:
        yield model
        return
    from mtpp.runtime.pytorch.exporting import archive_of, built_program, save_with_weights

    display = f"<{type(model).__name__}>" if in_memory else path_text(model, parameter)
    exported = model if in_memory else built_program(display)
    source = source_of_bytes(archive_of(exported, display), display, max_bytes=max_bytes)
    if not weights:
        yield source
        return
    with unwinding(), tempfile.TemporaryDirectory(prefix="mtpp-weights-") as folder:
        file = Path(folder) / "program.pt2"
        save_with_weights(exported, file, display)
        del exported
        yield replace(source, weighted=LargeFile.at(file))


def source_at(path: str, from_format: str | None, max_bytes: int, serving: Serving | None = None) -> Source:
    """Return the content of a file; of the format :data:`TORCH`, the program that a function builds.

    Of ``transformers`` it is the program of a language model, built from its configuration without weights.

    Parameters
    ----------
    path
        Of a file, of a folder with one model in it, or ``package.module:function``. Nothing is imported unless the
        format says so.
    serving
        Load of a language model, and its adapters.
    """
    from mtpp.api.inputs.model_source import described_source, model_source
    from mtpp.formats.io.folder import model_at
    from mtpp.formats.io.source import read_source, source_of_bytes

    adapters = () if serving is None else serving.adapters
    if from_format == FROM_TRANSFORMERS:
        return _program_of_transformers(path, max_bytes, serving)
    if from_format == LANGUAGE_MODEL:
        return described_source(path, adapters)
    if from_format is None:
        return model_source(path, max_bytes, adapters=adapters)
    if from_format != TORCH:
        return read_source(model_at(path), max_bytes=max_bytes)
    from mtpp.runtime.pytorch.exporting import archive_of, built_program

    return source_of_bytes(archive_of(built_program(path), path), path, max_bytes=max_bytes)


def _program_of_transformers(path: str, max_bytes: int, serving: Serving | None) -> Source:
    """Return the program of a language model on prompts, without weights: of ``context`` tokens, ``batch`` of them."""
    from mtpp.api.inputs.serving import DEFAULT_PROMPT
    from mtpp.formats.io.source import source_of_bytes
    from mtpp.formats.language_models.reader import find_sources
    from mtpp.runtime.pytorch.exporting import archive_of
    from mtpp.runtime.pytorch.transformers_program import program_of

    for name in ("kv_dtype", "mtp", "adapters") if serving is not None else ():
        if getattr(serving, name) not in (None, ()):
            raise InputError("has no effect on a program that transformers builds", parameter=name)
    if serving is not None and serving.phase not in (None, "prefill"):
        raise InputError("is of layers; a program is exported for prompts", parameter="phase", remedy="leave it out")
    tokens = DEFAULT_PROMPT if serving is None or serving.context is None else int(serving.context)
    batch = 1 if serving is None else serving.batch or 1
    found = find_sources(Path(path))
    if not found.values:
        raise InputError("has no configuration, which transformers builds a model from", source=path)
    return source_of_bytes(archive_of(program_of(found.values, path, tokens, batch), path), path, max_bytes=max_bytes)
