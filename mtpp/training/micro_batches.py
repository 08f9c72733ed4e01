"""Number of micro-batches, given as such or by the sizes of a batch (appendix A of the paper)."""

from __future__ import annotations

from dataclasses import dataclass

from mtpp.errors import InputError
from mtpp.ranges import MOST_MICRO_BATCHES


@dataclass(frozen=True)
class BatchSizes:
    """Sizes that N follows from.

    Attributes
    ----------
    samples
        Of the largest safe batch: one iteration, whose gradients are applied together.
    micro_batch_size
        Samples that a device takes at once.
    gradient_accumulation
        Passes to an update.
    """

    samples: int
    micro_batch_size: int
    gradient_accumulation: int


@dataclass(frozen=True)
class MicroBatches:
    """N, and where it comes from.

    Attributes
    ----------
    text
        N for people, with the sizes that it follows from.
    size
        Samples of a micro-batch; None where nobody said.
    sizes
        Sizes that N follows from; None where N was given as such.
    """

    count: int
    text: str
    size: int | None = None
    sizes: BatchSizes | None = None


def micro_batches_of(
    max_micro_batches: int | None = None,
    *,
    batch_size: int | None = None,
    micro_batch_size: int | None = None,
    gradient_accumulation: int | None = None,
) -> MicroBatches | None:
    """Return N = ⌊batch size / (gradient accumulation · micro-batch size)⌋, or as given; None where neither is.

    Raises
    ------
    InputError
        If both are given, a size is missing, or N comes to 0 or above :data:`mtpp.ranges.MOST_MICRO_BATCHES`.
    """
    sizes = {
        "batch_size": batch_size,
        "micro_batch_size": micro_batch_size,
        "gradient_accumulation": gradient_accumulation,
    }
    given = [f"‹{name}›" for name, size in sizes.items() if size is not None]
    if max_micro_batches is not None:
        if given:
            raise InputError(f"‹max_micro_batches› and {given[0]} say the same: give one of them")
        return MicroBatches(max_micro_batches, f"{max_micro_batches:,}")
    if not given:
        return None
    if batch_size is None or micro_batch_size is None:
        missing = "‹batch_size›" if batch_size is None else "‹micro_batch_size›"
        raise InputError(f"{given[0]} needs {missing} as well: N = batch size / (accumulation · micro-batch size)")
    return _quotient(batch_size, micro_batch_size, gradient_accumulation or 1)


def _quotient(batch: int, micro: int, steps: int) -> MicroBatches:
    count, rest = divmod(batch, steps * micro)
    text = f"{batch:,} / ({steps:,} × {micro:,})" if steps > 1 else f"{batch:,} / {micro:,}"
    if rest:
        text = f"⌊{text}⌋"
    if count < 1:
        raise InputError(f"no micro-batch fits into the batch: N = {text} = 0")
    if count > MOST_MICRO_BATCHES:
        raise InputError(f"N = {text} is above {MOST_MICRO_BATCHES:,}")
    return MicroBatches(count, f"{count:,} = {text}", micro, BatchSizes(batch, micro, steps))
