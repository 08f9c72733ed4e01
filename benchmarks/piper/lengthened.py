"""A model made of repeated layers with more of them: how the paper of Piper makes larger BERTs from its profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mtpp.errors import InputError
from mtpp.training.model import Configuration, Edge, Layer, LayerId, TrainingModel


def lengthened(model: TrainingModel, repeated: Sequence[int], count: int) -> TrainingModel:
    """Return *model* with *count* of its repeated layers: copies of the middle one, one after the other, behind it.

    Parameters
    ----------
    repeated
        Positions of the repeated layers, at least three, each of which reads the output of the one before it.

    Returns
    -------
    A model in which every copy costs what the middle layer costs, and reads what that reads: the layer before it, and
    layers outside the chain, such as a mask. What the middle layer hands to the next one goes through the copies. Names
    end in the new layers' ids.

    Raises
    ------
    InputError
        If there are fewer than three repeated layers, if one does not read from the one before it or is read outside
        the chain where copies go, or if *count* is less than there are.
    """
    chain = [model.layers[v] for v in repeated]
    if len(chain) < 3 or count < len(chain):
        raise InputError(
            f"{len(chain)} repeated layers cannot become {count}", remedy="ask for more, of at least three"
        )
    sizes = {(edge.source, edge.target): edge for edge in model.edges}
    i = len(chain) // 2
    before, middle, following = chain[i - 1], chain[i], chain[i + 1]
    read_by = [target for source, target in sizes if source == middle.id]
    if (before.id, middle.id) not in sizes or read_by != [following.id]:
        raise InputError(f"layer {middle.name!r} does not stand between two others of its kind only")
    ids = _new_ids(model, count - len(chain))
    if not ids:
        return model
    line = [before.id, middle.id, *ids, following.id]
    outside = {source for source, target in sizes if target == middle.id and source != before.id}
    copies = [
        _copy(middle, line[c], {before.id: line[c - 1]}, {following.id: line[c + 1]}) for c in range(2, len(line) - 1)
    ]
    layers: list[Layer] = []
    for layer in model.layers:
        if layer.id == middle.id:
            layers += [_renamed(layer, {}, {following.id: ids[0]}), *copies]
        elif layer.id == following.id:
            layers.append(_renamed(layer, {middle.id: ids[-1]}, {}))
        elif layer.id in outside:
            layers.append(_read_more(layer, middle.id, ids))
        else:
            layers.append(layer)
    edges = []
    for edge in model.edges:
        if (edge.source, edge.target) == (middle.id, following.id):
            into = sizes[before.id, middle.id]
            edges += [replace(into, source=line[c - 1], target=line[c]) for c in range(2, len(line) - 1)]
            edges.append(replace(edge, source=ids[-1]))
        else:
            edges.append(edge)
            if edge.target == middle.id and edge.source in outside:
                edges += [Edge(edge.source, identity, edge.communication_bytes) for identity in ids]
    return TrainingModel(f"{model.name}-{count}", model.time_unit, layers, edges, model.defaults)


def _new_ids(model: TrainingModel, count: int) -> list[LayerId]:
    taken = {layer.id for layer in model.layers}
    numbers = [identity for identity in taken if isinstance(identity, int)]
    if len(numbers) == len(taken):
        return [max(numbers) + 1 + c for c in range(count)]
    first = 1
    while any(f"copy {first + c}" in taken for c in range(count)):
        first += 1
    return [f"copy {first + c}" for c in range(count)]


def _copy(
    layer: Layer, identity: LayerId, before: Mapping[LayerId, LayerId], following: Mapping[LayerId, LayerId]
) -> Layer:
    name = f"{layer.name.rstrip('0123456789 #')} #{identity}"
    return replace(_renamed(layer, before, following), id=identity, name=name)


def _renamed(layer: Layer, before: Mapping[LayerId, LayerId], following: Mapping[LayerId, LayerId]) -> Layer:
    """Return the layer with other neighbours."""

    def changed(one: Configuration) -> Configuration:
        return replace(
            one,
            forward_sync_bytes={before.get(u, u): size for u, size in one.forward_sync_bytes.items()},
            backward_sync_bytes={following.get(w, w): size for w, size in one.backward_sync_bytes.items()},
        )

    return replace(
        layer, configurations={t: [changed(one) for one in here] for t, here in layer.configurations.items()}
    )


def _read_more(layer: Layer, reader: LayerId, ids: Sequence[LayerId]) -> Layer:
    """Return the layer with what its configurations pay for *reader* paid for each of *ids* as well."""

    def changed(one: Configuration) -> Configuration:
        sizes = one.backward_sync_bytes
        more = dict.fromkeys(ids, sizes[reader]) if reader in sizes else {}
        return replace(one, backward_sync_bytes={**sizes, **more})

    return replace(
        layer, configurations={t: [changed(one) for one in here] for t, here in layer.configurations.items()}
    )
