"""``mtpp bound --export``: the MIP behind a bound, for another solver."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.cli.console import Console


def export(paths: Sequence[str], options: dict[str, Any], bounds: Sequence[str], console: Console) -> None:
    """Write the MIP of a bound, whole or not at all.

    Raises
    ------
    InputError
        Unless there is one model, one k, and one bound that is a MIP.
    """
    from mtpp.cli.model_files import ModelFiles
    from mtpp.formats.sink import write_text_atomically
    from mtpp.solvers.bounds.export import export_mps

    if options["bounds"] is None or len(bounds) != 1:
        raise InputError("needs one bound", source="--export", remedy="name it: --bounds exact-mip")
    if len(options["stage_counts"]) != 1:
        raise InputError("needs one number of stages", source="--export", remedy="give one with -k")
    files = ModelFiles(options, console.warn, lambda text: None)
    models = files.check(paths, options["stage_counts"][0])
    if len(models) != 1:
        raise InputError(f"needs one model, not {len(models)}", source="--export", remedy="name one file")
    instance = files.read(models[0].path).instance(options["stage_counts"][0])
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / "model.mps"
        export_mps(instance, bounds[0], draft)
        write_text_atomically(options["export"], draft.read_bytes())
