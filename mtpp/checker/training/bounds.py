"""Lower bounds on the Time-Per-Sample of every training plan, re-derived.

Take any plan and let T be its Time-Per-Sample: no stage takes longer. A stage with degrees d and t that holds layers v,
run in ways X(v), takes at least what layers alone take, as edges take at least zero:

    T ≥ Σ_{v ∈ S} [X(v).p / d + g(d)·w(v)],    w(v) = ⌈4·X(v).w/B⌉                 (1)

where g is :func:`mtpp.checker.training.stages.gradient_share`. Its memory is Σ (a·⌈s/d⌉ + b) ≥ X(v).a + X(v).b, since
s ≥ d. So X(v) is one of the ways *that fit*: the schemes allow it, t ≤ K, and a + b ≤ M. Degrees d of all stages come
to at most D: to N, to K as Σ d ≤ Σ d·t, and without data parallelism to one for each stage, none of which is empty.

``mixed``: for α, β ≥ 0, (1) without gradients times (α·t + β)·d, over all stages, gives

    Σ (α·t + β)·d·T ≥ Σ_v (α·t + β)·X(v).p,    and    Σ (α·t + β)·d ≤ α·K + β·D    (2)

hence T ≥ Σ_v min (α·t + β)·p / (α·K + β·D), the minimum over all ways that fit, of all degrees t. ``devices`` is this
with α = 1 and β = 0, ``degrees`` with α = 0 and β = 1.

``layer``: the stage that holds v takes at least what (1) has of v alone, T ≥ min p/d + g(d)·w, over all degrees d that
are allowed and all ways that fit with d·t ≤ K.

``gradients``: let T be less than a cutoff T₀. Then each layer runs with a d, t and X for which what (1) has of it alone
is below T₀; of these, with d·t ≤ K and ways that fit, let the least (α·t + β)·(p + d·g(d)·w) be m(v). As in (2), with
gradients, T ≥ Σ_v m(v) / (α·K + β·D). So T is at least this or T₀, the smaller; T₀ if for some v there is none. As
d·g(d), which is (d - 1)/d or (d - 1)/N, never falls, of all degrees d the least that is below T₀ is enough.

With devices within devices, let d be the product of a stage's degrees at all levels: (1) without gradients holds, so do
(2) and D, and with them the first three rules, t being at most K₁; the others are not claimed.

A document may state less than what is derived: that is true as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mtpp.checker.training.document import as_fraction, fraction, layer_id
from mtpp.checker.training.model import LayerOption, TickModel
from mtpp.checker.training.stages import gradient_share
from mtpp.document_shape import Path, choice, record, refuse, whole

TRAINING_PROOF = ("lower_bound", "proof")
"""Where a training plan has the proof of its bound."""

_SHARES = {"per_device": whole(), "per_degree": whole()}

_RULES: dict[str, dict[str, Any]] = {
    "devices": {"total": whole()},
    "degrees": {"total": whole()},
    "mixed": {"total": whole(), **_SHARES},
    "layer": {"layer": layer_id},
    "gradients": {"cutoff": fraction, **_SHARES},
}


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
    """Return the degrees of tensor parallelism that plans may use, ascending; within a device of level 2, if any."""
    most = system["topology"][0]["devices"] if system.get("topology") else system["devices"]
    known = {t for options in model.options for t in options if t <= most}
    return sorted(t for t in known if t == 1 or system["tensor_parallel"])


def usable_options(model: TickModel, system: dict[str, Any], layer: int, t: int) -> list[LayerOption]:
    """Return in what ways a layer may be run on t devices, whatever memory it takes."""
    return [option for option in model.options[layer].get(t, ()) if system["recompute"] or not option.recomputes]


def usable_data_degrees(system: dict[str, Any]) -> list[int]:
    """Return the degrees of data parallelism that a stage may have, ascending."""
    most = min(system["devices"], system["max_micro_batches"]) if system["data_parallel"] else 1
    divide = system["convention"] == "program"
    return [d for d in range(1, most + 1) if not divide or system["max_micro_batches"] % d == 0]


def most_degrees(model: TickModel, system: dict[str, Any]) -> int:
    """Return D, what degrees of data parallelism of all stages can come to at most."""
    most = min(system["max_micro_batches"], system["devices"])
    return int(most if system["data_parallel"] else min(most, len(model.ids)))


def options_that_fit(model: TickModel, system: dict[str, Any], layer: int) -> Iterator[tuple[int, LayerOption]]:
    """Yield each degree t, and each way to run a layer on t devices that leaves it room on its own."""
    for t in usable_degrees(model, system):
        for option in usable_options(model, system, layer, t):
            if option.a + option.b <= system["memory_bytes"]:
                yield t, option


def check_work(claim: TrainingClaim) -> tuple[bool, str]:
    """Re-check a bound of method ``work``.

    Returns
    -------
    Whether it holds, and that in words, or what is false about it.

    Notes
    -----
    O(layers · ways), times the degrees of data parallelism for ``layer`` and ``gradients``.
    """
    proof = claim.proof
    if "rule" not in proof:
        refuse("missing key", (*claim.path, "rule"))
    choice(*_RULES)(proof["rule"], (*claim.path, "rule"))
    rule = proof["rule"]
    if (claim.system.get("topology") or ())[1:] and rule in ("layer", "gradients"):
        return False, f"work: the rule {rule!r} is for one level of devices"
    record({"rule": choice(rule), **_RULES[rule]})(proof, claim.path)
    reached = _layer(claim) if rule == "layer" else _gradients(claim) if rule == "gradients" else _total(claim)
    if isinstance(reached, str):
        return False, f"work: {reached}"
    if claim.value > reached:
        return False, f"work: the rule {rule!r} gives {reached} ticks, the plan says {claim.value}"
    return True, f"work: at least {reached} ticks by the rule {rule!r}"


def _shares(claim: TrainingClaim) -> tuple[int, int, int]:
    """Return α and β, and α·K + β·D."""
    system, rule = claim.system, claim.proof["rule"]
    plain = {"devices": (1, 0), "degrees": (0, 1)}
    alpha, beta = plain[rule] if rule in plain else (claim.proof["per_device"], claim.proof["per_degree"])
    return alpha, beta, alpha * system["devices"] + beta * most_degrees(claim.model, system)


def _total(claim: TrainingClaim) -> Fraction | str:
    alpha, beta, held = _shares(claim)
    total = 0
    for layer, name in enumerate(claim.model.ids):
        costs = [
            (alpha * t + beta) * option.compute for t, option in options_that_fit(claim.model, claim.system, layer)
        ]
        if not costs:
            return f"layer {name!r} does not fit a device in any way"
        total += min(costs)
    if claim.proof["total"] > total:
        return f"the plan says that layers come to {claim.proof['total']} ticks, it is {total}"
    return Fraction(claim.proof["total"], held) if held else "it counts neither devices nor degrees"


def _layer(claim: TrainingClaim) -> Fraction | str:
    model, system = claim.model, claim.system
    if claim.proof["layer"] not in model.ids:
        return f"the model has no layer {str(claim.proof['layer'])[:60]!r}"
    layer = model.ids.index(claim.proof["layer"])
    degrees = usable_data_degrees(system)
    times = [
        _alone(system, option, d)
        for t, option in options_that_fit(model, system, layer)
        for d in degrees
        if d * t <= system["devices"]
    ]
    return min(times) if times else f"layer {claim.proof['layer']!r} does not fit a device in any way"


def _alone(system: dict[str, Any], option: LayerOption, d: int) -> Fraction:
    """Return what (1) has of one layer."""
    return (
        Fraction(option.compute, d)
        + gradient_share(system["convention"], d, system["max_micro_batches"]) * option.weights
    )


def _is_below(cutoff: Fraction, system: dict[str, Any], option: LayerOption, d: int) -> bool:
    """Tell whether :func:`_alone` is below the cutoff, without the fractions: there are thousands of degrees."""
    spread = d if system["convention"] == "paper" else system["max_micro_batches"]
    time = option.compute * spread + (d - 1) * option.weights
    return bool(time * cutoff.denominator < cutoff.numerator * d * spread)


def _gradients(claim: TrainingClaim) -> Fraction | str:
    system, cutoff = claim.system, as_fraction(claim.proof["cutoff"])
    alpha, beta, held = _shares(claim)
    if not held:
        return "it counts neither devices nor degrees"
    degrees = usable_data_degrees(system)
    total = Fraction(0)
    for layer in range(len(claim.model.ids)):
        costs = []
        for t, option in options_that_fit(claim.model, system, layer):
            enough = (d for d in degrees if d * t <= system["devices"] and _is_below(cutoff, system, option, d))
            d = next(enough, None)
            if d is not None:
                costs.append((alpha * t + beta) * d * _alone(system, option, d))
        if not costs:
            return cutoff
        total += min(costs)
    return min(cutoff, total / held)
