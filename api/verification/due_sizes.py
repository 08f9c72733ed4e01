"""Sizes that a document is held to: given by name, one for all others, or those that are proposed for its model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError
from mtpp.formats.modelled.size_terms import OTHERS, SizeTerms, are_proposed, named_sizes, size_of_others

if TYPE_CHECKING:
    from mtpp.api.verification.request import VerifyRequest
    from mtpp.api.verification.supplied_model import SuppliedModel


def due_sizes(
    due: SizeTerms,
    stated: Mapping[str, int],
    model: str | SuppliedModel | None,
    system: Mapping[str, Any],
    request: VerifyRequest,
) -> dict[str, int]:
    """Return the size that each dimension of a document has to have.

    Parameters
    ----------
    due
        What the caller asks for.
    stated
        What the document says.
    model
        The model that it is about, if it is at hand: proposals are made for it anew.
    system
        The document's.
    """
    sizes = named_sizes(due)
    others = size_of_others(due)
    if others is not None:
        return {**dict.fromkeys(stated, others), **sizes}
    return {**_proposed(sizes, model, system, request), **sizes} if are_proposed(due) else sizes


def _proposed(
    sizes: Mapping[str, int], model: str | SuppliedModel | None, system: Mapping[str, Any], request: VerifyRequest
) -> dict[str, int]:
    from mtpp.formats.graphs.recognise import read_graph
    from mtpp.formats.io.folder import model_at
    from mtpp.formats.io.source import read_source
    from mtpp.machine.device import Device

    again = model if model is None or isinstance(model, str) else model.again
    if again is None:
        raise InputError("are proposed for a file", parameter="auto_dims", remedy="give the model with ‹model›")
    source = read_source(model_at(again), max_bytes=request.max_model_bytes) if isinstance(again, str) else again
    graph = read_graph(
        source,
        dims={**sizes, OTHERS: "auto"},
        system=Device.from_document(dict(system)),
        spare_dims=True,
        **request.read_as.values(),
    )
    return dict(graph.metadata.get("dims", {}))
