"""Costs of synchronisation that a file of a model to be trained has to have."""

from __future__ import annotations

from mtpp.training.model import TrainingModel


def require_synchronisation(model: TrainingModel) -> TrainingModel:
    """Return *model* if its configurations for t > 1 have a cost of synchronisation for every edge of their layer.

    For t = 1 there is nothing to hand on: what is not there is 0.
    """
    places = model.places
    for i, t, c, choice in model.each_configuration():
        if t == 1:
            continue
        before, after = model.neighbours[model.layers[i].id]
        for sizes, others, key, what in (
            (choice.forward_sync_bytes, before, places.forward_sync, "from"),
            (choice.backward_sync_bytes, after, places.backward_sync, "to"),
        ):
            for other in others:
                if other not in sizes:
                    raise model.fault(
                        f"no cost of synchronisation over {t} devices for the edge {what} {other!r}",
                        places.configuration(i, t, c, key),
                        f'add it, in bytes: "{other}": …; 0 if there is none',
                    )
    return model
