"""Lower bounds on the Time-Per-Sample of every training plan, re-derived.

Part of the independent verifier (:mod:`mtpp.verify`). Take any plan and let T be its Time-Per-Sample: no stage takes
longer. A stage with degrees d and t that holds layers v, run in ways X(v), takes at least what layers alone take, as
all else is at least zero:

    T ≥ Σ_{v ∈ S} X(v).p / d                                                       (1)

Its memory is Σ (a·⌈s/d⌉ + b) ≥ X(v).a + X(v).b, since s ≥ d. So X(v) is one of the ways *that fit*: the schemes allow
it, t ≤ K, and a + b ≤ M.

``devices``: (1) times d·t, over all stages, gives Σ_stages d·t·T ≥ Σ_v t·X(v).p. The devices come to at most K, hence
T ≥ Σ_v min t·p / K, the minimum over all ways that fit, of all degrees t.

``degrees``: (1) times d likewise gives T ≥ Σ_v min p / N, as the degrees d come to at most N.

``layer``: the stage that holds v takes at least what v itself adds to compute and gradients,
T ≥ min p/d + g(d)·⌈4·w/B⌉, where g(d) is :func:`mtpp.verify_training_stages.gradient_share`, over all degrees d that
are allowed and all ways that fit with d·t ≤ K. Edges are left out: its neighbours may be in the same stage.

A document may state less than what is derived: that is true as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mtpp.verify_document import Path, choice, record, refuse, whole
from mtpp.verify_training_document import layer_id
from mtpp.verify_training_model import TickModel, Way
from mtpp.verify_training_stages import gradient_share

TRAINING_PROOF = ("lower_bound", "proof")
"""Where a training plan has the proof of its bound."""

_RULES = {"devices": {"total": whole()}, "degrees": {"total": whole()}, "layer": {"layer": layer_id}}


@dataclass(frozen=True)
class TrainingClaim:
    """A lower bound as a plan states it, and all it may rest on.

    Attributes
    ----------
    system
        The plan's.
    value
        In ticks: every plan is claimed to take at least this.
    proof
        As it stands in the document.
    """

    model: TickModel
    system: dict[str, Any]
    value: Fraction
    proof: dict[str, Any]
    path: Path = TRAINING_PROOF


def usable_degrees(model: TickModel, system: dict[str, Any]) -> list[int]:
    """Return the degrees of tensor parallelism that plans may use, ascending."""
    known = {t for ways in model.ways for t in ways if t <= system["devices"]}
    return sorted(t for t in known if t == 1 or system["tensor_parallel"])


def usable_ways(model: TickModel, system: dict[str, Any], layer: int, t: int) -> list[Way]:
    """Return in what ways a layer may be run on t devices, whatever memory it takes."""
    return [way for way in model.ways[layer].get(t, ()) if system["recompute"] or not way.recomputes]


def usable_data_degrees(system: dict[str, Any]) -> list[int]:
    """Return the degrees of data parallelism that a stage may have, ascending."""
    most = min(system["devices"], system["max_micro_batches"]) if system["data_parallel"] else 1
    divide = system["convention"] == "program"
    return [d for d in range(1, most + 1) if not divide or system["max_micro_batches"] % d == 0]


def ways_that_fit(model: TickModel, system: dict[str, Any], layer: int) -> Iterator[tuple[int, Way]]:
    """Yield each degree t, and each way to run a layer on t devices that leaves it room on its own."""
    for t in usable_degrees(model, system):
        for way in usable_ways(model, system, layer, t):
            if way.a + way.b <= system["memory_bytes"]:
                yield t, way


def check_work(claim: TrainingClaim) -> tuple[bool, str]:
    """Re-check a bound of method ``work``.

    Returns
    -------
    Whether it holds, and that in words, or what is false about it.

    Raises
    ------
    InputError
        If the proof is malformed.

    Notes
    -----
    O(layers · ways), times the degrees of data parallelism for ``layer``.
    """
    proof = claim.proof
    if "rule" not in proof:
        refuse("missing key", (*claim.path, "rule"))
    choice(*_RULES)(proof["rule"], (*claim.path, "rule"))
    rule = proof["rule"]
    record({"rule": choice(rule), **_RULES[rule]})(proof, claim.path)
    reached = _layer_bound(claim) if rule == "layer" else _total_bound(claim, rule)
    if isinstance(reached, str):
        return False, f"work: {reached}"
    if claim.value > reached:
        return False, f"work: the rule {rule!r} gives {reached} ticks, the plan says {claim.value}"
    return True, f"work: at least {reached} ticks by the rule {rule!r}"


def _total_bound(claim: TrainingClaim, rule: str) -> Fraction | str:
    model, system = claim.model, claim.system
    total = 0
    for layer, name in enumerate(model.ids):
        costs = [(t if rule == "devices" else 1) * way.compute for t, way in ways_that_fit(model, system, layer)]
        if not costs:
            return f"layer {name!r} does not fit a device in any way"
        total += min(costs)
    if claim.proof["total"] > total:
        return f"the plan says that layers come to {claim.proof['total']} ticks, it is {total}"
    return Fraction(claim.proof["total"], system["devices" if rule == "devices" else "max_micro_batches"])


def _layer_bound(claim: TrainingClaim) -> Fraction | str:
    model, system = claim.model, claim.system
    if claim.proof["layer"] not in model.ids:
        return f"the model has no layer {str(claim.proof['layer'])[:60]!r}"
    layer = model.ids.index(claim.proof["layer"])
    convention, most = system["convention"], system["max_micro_batches"]
    times = [
        Fraction(way.compute, d) + gradient_share(convention, d, most) * way.weights
        for t, way in ways_that_fit(model, system, layer)
        for d in usable_data_degrees(system)
        if d * t <= system["devices"]
    ]
    return min(times) if times else f"layer {claim.proof['layer']!r} does not fit a device in any way"
