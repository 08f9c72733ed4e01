"""Claims on random graphs on devices, as a second search takes them, from the definitions."""

from __future__ import annotations

from math import ceil

from random_devices import RandomCase

from mtpp.inference.instance import Instance
from mtpp.solvers.recheck.claim import DownsetClaim, Edge, GroundTensor, SharedBytes, StageMemory
from mtpp.solvers.recheck.unequal import UnequalClaim


def claim_of(case: RandomCase, instance: Instance, limit: int, *, whole: bool) -> UnequalClaim:
    """Return the claim that no plan of an instance of a case has all stages cost at most *limit*, from the definitions.

    If not *whole*, each weight that several ops read is charged on its last reader.
    """
    in_order, n = case.peak == "order", case.ops
    ground = tuple(GroundTensor(size, u, readers) for u, readers, _, size in case.tensors if size and in_order)
    params, shared = list(case.params), []
    for size, readers in case.weights:
        params[readers[-1]] += size
        shared.append(SharedBytes(size, readers[-1], sum(1 << v for v in readers)))
    claims = []
    for device in instance.machine.classes:
        rate = device.link.rate
        memory = StageMemory(
            device.fast_memory_bytes,
            device.memory_bytes,
            rate.numerator,
            None if in_order else device.activation_reserve_bytes,
            tuple(range(n)) if in_order else (),
            ground,
            rate.denominator,
        )
        edges = (
            Edge(ceil(moved / device.link.speed) + device.link.latency_ps, u, readers)
            for u, readers, moved, _ in case.tensors
        )
        work = tuple(ceil(work / device.speed) for work in case.work)
        maximal = not (instance.peaks_in_order or whole)
        rules = {"crossings": False, "maximal": maximal}
        held = tuple(shared) if whole else ()
        claims.append(DownsetClaim(work, tuple(params), tuple(edges), memory, n, limit, **rules, shared=held))
    return UnequalClaim(tuple(claims), tuple(instance.machine.class_of), instance.most_used, instance.machine.free)
