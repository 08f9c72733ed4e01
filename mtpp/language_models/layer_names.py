"""Names of the ops of a layer graph by the parts of a model that they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mtpp.errors import InputError
from mtpp.language_models.layer_graph import DECODER_EMBEDDING, EMBEDDING, HEAD


@dataclass(frozen=True)
class LayerNames:
    """Ops of a layer graph.

    Attributes
    ----------
    embedding, head
        Ops around the layers; the head has the final norm.
    decoder, mtp, encoder
        Layers in order.
    decoder_embedding
        Embedding behind an encoder; None without one.
    """

    embedding: str
    decoder: Sequence[str]
    head: str
    mtp: Sequence[str] = ()
    encoder: Sequence[str] = ()
    decoder_embedding: str | None = None

    @classmethod
    def of(cls, names: Sequence[str]) -> LayerNames:
        """Tell the parts of a graph by the names of its ops in order.

        Raises
        ------
        InputError
            If the graph is none of a language model's layers.

        Examples
        --------
        >>> LayerNames.of(["embedding", "model.layers.0", "model.layers.1", "head"]).decoder
        ('model.layers.0', 'model.layers.1')
        """
        ends = [names.index(name) if name in names else -1 for name in (EMBEDDING, HEAD)]
        if ends[0] != 0 or ends[1] < 1:
            raise InputError("is no language model", parameter="model", remedy="give its folder or config.json")
        between, further = tuple(names[1 : ends[1]]), tuple(names[ends[1] + 1 :])
        if DECODER_EMBEDDING not in between:
            return cls(EMBEDDING, between, HEAD, further)
        middle = between.index(DECODER_EMBEDDING)
        encoder, decoder = between[:middle], between[middle + 1 :]
        return cls(EMBEDDING, decoder, HEAD, further, encoder, DECODER_EMBEDDING)
