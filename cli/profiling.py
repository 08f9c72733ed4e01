"""From the options of ``mtpp profile`` to what is measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.formats.io.source import Source
    from mtpp.runtime.profiling.profile_request import ProfileRequest
    from mtpp.runtime.random_values import Array


def profile_source(path: str, options: Mapping[str, Any]) -> Source:
    """Read the model's file.

    Raises
    ------
    InputError
        If it is no ONNX model: nothing else can be run.
    """
    from mtpp.cli.options.shared import input_limit
    from mtpp.formats.io.source import read_source
    from mtpp.formats.onnx import looks_like_onnx

    source = read_source(path, max_bytes=input_limit(options["max_input_size"]))
    if not looks_like_onnx(source.data):
        raise InputError("not an ONNX model", source=source.display, remedy="only ONNX models can be run and measured")
    return source


def profile_request(options: Mapping[str, Any]) -> ProfileRequest:
    """Read the command's options."""
    from mtpp.cli.options.shared import bytes_option, parse_dims
    from mtpp.host.free_memory import free_bytes
    from mtpp.inference.system import DEFAULT_PRESET, load_system
    from mtpp.runtime.profiling.profile_request import ProfileRequest
    from mtpp.runtime.profiling.timing import ProfileChoices

    limit = bytes_option("--memory-limit", options["memory_limit"])
    return ProfileRequest(
        ProfileChoices(
            options["warmup"], options["repeats"], options["threads"], options["optimise"], options["beside"]
        ),
        load_system(options["system"] or DEFAULT_PRESET),
        dims=parse_dims(options["dims"]),
        arrays=_arrays(options["inputs"]) if options["inputs"] else {},
        seed=options["seed"],
        memory_bytes=free_bytes() if limit is None else limit,
    )


def _arrays(path: str) -> dict[str, Array]:
    """Read arrays by name; none that would have to be unpickled."""
    import zipfile

    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as archive:
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ValueError("one array without a name")
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(
            f"no arrays by name can be read: {error}", source=path, remedy="write it with numpy.savez(FILE, NAME=array)"
        ) from None
