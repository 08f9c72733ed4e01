"""Numbers by which proofs call tensors."""

from __future__ import annotations

import numpy as np

from mtpp.inference.graph import Int64Array
from mtpp.inference.instance import Instance


def tensor_places(instance: Instance) -> Int64Array:
    """Return the position of each tensor among those that at least two ops touch."""
    return np.cumsum(np.diff(instance.pin_offsets) > 1) - 1
