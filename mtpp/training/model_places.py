"""Places of a training model's parts in its file, so that errors lead to a place that a user can look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mtpp.document_shape import pointer


@dataclass(frozen=True)
class ModelPlaces:
    """JSON pointers (RFC 6901) into the file of a training model, whose layers and edges are in the file's order.

    Attributes
    ----------
    source
        What messages call the file; None: the caller knows.
    layers, edges
        Keys of the two lists.
    configurations
        Key of a layer's configurations.
    time, forward_sync, backward_sync
        Keys in a configuration.
    """

    source: str | None = None
    layers: str = "layers"
    edges: str = "edges"
    configurations: str = "configurations"
    time: str = "time"
    forward_sync: str = "sync_in"
    backward_sync: str = "sync_out"

    def layer(self, index: int, *keys: str | int) -> str:
        """Return the place of the layer at *index*, or of what it has under *keys*."""
        return pointer(self.layers, index, *keys)

    def edge(self, index: int) -> str:
        """Return the place of the edge at *index*."""
        return pointer(self.edges, index)

    def configuration(self, layer: int, degree: int, index: int, *keys: str | int) -> str:
        """Return the place of a configuration for t = *degree*, or of what it has under *keys*."""
        return self.layer(layer, self.configurations, degree, index, *keys)


OWN_FORMAT: Final = ModelPlaces()
"""Places in a file of the native format, and in a model that was never in a file."""
