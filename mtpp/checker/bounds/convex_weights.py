"""The bound by convex weights: weights of ops of which k convex sets cannot hold all.

The proof says that no partition into k stages costs less than the cutoff, so at most L = cutoff − 1. Let w and C be as
in :mod:`mtpp.checker.merged`, and M = L + C. A stage S of a partition within L is convex: it has every op on a path
between two of its ops. With c(S) the transfers that S cuts, w(S) + c(S) ≤ M. The proof gives weights π_u ≥ 0 of ops and
a capacity B ≥ 0. If no convex set within M holds more than B, k stages hold k·B at most, and the claim is true if
Σ_u π_u is more.

Where devices differ, w, c and C are those of a class of devices (:mod:`mtpp.checker.bounds.scan_devices`), and the
proof gives a capacity for each class. A device holds one stage, and k of them are used at most. In whatever order they
stand, the stages hold no more than the k largest capacities of devices together.

The most that such a set holds is found by :mod:`mtpp.checker.bounds.frontier_scan`, along an order of the ops, where an
op inside is worth π_u, all else nothing. Of the labellings with a given inside, one has after it no op but those that
the inside leads to. Tensors of the proof's choice are forgotten, which makes the most no less.

Weights of which k sets may hold all prove nothing by themselves. They are a rule of searches for partitions below a
cutoff then, with the same scan as proof of their capacity (:mod:`mtpp.checker.downset`).
"""

from __future__ import annotations

from collections.abc import Sequence

from mtpp.checker.bounds.frontier_scan import Scan, TooWide
from mtpp.checker.bounds.scan_devices import ScanDevices, check_scan_proof
from mtpp.checker.claim import BoundClaim, Verdict
from mtpp.checker.merged import MergedGraph
from mtpp.document_shape import Path, array, choice, flag, items, record, refuse, signed, whole

_METHOD = "convex-weights"

check_slope = items(whole(), whole(0, 64))
"""Of p and s, by which entries of a scan are left out."""

_MOST_BITS = 62

_WEIGHTS = array(items(whole(), whole(1, 2**_MOST_BITS)))

check_stage_shares = record(
    {
        "streamed": flag,
        "scan": array(whole()),
        "forgotten": array(whole()),
        "weights": _WEIGHTS,
        "capacity": whole(),
        "slope": check_slope,
    }
)
"""Of weights by which a search for partitions goes: no stage may hold more of them than the capacity."""


def check_convex_weights(claim: BoundClaim) -> Verdict:
    """Re-check a bound by convex weights.

    Notes
    -----
    The replay of the merges, and one :class:`mtpp.checker.bounds.frontier_scan.Scan` for each class of devices.
    """
    weights = {"weights": _WEIGHTS}
    on_devices = {"order": choice("fixed", "free"), "capacities": array(whole()), "slopes": array(check_slope)}
    check_scan_proof(claim, {**weights, "capacity": whole(), "slope": check_slope}, {**weights, **on_devices})
    devices = ScanDevices.of(claim, claim.k)
    fault = devices if isinstance(devices, str) else _fault(devices)
    if fault is not None:
        return False, f"{_METHOD}: {fault}"
    total = sum(amount for _, amount in claim.proof["weights"])
    if claim.by_class is None:
        capacity = claim.proof["capacity"]
        held = f"no convex set below {claim.value} ticks holds more than {capacity} of the ops' weight of {total}"
        return True, f"{_METHOD}: {held}, so {claim.k} are too few"
    held = f"convex sets below {claim.value} ticks hold no more than {_held(claim)} of the ops' weight of {total}"
    return True, f"{_METHOD}: {held} on {claim.k} devices together"


def _fault(devices: ScanDevices) -> str | None:
    """Return what does not hold of a proof, None if all does."""
    claim = devices.claim
    capacities, slopes = _capacities(claim), _slopes(claim)
    if not len(capacities) == len(slopes) == len(devices.classes):
        return "there is not one capacity and one slope for each class of devices"
    total = sum(amount for _, amount in claim.proof["weights"])
    if total <= _held(claim):
        if claim.by_class is None:
            return f"the ops have {total} in all, which {claim.k} stages of {capacities[0]} may hold"
        return f"the ops have {total} in all, and {claim.k} devices may hold {_held(claim)}"
    return _fault_in_capacities(devices)


def fault_in_shares(claim: BoundClaim, graph: MergedGraph) -> str | None:
    """Return why a convex set below the claim's value may hold more weight than the proof's capacity, None if none may.

    Parameters
    ----------
    claim
        On equal devices; its proof is as :data:`check_stage_shares` takes it.
    graph
        After the merges that the claim rests on.
    """
    devices = ScanDevices.of_merged(claim, graph)
    return devices if isinstance(devices, str) else _fault_in_capacities(devices)


def _fault_in_capacities(devices: ScanDevices) -> str | None:
    """Return why a convex set may hold more than a device of some class, None if none may."""
    claim = devices.claim
    groups = devices.groups_of([op for op, _ in claim.proof["weights"]], "has two weights")
    if isinstance(groups, str):
        return groups
    capacities, slopes = _capacities(claim), _slopes(claim)
    value = dict(zip(groups, (amount for _, amount in claim.proof["weights"]), strict=True))
    for terms, capacity, slope in zip(devices.classes, capacities, slopes, strict=True):
        worths = [(0, value.get(place.op, 0), 0) for place in terms.frontier.places]
        try:
            most = Scan(terms.frontier, worths, terms.room, slope, capacity + 1, led=True).most()
        except TooWide as wide:
            return f"scans with {wide} are not checked"
        if most is not None:
            return f"a convex set may hold {most}, more than {capacity}"
    return None


def _capacities(claim: BoundClaim) -> Sequence[int]:
    """Return the capacity of a device of each class."""
    found: Sequence[int] = [claim.proof["capacity"]] if claim.by_class is None else claim.proof["capacities"]
    return found


def _slopes(claim: BoundClaim) -> Sequence[Sequence[int]]:
    found: Sequence[Sequence[int]] = [claim.proof["slope"]] if claim.by_class is None else claim.proof["slopes"]
    return found


def _held(claim: BoundClaim) -> int:
    """Return what the stages hold at most together."""
    capacities = _capacities(claim)
    if claim.by_class is None:
        return claim.k * capacities[0]
    return sum(sorted((capacities[c] for c in claim.class_of), reverse=True)[: claim.k])


def check_amount(value: object, path: Path) -> None:
    """Take an integer of either sign below 2^62 in magnitude."""
    signed(value, path)
    assert isinstance(value, int)
    if abs(value) >= 2**_MOST_BITS:
        refuse(f"{value} is out of range", path, f"it must be below 2^{_MOST_BITS} in magnitude")
