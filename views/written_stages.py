"""Record of stages that were written: their manifest, and sizes that it does not have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mtpp.formats.results.stage_manifest import StageManifest
    from mtpp.runtime.checking.output_check import SplitCheck


@dataclass(frozen=True)
class WrittenStages:
    """Stages that were made of a model.

    Attributes
    ----------
    folder
        That they are in; None if they were written only to be checked.
    param_bytes
        Of each stage of the plan, empty ones included.
    file_bytes
        Size of each stage's file.
    shared_bytes
        Size of each file of weights that the stages share, by name; None where it is absent beside the model as well.
    calls_kept, calls_inlined
        Calls of local functions that are still calls, and those that were replaced by their bodies.
    check
        None if none was asked for.
    """

    folder: str | None
    manifest: StageManifest
    param_bytes: Sequence[int]
    file_bytes: Sequence[int]
    shared_bytes: Mapping[str, int | None]
    calls_kept: int
    calls_inlined: int
    check: SplitCheck | None
