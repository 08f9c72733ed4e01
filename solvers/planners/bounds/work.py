"""Lower bounds on the time and memory of any plan, from the costs of single layers."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from mtpp.inference.certificate import Tier
from mtpp.solvers.planners.bounds.gradient import gradient_bound
from mtpp.solvers.planners.layer_options import LayerOption, layer_options, least_by_layer, most_degrees
from mtpp.training.plan import TimeBound
from mtpp.training.problem import PlanningProblem

METHOD = "work"

MIXES = 1000
"""So many pairs of α and β are tried at most, evenly spread over those that there are."""


def work_bound(problem: PlanningProblem) -> TimeBound | None:
    """Return the best of five bounds on the time per sample of every plan; None if no plan exists.

    Let T be what a plan takes, f ≤ T the time of a stage S with degrees d and t, and let every layer v run as X(v).
    Crossing edges and gradients cost nothing or more, so d · f ≥ Σ over S of X(v).p. Only configurations with
    X.a + X.b ≤ M can be in a plan, as at least one micro-batch is in flight and other layers only add to the memory of
    a stage; "allowed" means these, for the degrees t that the problem has.

    ``devices``
        Σ d · t ≤ K over stages, so K · T ≥ Σ d · t · f ≥ Σ over all v of the least t · p allowed.
    ``degrees``
        Σ d ≤ D = min(N, K), and without data parallelism the number of layers, for there are no more stages. So D · T ≥
        Σ over all v of the least p allowed.
    ``mixed``
        Both at once, with α ≥ 0 for a device and β ≥ 0 for a micro-batch: (α · K + β · D) · T ≥ Σ d · (α · t + β) · f
        ≥ Σ over all v of the least (α · t + β) · p allowed. The best α and β are where that least one changes.
    ``layer``
        The stage with layer v takes X(v).p / d and its part of synchronising gradients, for the t, the d ≤ min(N, K/t)
        and the X(v) that are allowed; its other layers and its edges only add to that. In 1 / d this is concave (linear
        under the convention ``program``), so its least value is at the smallest or largest d.

    ``gradients``
        What :func:`~mtpp.solvers.planners.bounds.gradient.gradient_bound` adds to the first three.

    Nothing is left out of what a plan may do, so all hold under both conventions, with any schemes left out, and
    with N met exactly. Rational numbers throughout: tier ``exact``.

    Notes
    -----
    The proof of the first three holds ``total``, the sum, and for ``mixed`` also ``per_device`` and ``per_degree``: α
    and β, integers; that of ``layer`` holds the layer's id.
    O(layers · configurations) for three of them; ``mixed`` looks at all places where a least one changes, in floating
    point, and takes the best of them exactly.
    """
    if no_plan_because(problem) is not None:
        return None
    options = [layer_options(problem, v, problem.memory_bytes) for v in range(len(problem.model.layers))]
    shares = [(1, 0), (0, 1)]
    best_mix = _best_mix(problem, options)
    if best_mix is not None:
        shares.append(best_mix)
    bounds = [_shared(problem, options, *share) for share in shares]
    bounds.append(_single(problem, options))
    best = max(bounds, key=lambda bound: bound.value)
    return gradient_bound(problem, options, shares, best.value) or best


def no_plan_because(problem: PlanningProblem) -> str | None:
    """Return for people why there is no plan, if that is clear from single layers; None if there may be one."""
    if problem.exact_micro_batches and problem.micro_batches > most_degrees(problem):
        limit = most_degrees(problem)
        return f"degrees of data parallelism cannot sum up to {problem.micro_batches}, only to {limit} at most"
    least = least_memory(problem)
    if least > problem.memory_bytes:
        return f"any plan needs devices with at least {least} bytes of memory"
    return None


def least_memory(problem: PlanningProblem) -> int:
    """Return bytes that a device must have for there to be a plan; less is proven to be too little.

    The largest of: the least X.a + X.b of any layer, since it is in some stage; and what ``devices`` and ``degrees`` of
    :func:`work_bound` come to with X.a + X.b in place of X.p, for each device of a stage holds as much.
    O(layers · configurations).
    """
    by_devices = sum(least_by_layer(problem, lambda option: option.t * option.least_memory))
    alone = least_by_layer(problem, lambda option: option.least_memory)
    return max(*alone, -(-by_devices // problem.devices), -(-sum(alone) // most_degrees(problem)))


def _shared(
    problem: PlanningProblem, options: Sequence[Sequence[LayerOption]], per_device: int, per_degree: int
) -> TimeBound:
    total = sum(min((per_device * option.t + per_degree) * option.compute for option in here) for here in options)
    proof: dict[str, Any] = {"rule": "devices" if per_device else "degrees", "total": total}
    if per_device and per_degree:
        proof = {"rule": "mixed", "total": total, "per_device": per_device, "per_degree": per_degree}
    held = per_device * problem.devices + per_degree * most_degrees(problem)
    return TimeBound(Fraction(total, held), METHOD, Tier.EXACT, proof)


def _best_mix(problem: PlanningProblem, options: Sequence[Sequence[LayerOption]]) -> tuple[int, int] | None:
    """Return α and β above zero with the largest bound, as far as floating point can tell; None if none can matter.

    The sum is concave and piecewise linear in α : β, the divisor linear: their ratio is largest at a corner.
    """
    corners: set[tuple[int, int]] = set()
    for here in options:
        # Of the ways for one t only the fastest can be the least.
        fastest = {option.t: option.compute for option in sorted(here, key=lambda option: -option.compute)}
        for t, p in fastest.items():
            for other, q in fastest.items():
                per_device, per_degree = q - p, t * p - other * q
                if per_device > 0 and per_degree > 0:
                    corner = Fraction(per_device, per_degree)
                    corners.add((corner.numerator, corner.denominator))
    if not corners:
        return None
    mixes = sorted(corners, key=lambda mix: Fraction(*mix))
    mixes = mixes[:: -(-len(mixes) // MIXES)]
    weights = np.array(mixes, dtype=np.float64)
    weights /= weights.sum(axis=1, keepdims=True)
    work = np.zeros(len(mixes))
    for here in options:
        degrees = np.array([option.t for option in here], dtype=np.float64)
        times = np.array([option.compute for option in here], dtype=np.float64)
        work += ((weights[:, :1] * degrees + weights[:, 1:]) * times).min(axis=1)
    bounds = work / (weights @ np.array([problem.devices, most_degrees(problem)], dtype=np.float64))
    return mixes[int(bounds.argmax())]


def _single(problem: PlanningProblem, options: Sequence[Sequence[LayerOption]]) -> TimeBound:
    best: dict[int, tuple[int, int]] = {}
    for t in problem.degrees:
        fit = [d for d in problem.data_degrees if d * t <= problem.devices]
        best[t] = (fit[0], fit[-1])
    slowest = Fraction(-1)
    proof: dict[str, Any] = {}
    for layer, here in zip(problem.model.layers, options, strict=True):
        least = min(
            problem.stage_time(option.compute, option.choice.weight_ticks, d) for option in here for d in best[option.t]
        )
        if least > slowest:
            slowest, proof = least, {"rule": "layer", "layer": layer.id}
    return TimeBound(slowest, METHOD, Tier.EXACT, proof)
