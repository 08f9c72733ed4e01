"""An instance as the flat arrays that kernels take, each set of them as one argument.

Read-only arrays are another type to numba: an instance's arrays are copied, so that each kernel compiles once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtpp.inference.graph import Int32Array, Int64Array
from mtpp.inference.instance import Instance
from mtpp.solvers.stage_cost.cost_arrays import CostArrays, GroundArrays, cost_arrays, ground_arrays, shared_weights


class SlicingArrays(NamedTuple):
    """What the kernels that slice an order need of an instance.

    Attributes
    ----------
    costs
        Of stages, by ops and tensors.
    pin_offsets
        Differences are the numbers of ops that touch each tensor, int64, shape (m + 1,); weights that several ops read
        are tensors to *costs*, so here as well.
    op_tensor_offsets, op_tensors
        Tensors that each op makes or reads, CSR, int64, shape (n + 1,), and int32.
    ground
        What stages hold when they run their ops in the graph's order; None if nothing depends on that. None is a type
        of its own to numba: kernels are then compiled without a trace of it.
    """

    costs: CostArrays
    pin_offsets: Int64Array
    op_tensor_offsets: Int64Array
    op_tensors: Int32Array
    ground: GroundArrays | None


class OrderArrays(NamedTuple):
    """What the kernels that make topological orders need of an instance.

    Attributes
    ----------
    successor_offsets, successors
        Distinct successors of each op, CSR, int64, shape (n + 1,), and int32.
    indegree
        Number of distinct predecessors, int32, shape (n,).
    """

    successor_offsets: Int64Array
    successors: Int32Array
    indegree: Int32Array


def slicing_arrays(instance: Instance) -> SlicingArrays:
    """Return what the slicing kernels need of *instance*; O(n + pins), do it once per search."""
    weights = shared_weights(instance)
    offsets, tensors = instance.op_tensors
    if weights.names:
        read = (instance.tensor_count + weights.weight_of_reader).astype(np.int32)
        pins = np.concatenate([instance.pins, weights.readers])
        offsets, tensors = grouped(pins, np.concatenate([instance.tensor_of_pin, read]), instance.op_count)
    return SlicingArrays(
        cost_arrays(instance),
        np.concatenate([instance.pin_offsets, instance.pin_offsets[-1] + weights.offsets[1:]]),
        offsets,
        tensors,
        ground_arrays(instance) if instance.peaks_in_order else None,
    )


def order_arrays(instance: Instance) -> OrderArrays:
    """Return what Kahn's algorithm needs of *instance*."""
    offsets, successors = instance.successors
    indegree = np.bincount(successors, minlength=instance.op_count).astype(np.int32)
    return OrderArrays(offsets, successors, indegree)


def grouped(keys: Int32Array, values: Int32Array, count: int) -> tuple[Int64Array, Int32Array]:
    """Return *values* by their keys, each from 0 to *count* − 1, CSR: offsets, int64, and values, in their order."""
    offsets = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(keys, minlength=count), out=offsets[1:])
    return offsets, values[np.argsort(keys, kind="stable")]
