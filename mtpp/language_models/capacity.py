"""Capacity: the largest context, or the most sequences, whose caches fit into the memory that stages leave for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mtpp.language_models.cache import DEFAULT_TYPE, LayerCache
from mtpp.names import CONTEXT_OBJECTIVE


@dataclass(frozen=True)
class StageRoom:
    """Layers of a stage, and the memory that is left for their caches.

    Attributes
    ----------
    caches
        Of each of its layers.
    free_bytes
        Memory limit less weights and activations; None: no limit.
    """

    caches: Sequence[LayerCache]
    free_bytes: int | None = None

    def bytes(self, context: int, kv_dtype: str = DEFAULT_TYPE, source: int = 0) -> int:
        """Bytes of the caches of one sequence."""
        return sum(cache.bytes(context, kv_dtype, source) for cache in self.caches)


@dataclass(frozen=True)
class StagesCapacity:
    """Capacity of stages.

    Attributes
    ----------
    objective
        ``context`` or ``sequences``.
    value
        Tokens or sequences that fit everywhere; 0: not even one. None: any number.
    of_stages
        The same of each stage alone.
    """

    objective: str
    value: int | None
    of_stages: tuple[int | None, ...]

    @property
    def deciding(self) -> int | None:
        """First stage that can hold no more; None where no stage limits anything."""
        return None if self.value is None else self.of_stages.index(self.value)


def capacity_of_stages(
    stages: Sequence[StageRoom],
    *,
    objective: str = CONTEXT_OBJECTIVE,
    context: int = 4096,
    sequences: int = 1,
    kv_dtype: str = DEFAULT_TYPE,
    source: int = 0,
) -> StagesCapacity:
    """Return the capacity of given stages: the stage with the least room for its own layers decides.

    Parameters
    ----------
    objective
        ``context``: tokens of each of *sequences*; ``sequences``: those of *context* tokens.
    source
        Tokens of the encoder.

    Examples
    --------
    Qwen3-30B on two stages: the one of 16 layers has 3.18 GiB left, the one of 32 layers 6.5 GiB.

    >>> layer, gib = LayerCache(per_token=1024), 2**30
    >>> capacity_of_stages([StageRoom([layer] * 32, 13 * gib // 2), StageRoom([layer] * 16, 318 * gib // 100)])
    StagesCapacity(objective='context', value=104202, of_stages=(106496, 104202))
    """
    of_context = objective == CONTEXT_OBJECTIVE

    def of_stage(stage: StageRoom) -> int | None:
        if of_context:
            return _largest_context(stage, sequences, kv_dtype, source)
        return _most_sequences(stage, context, kv_dtype, source)

    each = tuple(of_stage(stage) for stage in stages)
    return StagesCapacity(objective, min((one for one in each if one is not None), default=None), each)


def _largest_context(stage: StageRoom, sequences: int, kv_dtype: str, source: int) -> int | None:
    if stage.free_bytes is None:
        return None
    free = stage.free_bytes // sequences
    return largest(
        lambda context: stage.bytes(context, kv_dtype, source) <= free, settled_context(stage.caches, free, kv_dtype)
    )


def _most_sequences(stage: StageRoom, context: int, kv_dtype: str, source: int) -> int | None:
    if stage.free_bytes is None:
        return None
    one = stage.bytes(context, kv_dtype, source)
    if one == 0:
        return None if stage.free_bytes >= 0 else 0
    return max(0, stage.free_bytes // one)


def settled_context(
    caches: Sequence[LayerCache], free_bytes: int, kv_dtype: str = DEFAULT_TYPE, *, source_grows: bool = False
) -> int:
    """Return a context from which on nothing changes in *free_bytes*: windows are full, growing caches do not fit.

    Parameters
    ----------
    source_grows
        Whether an encoder reads as many tokens.
    """

    def size(cache: LayerCache, context: int) -> int:
        return cache.bytes(context, kv_dtype, context if source_grows else 0)

    settled = max([1, *(cache.window for cache in caches if cache.window is not None)])
    # types of elements have fractions of bytes
    many = 2**20
    growth = [size(cache, settled + many) - size(cache, settled) for cache in caches]
    least = min((one for one in growth if one), default=0)
    return settled + many * (max(0, free_bytes) // least + 1) if least else settled


def largest(holds: Callable[[int], bool], settled: int) -> int | None:
    """Return the largest number from 1 on that holds, where a number that holds lets all lower ones hold.

    Parameters
    ----------
    settled
        If it holds, all numbers do.

    Returns
    -------
    int or None
        0 where none holds; None where all do.

    Notes
    -----
    At most 2·log₂(settled) + 2 calls, of numbers at most twice the largest one but for *settled*.

    Examples
    --------
    >>> largest(lambda number: number <= 37, 1000)
    37
    """
    below, above = 0, 1
    while above < settled and holds(above):
        below, above = above, 2 * above
    if above >= settled:
        if holds(settled):
            return None
        above = settled
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (middle, above) if holds(middle) else (below, middle)
    return below
