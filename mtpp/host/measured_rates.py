"""Rates of this machine's processor, measured in a fraction of a second."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from mtpp.host.capacity import available_cores

_SIDE = 1024
"""Rows and columns of the matrices that are multiplied."""

_COPIED_BYTES = 2**26
"""Of each core: far above its caches."""

_REPEATS = 5


def peak_flops_per_s() -> int:
    """Return the rate of products of float32 matrices on all cores, the best of a few."""
    one = np.full((_SIDE, _SIDE), 1.5, dtype=np.float32)
    product = np.empty_like(one)
    return int(2 * _SIDE**3 / _best_s(lambda: np.matmul(one, one, out=product)))


def memory_bandwidth_bytes_per_s() -> int:
    """Return the bytes read and written per second by copies on all cores, the best of a few."""
    cores = available_cores()
    sources = [np.ones(_COPIED_BYTES // 8, dtype=np.int64) for _ in range(cores)]
    targets = [np.zeros_like(source) for source in sources]
    with ThreadPoolExecutor(cores) as threads:
        best = _best_s(lambda: list(threads.map(np.copyto, targets, sources)))
    return int(2 * _COPIED_BYTES * cores / best)


def _best_s(run: Callable[[], object]) -> float:
    run()
    taken = []
    for _ in range(_REPEATS):
        begin = time.perf_counter()
        run()
        taken.append(time.perf_counter() - begin)
    return max(min(taken), 1e-9)
