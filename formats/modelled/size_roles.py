"""Roles of the open sizes of a model's inputs: batch, height, tokens, samples …, by names, ranks and types."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What a size counts."""

    BATCH = "batch"
    CHANNELS = "channels"
    DEPTH = "depth"
    HEIGHT = "height"
    WIDTH = "width"
    TOKENS = "tokens"
    PAST = "cached tokens"
    TOTAL = "tokens with cached ones"
    SAMPLES = "samples"
    FRAMES = "frames"
    DATA = "depends on data"
    OTHER = "size"


@dataclass(frozen=True)
class InputShape:
    """An input of a model.

    Attributes
    ----------
    is_float
        Whether its elements are no whole numbers and no truth values.
    dims
        Sizes, names of symbolic ones, None for what has none.
    """

    name: str
    is_float: bool
    dims: Sequence[int | str | None]


_WORDS: tuple[tuple[Role, frozenset[str]], ...] = (
    (Role.PAST, frozenset(("past", "cached"))),
    (Role.TOTAL, frozenset(("total", "kv", "all"))),
    (Role.BATCH, frozenset(("batch", "batchsize", "bs", "batches"))),
    (Role.HEIGHT, frozenset(("height", "h", "rows", "row", "imgh"))),
    (Role.WIDTH, frozenset(("width", "w", "columns", "cols", "column", "imgw"))),
    (Role.CHANNELS, frozenset(("channel", "channels", "c"))),
    (Role.OTHER, frozenset(("dim", "embedding", "feature", "features", "hidden"))),
    (Role.SAMPLES, frozenset(("audio", "sample", "samples", "signal", "wav", "wave", "waveform"))),
    (Role.FRAMES, frozenset(("frame", "frames", "time", "timesteps", "t"))),
    (
        Role.TOKENS,
        frozenset(
            ("len", "length", "seq", "seqlen", "seqlength", "sequence", "sequencelength", "text", "token", "tokens",
             "words")
        ),
    ),
)  # fmt: skip
"""Words in the names of symbolic sizes, in the order in which they decide."""

_SIDES = frozenset((Role.HEIGHT, Role.WIDTH))
_SOUND = frozenset(("audio", "pcm", "signal", "sound", "speech", "wav", "wave", "waveform"))
_STATE = frozenset(("c", "c0", "cell", "cn", "cx", "h", "h0", "hidden", "hn", "hx", "memory", "state", "states"))
_EMBEDDED = frozenset(("hidden", "states"))
"""What transformers call embedded tokens."""

_CACHE = frozenset(("cache", "kv", "past", "present"))
_IMAGE_CHANNELS = (1, 3, 4)
_CHANNELS_FIRST = {4: (Role.BATCH, Role.CHANNELS, Role.HEIGHT, Role.WIDTH)}
_CHANNELS_LAST = {4: (Role.BATCH, Role.HEIGHT, Role.WIDTH, Role.CHANNELS)}
_VOLUME = (Role.BATCH, Role.CHANNELS, Role.DEPTH, Role.HEIGHT, Role.WIDTH)


def words_of(name: str) -> frozenset[str]:
    """Return the words that a name is made of, in lower case."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return frozenset(re.findall(r"[a-z]+\d?", apart.lower()))


def is_state(one: InputShape) -> bool:
    """Say whether an input is what an earlier run left: a stream is fed piece by piece then."""
    words = words_of(one.name)
    return one.is_float and len(one.dims) > 1 and bool(words & _STATE) and not words >= _EMBEDDED


def roles_of(one: InputShape) -> tuple[Role, ...]:
    """Return the role of every axis of an input; those of fixed sizes as well, for what they tell of the others."""
    by_place = _by_place(one)
    return tuple(_by_name(dim, one, axis) or by_place[axis] for axis, dim in enumerate(one.dims))


def _by_name(dim: int | str | None, one: InputShape, axis: int) -> Role | None:
    if not isinstance(dim, str):
        return None
    words = words_of(dim)
    if words == {"b"} or (words == {"n"} and axis == 0):  # in longer names, as n_tokens, they say nothing
        return Role.BATCH
    if "past" in words and ("+" in dim or "total" in words):
        return Role.TOTAL
    for role, known in _WORDS:
        if words & known and not (role in _SIDES and len(one.dims) < 3):  # rows of a table are no picture's
            if role is Role.TOKENS and _is_sound(one):
                return Role.SAMPLES
            if role is Role.SAMPLES and words == {"samples"} and axis == 0 and len(one.dims) > 1:
                return Role.BATCH  # n_samples of a table
            return role
    return None


def _is_sound(one: InputShape) -> bool:
    """Say whether an input is a wave: numbers along one axis, and a batch."""
    if not one.is_float or is_state(one):
        return False
    if words_of(one.name) & _SOUND:
        return True
    return len(one.dims) == 2 and not isinstance(one.dims[1], int)


def _by_place(one: InputShape) -> tuple[Role, ...]:
    """Return the roles that rank, type and fixed sizes suggest."""
    dims, rank = one.dims, len(one.dims)
    words = words_of(one.name)
    if is_state(one) and rank == 3:
        return (Role.OTHER, Role.BATCH, Role.OTHER)
    if words & _CACHE and rank >= 3:
        inner = [Role.OTHER] * (rank - 1)
        inner[min(2, rank - 1) - 1] = Role.PAST
        return (Role.BATCH, *inner)
    if rank == 0:
        return ()
    if rank == 1:
        return (Role.SAMPLES if one.is_float else Role.BATCH,)
    if rank == 2:
        return (Role.BATCH, Role.SAMPLES if _is_sound(one) else Role.TOKENS)
    if rank == 3:
        return _of_three(one, words)
    if rank == 4:
        if words & {"mask"}:
            return (Role.BATCH, Role.OTHER, Role.TOKENS, Role.TOTAL)
        if dims[3] in _IMAGE_CHANNELS and dims[1] not in _IMAGE_CHANNELS:
            return _CHANNELS_LAST[4]
        return _CHANNELS_FIRST[4]
    if rank == 5:
        return _VOLUME
    return (Role.BATCH, *(Role.OTHER for _ in dims[1:]))


def _of_three(one: InputShape, words: frozenset[str]) -> tuple[Role, ...]:
    """Tell features along time from a wave with channels, an image without a batch, and embedded tokens."""
    _, middle, last = one.dims
    if last in _IMAGE_CHANNELS and not isinstance(middle, int):
        return (Role.HEIGHT, Role.WIDTH, Role.CHANNELS)
    if isinstance(middle, int) and not isinstance(last, int):
        along = Role.SAMPLES if middle <= 2 or words & _SOUND else Role.FRAMES
        return (Role.BATCH, Role.CHANNELS, along)
    return (Role.BATCH, Role.TOKENS, Role.OTHER)
