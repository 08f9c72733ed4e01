"""Terms of a split of a model into stages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mtpp.api.inputs.stage_plan import PlanFiles
    from mtpp.array_types import Array


@dataclass(frozen=True)
class SplitRequest:
    """Terms of a split.

    Attributes
    ----------
    files
        The model and the plan.
    folder
        That the stages are written to, all or nothing; None to write them to a temporary one and only check them.
    force
        Whether stages that were written there earlier may be replaced.
    check_seed
        Of the random inputs and weights of a check; None for no check.
    inputs
        Contents of inputs for the check by name, or the path of an ``.npz`` file with them; others are random.
    forms
        Forms of other programs that the plan is wanted in as well.
    """

    files: PlanFiles
    folder: str | None
    force: bool = False
    check_seed: int | None = None
    forms: tuple[str, ...] = ()
    inputs: str | Mapping[str, Array] | None = None
