"""Lower bounds of plans by ``graphpipe``, of the iteration and of the memory that a device needs, re-derived.

Take any plan. A stage with b and d that holds layers v run in ways c makes B/b micro-batches, for each of which it
takes Σ_v (f + g)_c(b/d), one after the other; so its d devices are busy for d·(B/b)·Σ_v (f + g)_c(b/d) ticks in an
iteration of T ticks that they all share, and in sum

    K·T ≥ Σ_v min over (b, d, c) of d·(B/b)·(f + g)_c(b/d)         ``work``

The stage keeps one micro-batch in flight at least. So a device needs at least what the largest layer does,

    max over v of min over (b, d, c) of memory_b + memory(b/d)     ``layer``

The others (``chains``, ``exhaustive``) rest on a search, which the caller of the verifier brings. A document may state
less than what is derived: that is true as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from mtpp.checker.report import SHALLOW, Check, Outcome, Tier
from mtpp.checker.training.document import layer_id
from mtpp.checker.training.graphpipe.costs import GraphModel, LayerChoice, Passes
from mtpp.checker.training.graphpipe.setting import Setting
from mtpp.document_shape import Path, array, record

Measure = Literal["iteration", "memory"]

CHAINS = "chains"
EXHAUSTIVE = "exhaustive"
"""Searches by name."""

UNITS: dict[Measure, str] = {"iteration": "ticks", "memory": "bytes"}


@dataclass(frozen=True)
class GraphClaim:
    """A lower bound that rests on a search: no plan has an iteration, or a fullest device, of less than *value*.

    Attributes
    ----------
    measure
        Of the iteration, in ticks with the memory of *setting*; or of the memory, in bytes whatever plans take.
    left_out
        Positions of the layers that ``chains`` leaves out.
    """

    model: GraphModel
    setting: Setting
    measure: Measure
    value: int
    method: str
    left_out: frozenset[int] = frozenset()


GraphSearch = Callable[[GraphClaim], Outcome]
"""Runs a search behind a bound again; passed is None if it is out of reach."""


def usable_passes(model: GraphModel, layer: int, samples: int) -> list[tuple[LayerChoice, Passes]]:
    """Return in what ways a layer can be run with so many samples on each device, and what each takes."""
    known = ((one, one.passes(samples)) for one in model.choices[layer])
    return [(one, costs) for one, costs in known if costs is not None]


def least_work(model: GraphModel, setting: Setting) -> int | None:
    """Return the ticks below which no iteration is by ``work``; None if some layer cannot be run at all."""
    ways = setting.ways()
    total = 0
    for layer in range(len(model.ids)):
        costs = [
            d * setting.batches(b) * passes.both for b, d in ways for _, passes in usable_passes(model, layer, b // d)
        ]
        if not costs:
            return None
        total += min(costs)
    return -(-total // setting.devices)


def least_layer_memory(model: GraphModel, setting: Setting) -> int | None:
    """Return the bytes that a device of every plan has to have by ``layer``; None if some layer cannot be run."""
    samples = sorted({b // d for b, d in setting.ways()})
    worst = 0
    for layer in range(len(model.ids)):
        needs = [one.fixed_bytes + passes.kept_bytes for s in samples for one, passes in usable_passes(model, layer, s)]
        if not needs:
            return None
        worst = max(worst, min(needs))
    return worst


def check_graph_bound(
    stated: dict[str, Any],
    measure: Measure,
    model: GraphModel,
    setting: Setting,
    search: GraphSearch | None,
    *,
    name: str,
    path: Path,
) -> tuple[Check, Tier]:
    """Check a lower bound, as far as its tier allows, and return the tier that it has then."""
    passed, detail = _outcome(stated, measure, model, setting, search, (*path, "proof"))
    return Check(name, passed, detail), Tier.NONE if passed is False else Tier(stated["tier"])


def _outcome(
    stated: dict[str, Any],
    measure: Measure,
    model: GraphModel,
    setting: Setting,
    search: GraphSearch | None,
    path: Path,
) -> Outcome:
    method, value = stated["method"], stated["value"]
    derived = {"iteration": ("work", least_work), "memory": ("layer", least_layer_memory)}[measure]
    due = {derived[0]: Tier.EXACT, CHAINS: Tier.ENUMERATED, EXHAUSTIVE: Tier.ENUMERATED}.get(method)
    if due is None:
        return False, f"no checker for method {method[:60]!r}"
    if stated["tier"] != due:
        return False, f"{method}: a bound of this method is of tier {due}, the plan says {stated['tier']}"
    record({"left_out": array(layer_id)} if method == CHAINS else {})(stated["proof"], path)
    if due is Tier.EXACT:
        return _compared(method, value, derived[1](model, setting), UNITS[measure])
    left_out = stated["proof"].get("left_out", [])
    unknown = next((layer for layer in left_out if layer not in model.ids), None)
    if unknown is not None:
        return False, f"{method}: the model has no layer {str(unknown)[:60]!r}"
    if len(set(left_out)) < len(left_out):
        return False, f"{method}: a layer is left out twice"
    if search is None:
        return None, f"{method}: {SHALLOW}"
    place = {layer: i for i, layer in enumerate(model.ids)}
    passed, detail = search(
        GraphClaim(model, setting, measure, value, method, frozenset(place[layer] for layer in left_out))
    )
    return passed, f"{method}: {detail}"


def _compared(method: str, value: int, least: int | None, unit: str) -> Outcome:
    if least is None:
        return True, f"{method}: some layer cannot be run at all"
    if value > least:
        return False, f"{method}: it gives {least} {unit}, the plan says {value}"
    return True, f"{method}: at least {least} {unit}"
