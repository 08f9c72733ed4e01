"""Sizes that a plan was made for: an assignment brings them along, so that they need not be given again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from mtpp.errors import InputError


def planned_sizes(assignment: Any) -> dict[str, int]:
    """Return the sizes of dimensions that a plan says, none of them where an assignment is no plan.

    Parameters
    ----------
    assignment
        What :func:`mtpp.api.inputs.user_assignment.stage_labels` takes. What is wrong with it is said there.
    """
    model = _document(assignment).get("model")
    dims = model.get("dims") if isinstance(model, Mapping) else None
    if not isinstance(dims, Mapping):
        return {}
    return {name: size for name, size in dims.items() if isinstance(name, str) and type(size) is int and size > 0}


def _document(assignment: Any) -> Mapping[Any, Any]:
    from mtpp.api.inputs.user_assignment import assignment_document
    from mtpp.api.output import SavedResult
    from mtpp.formats.io.source import read_source

    document = assignment
    if isinstance(assignment, SavedResult):
        document = assignment.document()
    elif isinstance(assignment, str | os.PathLike) and os.fspath(assignment) != "-":
        try:
            document = assignment_document(read_source(str(os.fspath(assignment))))
        except InputError:
            return {}
    return document if isinstance(document, Mapping) else {}
