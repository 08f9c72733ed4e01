"""Architectures that transformers knows: built on the meta device, without weights, and counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mtpp.formats.language_models.skeleton import Skeleton
from mtpp.formats.language_models.tensor_parts import Place, by_number, by_place
from mtpp.language_models.cache import LayerCache
from mtpp.language_models.language_model import DecoderLayer, Part, Weight
from mtpp.runtime.pytorch.meta_model import meta_model

_TOKENS = 16


def counted(values: Mapping[str, Any], source: str, element_bytes: int) -> tuple[Skeleton, str] | None:
    """Count the parameters and the caches of an architecture; None where transformers is absent or does not know it.

    Parameters
    ----------
    values
        Keys of a configuration. No code but that of transformers is run.
    element_bytes
        Bytes of a parameter.

    Returns
    -------
    Parts, and a note on the origin of the caches.

    Raises
    ------
    InputError
        If transformers refuses the configuration.
    """
    model = meta_model(values, source)
    if model is None:
        return None
    import torch

    caches = _caches(model, torch)
    note = "caches as it allocates them" if caches else "caches are not counted, it does not run without weights"
    return _parts(model, caches, element_bytes), note


def _parts(model: Any, caches: Mapping[int, LayerCache], element_bytes: int) -> Skeleton:
    placed = by_place(
        Weight(name, tuple(parameter.shape), parameter.numel(), parameter.numel() * element_bytes)
        for name, parameter in model.named_parameters()
    )
    layers = []
    for part in ("encoder", "decoder", "mtp"):
        for number, (path, weights) in sorted(by_number(placed, part).items()):
            cache = caches.get(number, LayerCache()) if part == "decoder" else LayerCache()
            layers.append(DecoderLayer(tuple(weights), path, part, _kind(cache), cache))
    embedding, head = model.get_input_embeddings(), model.get_output_embeddings()
    tied = head is not None and embedding.weight is head.weight
    return Skeleton(
        tuple(layers),
        (),
        Part(tuple(placed.get(Place("embedding"), ()))),
        Part(tuple(placed.get(Place("head"), ()))),
        Part(tuple(placed.get(Place("other"), ()))),
        tied,
    )


def _kind(cache: LayerCache) -> str | None:
    if cache.per_token:
        return "hybrid" if cache.state else "full" if cache.window is None else "sliding"
    return "recurrent" if cache.bytes_of_states else None


def _caches(model: Any, torch: Any) -> dict[int, LayerCache]:
    """Return the cache of each layer; none where a model does not run without weights."""
    found = []
    for tokens in (_TOKENS, 2 * _TOKENS):
        try:
            with torch.no_grad():
                inputs = torch.zeros((1, tokens), dtype=torch.long, device="meta")
                result = model(input_ids=inputs, use_cache=True)
            found.append([_held(layer) for layer in result.past_key_values.layers])
        except Exception:  # any of transformers
            return {}
    caches = {}
    for number, ((keys, states), (more, _)) in enumerate(zip(*found, strict=True)):
        windows = getattr(result.past_key_values.layers[number], "sliding_window", None)
        per_token = keys // _TOKENS if windows is None or more > keys else keys // max(1, min(_TOKENS, windows - 1))
        caches[number] = LayerCache(per_token, windows if isinstance(windows, int) else None, state=states)
    return caches


def _held(layer: Any) -> tuple[int, int]:
    """Return the elements of keys and values, and of states."""
    tokens = sum(_elements(getattr(layer, name, None)) for name in ("keys", "values"))
    return tokens, sum(_elements(getattr(layer, name, None)) for name in ("conv_states", "recurrent_states"))


def _elements(value: Any) -> int:
    if hasattr(value, "numel"):
        return int(value.numel())
    inner: Iterable[Any] = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return sum(map(_elements, inner))
