"""The bound of a chain in whose plans latency counts: no stages within one limit come to a sum within another one.

Suppose a plan whose objective is below the cutoff. No stage of it costs more than some ticks, and all together no more
than some others: where the latency is the objective the first are the limit on the bottleneck, the second those below
the cutoff; where the bottleneck is, it is the other way round.

*Rule "list"*: devices in the order of the list, or in any where so many ops cost the same wherever they begin. After
each device of the list, the least sum for the ops before every position, by the devices used, is all that matters.

*Rule "totals"*: in any order the least sum for the ops before a position on so many devices of each class. With prices
q_c of a device of each class and q of any one, what follows on v_c devices costs at least the cheapest stages at prices
f_c + q_c + q, less Σ q_c · v_c + q · Σ v_c; so numbers of devices matter only where that keeps to the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mtpp.checker.bounds.chain_devices import ChainDevices
from mtpp.checker.claim import LATENCY, BoundClaim, Verdict
from mtpp.checker.facts import counted
from mtpp.document_shape import choice, mapping, nullable, record, whole

Numbers = tuple[int, ...]
Sums = list[dict[Numbers, int]]
"""By position: the least sum on so many devices."""


def check_chain_totals(claim: BoundClaim) -> Verdict:
    """Re-check the bound, whose goal is that of the claim; O(numbers of devices · stages that end at a position)."""
    proof = claim.proof
    rules = {
        "cutoff": whole(),
        "k": whole(1),
        "order": choice("fixed", "free"),
        "objective": choice("bottleneck", "latency"),
        "limit": nullable(whole()),
        "rule": choice("list", "totals"),
    }
    priced = {"prices": mapping(whole()), "price_of_any": whole()} if proof.get("rule") == "totals" else {}
    record(rules | priced)(proof, claim.path)
    if proof["k"] != claim.k:
        return False, f"the proof is for k = {proof['k']}, the claim for k = {claim.k}"
    if proof["cutoff"] != claim.value:
        return False, f"the proof's cutoff is {proof['cutoff']} ticks, the claim is {claim.value}"
    within = proof["limit"]
    top, total = (within, claim.value - 1) if claim.objective == LATENCY else (claim.value - 1, within)
    if claim.value == 0:
        return True, f"no {claim.objective} is below 0 ticks"
    devices = ChainDevices.of(claim, sharing=False)
    found = _along_list(devices, top, proof) if proof["rule"] == "list" else _totals(devices, top, total, proof)
    if isinstance(found, str):
        return False, found
    if found is not None and (total is None or found <= total):
        return False, f"there is a plan whose {claim.objective} is below {claim.value} ticks"
    order = "in any order" if proof["order"] == "free" else "in order"
    on = f"{counted(min(claim.k, len(claim.class_of)), 'device')} {order}"
    other = "bottleneck" if claim.objective == LATENCY else "latency"
    among = "" if within is None else f" of a {other} of at most {within} ticks"
    return True, f"no plan{among} on {on} stays below {claim.value} ticks of {claim.objective}"


def _allowed(ticks: int | None, top: int | None) -> bool:
    return ticks is not None and (top is None or ticks <= top)


def _along_list(devices: ChainDevices, top: int | None, proof: dict[str, Any]) -> int | str | None:
    """Return the least sum on the devices of the list; None: there is no plan; or what is wrong."""
    if proof["order"] == "free" and devices.depends_on_place():
        return "the time of so many ops depends on where they begin, and devices stand in any order"
    least: list[dict[int, int]] = [{} for _ in range(devices.ops + 1)]  # by position and devices used
    least[0][0] = 0
    limited = devices.most < len(devices.class_of)
    for c in devices.class_of:
        for end in range(devices.ops, 0, -1):  # positions before are still those without the device
            for begin, ticks in devices.ending[end]:
                own = ticks[c]
                if own is None or not _allowed(own, top):
                    continue
                for used, paid in least[begin].items():
                    now = used + limited
                    if now <= devices.most and paid + own < least[end].get(now, paid + own + 1):
                        least[end][now] = paid + own
    return min(least[devices.ops].values(), default=None)


def _totals(devices: ChainDevices, top: int | None, total: int | None, proof: dict[str, Any]) -> int | str | None:
    """Return the least sum of numbers of devices that prices leave; None: there is none; or what is wrong."""
    if proof["order"] != "free":
        return "numbers of devices are for devices in any order"
    if set(proof["prices"]) != set(devices.names):
        return f"the prices are not of the classes of devices: {', '.join(devices.names)}"
    own = [proof["prices"][name] for name in devices.names]
    each = [price + proof["price_of_any"] for price in own]
    left = proof["price_of_any"] * devices.most + sum(q * count for q, count in zip(own, devices.counts, strict=True))
    rest = _cheapest_rest(devices, top, each)
    sums: Sums = [{(0,) * len(each): 0}] + [{} for _ in range(devices.ops)]
    for end in range(1, devices.ops + 1):
        after = rest[end]
        if after is None:
            continue
        for begin, ticks in devices.ending[end]:
            for c, cost in enumerate(ticks):
                if cost is None or not _allowed(cost, top):
                    continue
                for numbers, paid in sums[begin].items():
                    if numbers[c] == devices.counts[c] or sum(numbers) == devices.most:
                        continue
                    now = (*numbers[:c], numbers[c] + 1, *numbers[c + 1 :])
                    spent = sum(q * number for q, number in zip(each, now, strict=True))
                    if total is not None and paid + cost + after + spent - left > total:
                        continue
                    if paid + cost < sums[end].get(now, paid + cost + 1):
                        sums[end][now] = paid + cost
        sums[end] = _needed(sums[end])
    return min(sums[devices.ops].values(), default=None)


def _cheapest_rest(devices: ChainDevices, top: int | None, each: Sequence[int]) -> list[int | None]:
    """Return from each position the least sum of costs and prices to the end, on any devices; None: there is none."""
    rest: list[int | None] = [None] * devices.ops + [0]
    for end in range(devices.ops, 0, -1):
        after = rest[end]
        if after is None:
            continue
        for begin, ticks in devices.ending[end]:
            for cost, price in zip(ticks, each, strict=True):
                if cost is not None and _allowed(cost, top):
                    known = rest[begin]
                    found = after + cost + price
                    rest[begin] = found if known is None else min(known, found)
    return rest


def _needed(sums: dict[Numbers, int]) -> dict[Numbers, int]:
    """Return the numbers of devices on which the sum is below that on no more devices of any class."""
    kept: dict[Numbers, int] = {}
    for numbers, paid in sorted(sums.items(), key=lambda one: (sum(one[0]), one[1])):
        no_worse = (other for other, least in kept.items() if least <= paid)
        if not any(all(a <= b for a, b in zip(other, numbers, strict=True)) for other in no_worse):
            kept[numbers] = paid
    return kept
