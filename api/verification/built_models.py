"""Models of a verification that are functions of the user's: called once, before anything is checked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mtpp.api.verification.request import VerifyRequest
    from mtpp.api.verification.supplied_model import SuppliedModel


def built_models(request: VerifyRequest) -> VerifyRequest:
    """Return a request whose models are the programs that its functions build, where they are said to be functions."""
    from mtpp.api.inputs.python_models import TORCH, source_at
    from mtpp.api.verification.supplied_model import SuppliedModel

    if request.read_as.from_format != TORCH:
        return request
    models: list[str | SuppliedModel] = []
    for model in request.models:
        if isinstance(model, str):
            source = source_at(model, TORCH, request.max_model_bytes)
            models.append(SuppliedModel(sha256=source.sha256, again=source))
        else:
            models.append(model)
    return replace(request, models=tuple(models), read_as=replace(request.read_as, from_format=None))
