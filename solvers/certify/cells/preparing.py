"""The kernels that cells need, compiled before their clocks start."""

from __future__ import annotations

from collections.abc import Sequence

from mtpp.inference.system import System
from mtpp.solvers.machine_code.shipped import ships_code

_LOADED: set[tuple[object, ...]] = set()
"""What this process has loaded: once is enough."""


def compiled_for_cells(algorithm: str, bounds: Sequence[str], system: System) -> bool:
    """Forecast whether :func:`load_for_cells` finds machine code on disk."""
    if ships_code():
        return True
    from mtpp.solvers.compiling import compiled, compiled_bounds, tiny_instances

    return compiled_bounds(bounds) and all(compiled(instance, [algorithm]) for instance in tiny_instances(system))


def load_for_cells(algorithm: str, bounds: Sequence[str], system: System, most_ops: int) -> None:
    """Have the kernels ready of a partitioner and of some bounds, for graphs of up to so many ops; once a process."""
    from mtpp.solvers.compiling import load_bounds, load_kernels
    from mtpp.solvers.local_search.multilevel import LARGE

    key = (algorithm, tuple(bounds), system.limits_memory, system.peak, most_ops > LARGE)
    if key not in _LOADED:
        load_kernels([algorithm], system, most_ops)
        load_bounds(bounds, system)
        _LOADED.add(key)
