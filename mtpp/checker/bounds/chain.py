"""The bound of a chain on devices whose stages take the time of so many ops: prices, and the labels that they leave.

Suppose every stage costs less than the cutoff. A *label* of a position in the chain says which devices suffice for the
ops before it: in free order how many of each class; in fixed order how many leading devices of the list, and how many
of those are used where that is limited. Of the labels of a position only those count that no other one makes needless
by being no larger in any number. Every plan passes through such labels, so that there is none if the end has no label.

In free order the proof has prices q_c of a device of each class, and a price q that each device pays besides. The
devices of a plan cost at most Σ q_c · count_c + q · k. So a label matters only where its devices and the cheapest
stages for the rest of the chain, whatever devices are left, cost no more than that. Often that leaves no label at all.

With replicas a stage may stand on several devices: on those with Σ T / f_j at least 1, T being the ticks below the
cutoff, or on one with f_j = 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

from mtpp.checker.bounds.chain_devices import ChainDevices, Ticks
from mtpp.checker.claim import BoundClaim, Verdict
from mtpp.checker.facts import counted
from mtpp.document_shape import choice, flag, mapping, record, whole
from mtpp.document_shape import sha256 as sha256_rule

Label = tuple[int, ...]


def check_chain(claim: BoundClaim) -> Verdict:
    """Re-check the bound; O(labels · stages that may begin at a position), labels being at most as many as stated."""
    proof = claim.proof
    if "rule" in proof:
        return _check_sums(claim)
    rules = {
        "cutoff": whole(),
        "k": whole(1),
        "order": choice("fixed", "free"),
        "labels": whole(),
        "digest": sha256_rule,
    }
    free = proof.get("order") == "free"
    priced = {"prices": mapping(whole()), "price_of_any": whole()} if free else {}
    record(rules | priced, {"replicated": flag})(proof, claim.path)
    if proof["k"] != claim.k:
        return False, f"the proof is for k = {proof['k']}, the claim for k = {claim.k}"
    if proof["cutoff"] != claim.value:
        return False, f"the proof's cutoff is {proof['cutoff']} ticks, the claim is {claim.value}"
    assert claim.by_class is not None
    names = [system["name"] for _, system in claim.by_class]
    if free and set(proof["prices"]) != set(names):
        return False, f"the prices are not of the classes of devices: {', '.join(names)}"
    if claim.value == 0:
        return True, "no bottleneck is below 0 ticks"
    devices = ChainDevices.of(claim, sharing=proof.get("replicated", False))
    found = _priced_labels(devices, proof) if free else _leading_labels(devices, proof)
    if isinstance(found, str):
        return False, found
    count, digest = sum(map(len, found)), _digest(found)
    for what, mine in (("labels", count), ("digest", digest)):
        if mine != proof[what]:
            return False, f"the labels come to {what} {mine}, the proof says {proof[what]}"
    among = f"in {'any order' if free else 'order'}{', with replicas' if devices.sharing else ''}"
    devices_said = f"{counted(min(claim.k, len(claim.class_of)), 'device')} {among}"
    left = "prices leave no label" if free and not count else f"{counted(count, 'label')}, as the proof says"
    return True, f"no plan on {devices_said} stays below {claim.value} ticks: {left}"


def _check_sums(claim: BoundClaim) -> Verdict:
    """Re-check a bound of a chain whose ranges cost the same wherever they begin, on devices in any order.

    Which ops a device has does not matter then, only how many: the fewest devices that reach each total are counted,
    device by device.
    """
    proof = claim.proof
    rules = {"cutoff": whole(), "k": whole(1), "order": choice("free"), "rule": choice("sums")}
    record(rules)(proof, claim.path)
    if proof["k"] != claim.k:
        return False, f"the proof is for k = {proof['k']}, the claim for k = {claim.k}"
    if proof["cutoff"] != claim.value:
        return False, f"the proof's cutoff is {proof['cutoff']} ticks, the claim is {claim.value}"
    devices = ChainDevices.of(claim, sharing=False)
    lengths = devices.lengths_anywhere()
    if lengths is None:
        return False, "the time of so many ops depends on where they begin"
    fewest = {0: 0}
    for c in devices.class_of:
        for total, used in sorted(fewest.items(), reverse=True):
            for length in lengths[c]:
                reached = total + length
                if reached <= devices.ops and used + 1 < fewest.get(reached, devices.most + 1):
                    fewest[reached] = used + 1
    if devices.ops in fewest:
        return False, f"there is a plan below {claim.value} ticks"
    said = f"{counted(min(claim.k, len(claim.class_of)), 'device')} in any order"
    return True, f"no plan on {said} stays below {claim.value} ticks: no numbers of ops come to all {devices.ops}"


def _priced_labels(devices: ChainDevices, proof: dict[str, Any]) -> list[list[Label]] | str:
    """Return the labels of each position in free order, or what is wrong."""
    counts, of_any = devices.counts, proof["price_of_any"]
    own = [proof["prices"][name] for name in devices.names]
    each = [price + of_any for price in own]
    budget = of_any * devices.most + sum(q * count for q, count in zip(own, counts, strict=True))
    rest = devices.cheapest(each)
    start = rest[0]
    slack = -1 if start is None else budget - start
    sets: dict[Ticks, list[Label]] = {}

    def after(label: Label, ticks: Ticks, end: int) -> Iterable[Label]:
        left = rest[end]
        if left is None:
            return
        if ticks not in sets:
            least = devices.cheapest_set(ticks, each)
            sets[ticks] = [] if least is None else devices.sets(ticks, each, least + slack)
        for chosen in sets[ticks]:
            new = tuple(a + b for a, b in zip(label, chosen, strict=True))
            if sum(new) > devices.most or any(a > b for a, b in zip(new, counts, strict=True)):
                continue
            if left + sum(q * used for q, used in zip(each, new, strict=True)) <= budget:
                yield new

    first = [] if slack < 0 else [(0,) * len(counts)]
    return _labels(devices, first, after, proof["labels"])


def _leading_labels(devices: ChainDevices, proof: dict[str, Any]) -> list[list[Label]] | str:
    """Return the labels of each position in fixed order, or what is wrong."""
    limited = devices.most < len(devices.class_of)

    def after(label: Label, ticks: Ticks, end: int) -> Iterable[Label]:
        for lead in range(label[0] + 1, len(devices.class_of) + 1):
            number = devices.fewest(ticks, devices.class_of[label[0] : lead])
            if number is None:
                continue
            if not limited:
                yield (lead,)
                return
            if label[1] + number <= devices.most:
                yield (lead, label[1] + number)

    return _labels(devices, [(0, 0) if limited else (0,)], after, proof["labels"])


def _labels(devices: ChainDevices, first: list[Label], after: Any, stated: int) -> list[list[Label]] | str:
    """Return the labels of each position, or what is wrong: there is a plan, or there are more labels than stated."""
    labels = [first]
    count = len(first)
    for end in range(1, devices.ops + 1):
        reached: set[Label] = set()
        for begin, ticks in devices.ending[end] if count else ():
            for label in labels[begin]:
                reached.update(after(label, ticks, end))
        if end == devices.ops and reached:
            return f"there is a plan below {devices.cutoff} ticks"
        labels.append(_least(reached))
        count += len(labels[-1])
        if count > stated:
            return f"there are more than the {stated} labels that the proof says"
    return labels


def _least(labels: Iterable[Label]) -> list[Label]:
    """Return the labels that no other one makes needless."""
    kept: list[Label] = []
    for label in sorted(labels, key=sum):
        if not any(all(a <= b for a, b in zip(one, label, strict=True)) for one in kept):
            kept.append(label)
    return kept


def _digest(labels: Sequence[Sequence[Label]]) -> str:
    """Return the SHA-256 of all labels, sorted as bytes: position and numbers, in 4 bytes each."""
    rows = [(position, *label) for position, front in enumerate(labels) for label in front]
    return sha256(b"".join(sorted(b"".join(number.to_bytes(4, "big") for number in row) for row in rows))).hexdigest()
