"""``mtpp split --emit``: a plan in the form that another program takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.cli.split_plan import PlannedModel


def check_forms(names: Sequence[str]) -> None:
    """Check that every form asked for exists, before the work.

    Raises
    ------
    InputError
        If one does not.
    """
    from mtpp.formats.handover.registry import NAMES

    for name in names:
        if name not in NAMES:
            raise InputError(f"unknown form {name!r}", source="--emit", remedy=f"use one of {', '.join(NAMES)}")


def handover_text(model: PlannedModel, names: Sequence[str]) -> str:
    """Return the plan in each of the forms asked for, one after the other.

    Raises
    ------
    InputError
        If the stages cannot be said in one of them.
    """
    import numpy as np

    from mtpp.formats.handover.registry import emit
    from mtpp.formats.handover.request import Request
    from mtpp.formats.onnx.module_names import module_names

    request = Request(
        graph=model.reading.graph,
        assignment=np.array(model.plan.labels, dtype=np.int32),
        k=model.plan.k,
        modules=module_names(model.reading),
    )
    return "".join(emit(name, request) for name in dict.fromkeys(names))
