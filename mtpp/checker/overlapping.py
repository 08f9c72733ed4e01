"""The verifier of bounds on how often a chain is served where ranges of layers on devices may overlap.

Suppose a request every T ticks is served. A device with n layers serves one in its time t(n) of that number, and the
devices that hold a layer serve every request there: Σ T / t(n) over them is at least 1. The proof has prices q_c of a
device of each class. If Σ q_c / n over any devices whose T / t(n) come to at least 1 is at least p, the layers together
need devices of p · layers. Where all devices come to less, Σ q_c · count_c < p · layers, there is no such placement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from mtpp.checker.document import machine as machine_rule
from mtpp.checker.facts import counted
from mtpp.checker.machine import STAGE_TIMES, digest_of, placed_graph
from mtpp.checker.report import BOUND_CHECK, Check, Report, Tier, fact
from mtpp.document_shape import choice, mapping, nullable, record, refuse, sha256, tagged, text, whole

FORMAT = "mtpp-overlapping-bound"

_MILLI_PER_PS = 10**15
_ONE = 2**128
"""Sum that the shares of a layer's devices have to reach; shares are rounded up to whole parts of it."""

_MOST_LOOKS = 5_000_000

check_overlapping = tagged(
    FORMAT,
    {
        "model": record({"name": text, "sha256": nullable(sha256), "ops": whole(1)}, {"path": text}),
        "machine": machine_rule,
        "layers": whole(1),
        "millitokens_per_s": nullable(whole()),
        "lower_bound": record(
            {
                "value": whole(),
                "method": choice("overlapping"),
                "tier": choice("exact"),
                "proof": record({"ticks": whole(), "prices": mapping(whole()), "price_of_layer": whole()}),
            }
        ),
    },
)
"""Rule of a bound for overlapping ranges."""


def verify_overlapping(
    document: Any, graph: Any | None, *, graph_sha256: str | None = None, machine_due: Mapping[str, Any] | None = None
) -> Report:
    """Check a bound for overlapping ranges from its document.

    Parameters
    ----------
    graph
        The model as an mtpp-graph document; None: the number of layers is the document's to choose.
    graph_sha256
        Of the model's file.
    machine_due
        What the caller holds the machine to.

    Raises
    ------
    InputError
        If the document is malformed, or a device has no times of stages.
    """
    check_overlapping(document, ())
    machine, layers, bound = document["machine"], document["layers"], document["lower_bound"]
    for i, device in enumerate(machine["devices"]):
        if not device.get(STAGE_TIMES):
            refuse("is missing", ("machine", "devices", i, STAGE_TIMES))
    checks = [_machine_row(machine, machine_due), _layers_row(document, graph)]
    if graph is not None:
        placed_graph(machine, graph, 1, None, embedded=False)  # refuses what is no chain
        stated = document["model"]["sha256"]
        same = stated == graph_sha256
        checks.append(Check("model file", same, f"SHA-256 {graph_sha256}" if same else "it is another file"))
    passed, said = _proven(machine["devices"], layers, bound["value"], bound["proof"])
    checks.append(Check(BOUND_CHECK, passed, f"overlapping: {said}"))
    checks.append(_rate_row(document["millitokens_per_s"], bound["value"]))
    every = f"of {counted(layers, 'layer')} in overlapping ranges on {counted(len(machine['devices']), 'device')}"
    ticks = bound["value"]
    proven = f"no placement {every} serves a request every {ticks} ticks" if ticks else f"no limit {every}"
    return Report(
        tuple(checks), Tier.EXACT if passed else Tier.NONE, None, bound_rechecked=passed is True, proven=proven
    )


def _machine_row(machine: Mapping[str, Any], due: Mapping[str, Any] | None) -> Check:
    digest = digest_of(machine)
    if machine["sha256"] != digest:
        return Check("machine", False, f"its figures have SHA-256 {digest}, not {machine['sha256']}")
    if due is not None and digest_of(due) != digest:
        return Check("machine", False, f"the bound is for SHA-256 {digest}, it has to be {digest_of(due)}")
    return Check("machine", True, f"{machine['name']}: {counted(len(machine['devices']), 'device')}")


def _layers_row(document: Mapping[str, Any], graph: Any | None) -> Check:
    layers, ops = document["layers"], document["model"]["ops"]
    if layers != ops:
        return Check("layers", False, f"the bound is for {layers}, the model is said to have {ops} ops")
    if graph is None:
        return fact("layers", f"{layers}; no model given")
    due = len(graph["ops"])
    return Check(
        "layers", layers == due, f"{layers}" if layers == due else f"the bound is for {layers}, there are {due}"
    )


def _rate_row(stated: int | None, ticks: int) -> Check:
    due = None if ticks == 0 else (2 * _MILLI_PER_PS + ticks) // (2 * ticks)
    said = "no limit" if due is None else f"at most {due / 1000:,.3f} requests/s"
    return Check(
        "rate",
        stated == due,
        said if stated == due else f"the document says {stated} thousandths of a request a second, it is {due}",
    )


def _proven(
    devices: Sequence[Mapping[str, Any]], layers: int, value: int, proof: Mapping[str, Any]
) -> tuple[bool | None, str]:
    """Tell whether prices refute a request every so many ticks, and that in words."""
    if proof["ticks"] != value:
        return False, f"the proof is for {proof['ticks']} ticks, the bound is {value}"
    if value == 0:
        return True, "nothing is claimed"
    tables: dict[str, Sequence[int]] = {}
    counts: dict[str, int] = {}
    for device in devices:
        same = next((name for name, times in tables.items() if times == device[STAGE_TIMES]), device["name"])
        if tables.setdefault(same, device[STAGE_TIMES]) != device[STAGE_TIMES]:
            return False, f"two devices called {same!r} have different times"
        counts[same] = counts.get(same, 0) + 1
    if set(proof["prices"]) != set(counts):
        return False, f"the prices are not of the classes of devices: {', '.join(counts)}"
    prices = proof["prices"]
    all_devices = sum(prices[name] * count for name, count in counts.items())
    if all_devices >= proof["price_of_layer"] * layers:
        return False, f"all devices come to {all_devices}, {layers} layers to {proof['price_of_layer'] * layers}"
    places = [
        (_ONE if time == 0 else min(_ONE, -(-_ONE * value // time)), Fraction(prices[name], n))
        for name, times in tables.items()
        for n, time in enumerate(times[:layers], 1)
    ]
    held = _least_is(places, Fraction(proof["price_of_layer"]))
    if held is None:
        return None, "too many sets of devices for a layer to look at"
    if not held:
        return False, f"some devices serve a layer every {value} ticks for less than {proof['price_of_layer']}"
    needed = proof["price_of_layer"] * layers
    words = f"{counted(layers, 'layer')} need devices of {needed:,}, and all come to {all_devices:,}"
    return True, f"no request every {value} ticks: {words}"


def _least_is(places: Sequence[tuple[int, Fraction]], due: Fraction) -> bool | None:
    """Tell whether all multisets with shares of one together cost at least so much; None if that took too long."""
    by_rate = sorted(places, key=lambda place: place[1] / place[0])
    stack = [(0, _ONE, Fraction(0))]
    looks = 0
    while stack:
        at, missing, paid = stack.pop()
        looks += 1
        if looks > _MOST_LOOKS:
            return None
        if missing <= 0:
            if paid < due:
                return False
            continue
        if at == len(by_rate):
            continue
        share, cost = by_rate[at]
        if paid + missing * cost / share >= due:  # no later place is cheaper by its share
            continue
        stack.append((at + 1, missing, paid))
        stack.append((at, missing - share, paid + cost))
    return True
