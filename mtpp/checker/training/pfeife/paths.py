"""Mixtures of paths through passes and messages: what all splits take at least, in integers.

Passes of a path run one after the other, so an iteration is at least as long as every path and, with whole weights that
add up to Λ, Λ times as long as their mixture. That is a sum over stages of times and hand-overs, and the least of it
over all splits is found one split point after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from math import ceil
from typing import Any

from mtpp.checker.graph import ceil_div
from mtpp.checker.training.pfeife.costs import Line, sums_of
from mtpp.checker.training.pfeife.document import pass_of
from mtpp.checker.training.pfeife.schedule import Pass, Rows, in_turn, least_warm_up, receiver, text


@dataclass(frozen=True)
class Network:
    """Rows of passes, channels of messages, and which passes come before which.

    Attributes
    ----------
    row_of, place
        Row of each pass, and its place there.
    channel, turn
        Channel of the message that each pass sends, and its place among the messages of that channel.
    sender
        Pass whose message each pass waits for.
    comes_before
        Whether a pass ends before another one begins, besides passes of a row and messages.
    load
        Passes that run one at a time between a forward and a backward pass of a device; None if they make no load.
    """

    stages: int
    row_of: dict[Pass, int]
    place: dict[Pass, int]
    rows: list[list[Pass]]
    channel: dict[Pass, tuple[Any, ...]]
    turn: dict[Pass, int]
    senders: dict[tuple[Any, ...], list[Pass]]
    sender: dict[Pass, Pass]
    comes_before: Callable[[Pass, Pass], bool]
    load: Callable[[Pass, Pass], list[Pass] | None]


def _network(
    stages: int,
    rows: list[list[Pass]],
    channel_of: Callable[[Pass, Pass], tuple[Any, ...]],
    comes_before: Callable[[Pass, Pass], bool],
    load: Callable[[Pass, Pass], list[Pass] | None],
) -> Network:
    row_of = {one: r for r, row in enumerate(rows) for one in row}
    place = {one: i for row in rows for i, one in enumerate(row)}
    passes = set(row_of)
    channel: dict[Pass, tuple[Any, ...]] = {}
    turn: dict[Pass, int] = {}
    senders: dict[tuple[Any, ...], list[Pass]] = {}
    sender: dict[Pass, Pass] = {}
    for row in rows:
        for one in row:
            to = receiver(one, stages, passes)
            if to is not None:
                key = channel_of(one, to)
                channel[one] = key
                turn[one] = len(senders.setdefault(key, []))
                senders[key].append(one)
                sender[to] = one
    return Network(stages, row_of, place, rows, channel, turn, senders, sender, comes_before, load)


def schedule_network(rows: Rows) -> Network:
    """Return the network of a schedule: every path of it is one after the other in every iteration."""
    pairs = set(rows.dependencies)
    devices = rows.devices

    def channel_of(one: Pass, to: Pass) -> tuple[Any, ...]:
        return one[0] % devices, to[0] % devices

    return _network(rows.stages, rows.rows, channel_of, lambda a, b: (a, b) in pairs, lambda a, b: None)


def family_network(devices: int, micro_batches: int, loops: int, loop_batch: int) -> Network:
    """Return what all looped schedules of so many loops and micro-batches of a loop share, whatever is prefetched.

    Notes
    -----
    A device runs its forward passes in their order, and its backward passes in theirs; before its backward pass j it
    has run as many forward passes as without any prefetch, and j more. A load from forward pass x to backward pass y of
    a device has all its micro-batches whose forward pass is at or behind x and whose backward pass is at or before y.
    Both passes of these run on the device one at a time. None begins before x may: forward passes behind x come later,
    and backward passes come behind their own forward pass. None ends after y: backward passes before y come earlier,
    and forward passes before their own backward pass. So what leads to x, the load, and what follows y are one after
    the other.
    """
    forward = [in_turn(d, devices, micro_batches, loops, loop_batch, "F") for d in range(devices)]
    backward = [in_turn(d, devices, micro_batches, loops, loop_batch, "B") for d in range(devices)]
    number = {one: i for rows in (forward, backward) for row in rows for i, one in enumerate(row)}
    each = loops * micro_batches
    least = [least_warm_up(d, devices, micro_batches, loops, loop_batch) for d in range(devices)]

    def channel_of(one: Pass, to: Pass) -> tuple[Any, ...]:
        return one[0] % devices, one[1]

    def comes_before(one: Pass, other: Pass) -> bool:
        device = one[0] % devices
        if one[1] != "F" or other[1] != "B" or other[0] % devices != device:
            return False
        return number[one] <= min(least[device] + number[other], each) - 1

    def load(first: Pass, last: Pass) -> list[Pass] | None:
        device = first[0] % devices
        if first[1] != "F" or last[1] != "B" or last[0] % devices != device:
            return None
        inside = []
        for stage, _, m in forward[device][number[first] :]:
            if number[stage, "B", m] <= number[last]:
                inside += [(stage, "F", m), (stage, "B", m)]
        return inside or None

    return _network(loops * devices, [*forward, *backward], channel_of, comes_before, load)


@dataclass(frozen=True)
class Prices:
    """How often a mixture has each pass of each stage and each hand-over, twice, and how much halves may lack.

    Attributes
    ----------
    forward, backward, handover
        By stage; the hand-over is the one before the stage.
    lost
        Ticks that halves of backward passes lack of half a pass, at most, twice.
    """

    forward: list[int]
    backward: list[int]
    handover: list[int]
    lost: int


def prices_of(network: Network, proof: dict[str, Any]) -> Prices | str:
    """Return the prices of a mixture of paths, or what is wrong with it."""
    stages = network.stages
    forward, backward, handover = [0] * stages, [0] * stages, [0] * stages
    lost = 0
    if sum(path["weight"] for path in proof["paths"]) != proof["total"]:
        return f"the weights of its paths are not {proof['total']} in sum"

    def count(one: Pass, weight: int) -> int:
        stage, kind, _ = one
        if kind == "F":
            forward[stage] += 2 * weight
        else:
            backward[stage] += 2 * weight if kind == "B" else weight
        return weight if kind == "W" else 0

    for i, path in enumerate(proof["paths"]):
        weight, before = path["weight"], None
        for j, (begin, end) in enumerate(path["runs"]):
            first, last = pass_of(begin), pass_of(end)
            if first not in network.row_of or last not in network.row_of:
                return f"path {i} has a pass that there is not"
            if before is not None:
                crossed = _way(network, before, first)
                if crossed is None:
                    return f"in path {i}, {text(first)} does not follow {text(before)}"
                for stage in crossed:
                    handover[stage] += 2 * weight
            run = _run(network, first, last, is_load=path.get("load") == j)
            if run is None:
                return f"in path {i}, {begin} to {end} is no run"
            for one in run:
                lost += count(one, weight)
            before = last
    return Prices(forward, backward, handover, lost)


def _run(network: Network, first: Pass, last: Pass, *, is_load: bool) -> list[Pass] | None:
    if is_load:
        return network.load(first, last)
    row, begin, end = network.row_of[first], network.place[first], network.place[last]
    if network.row_of[last] != row or begin > end:
        return None
    return network.rows[row][begin : end + 1]


def _way(network: Network, before: Pass, after: Pass) -> list[int] | None:
    """Return the stages before which messages cross on the way from the end of a pass to another one, None for none."""
    sender = network.sender.get(after)
    if sender is not None and before in network.channel and network.channel[before] == network.channel[sender]:
        turns = network.turn[before], network.turn[sender]
        if turns[0] <= turns[1]:
            messages = network.senders[network.channel[before]][turns[0] : turns[1] + 1]
            return [one[0] + 1 if one[1] == "F" else one[0] for one in messages]
    same_row = network.row_of[before] == network.row_of[after] and network.place[before] < network.place[after]
    return [] if same_row or network.comes_before(before, after) else None


def bound_of(line: Line, stages: int, prices: Prices, total: int) -> int:
    """Return the ticks that a mixture of paths proves: the least price of a split over 2 · *total*, rounded up.

    Notes
    -----
    A half of a backward pass of g ticks is g / 2 or more, or, if it is the smaller one, (g − 1) / 2 or more. O(S · n).
    """
    devices, n = line.devices, line.count
    forward = {id(row): sums_of(row) for row in line.forward}
    backward = {id(row): sums_of(row) for row in line.backward}
    handover = line.handover()
    cost: list[int | None] = [0, *[None] * n]
    for s in range(1, stages):
        old, new = (s - 1) % devices, s % devices
        f_old, f_new = forward[id(line.forward[old])], forward[id(line.forward[new])]
        g_old, g_new = backward[id(line.backward[old])], backward[id(line.backward[new])]
        a, b, c, d = prices.forward[s - 1], prices.forward[s], prices.backward[s - 1], prices.backward[s]
        h = prices.handover[s]
        before = list(accumulate(cost, _lesser))
        following: list[int | None] = [None] * (n + 1)
        for p in range(s, n - (stages - s) + 1):
            least = before[p - 1]
            if least is not None:
                following[p] = least + a * f_old[p] - b * f_new[p] + c * g_old[p] - d * g_new[p] + h * handover[p]
        cost = following
    last = (stages - 1) % devices
    least = min(one for one in cost[:n] if one is not None)
    whole = least + prices.forward[-1] * forward[id(line.forward[last])][n]
    whole += prices.backward[-1] * backward[id(line.backward[last])][n]
    return max(0, ceil_div(whole - prices.lost, 2 * total))


def _lesser(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def load_bound(line: Line, speeds: Sequence[Fraction], micro_batches: int, *, halves: bool) -> int:
    """Return what no iteration is below, from all work on all devices, and from the longest path of ops.

    Where backward passes come in halves, gradients go back after the half for inputs, which is at least half of it.
    """
    work = micro_batches * (sum(line.plain_forward) + sum(line.plain_backward))
    twice = [2 * f + (1 if halves else 2) * g for f, g in zip(line.plain_forward, line.plain_backward, strict=True)]
    longest = list(twice)
    for tensor in sorted(line.tensors, key=lambda one: one.producer):
        for reader in tensor.readers:
            longest[reader] = max(longest[reader], longest[tensor.producer] + twice[reader])
    return max(ceil(work / sum(speeds, Fraction(0))), ceil(max(longest) / (2 * max(speeds))))
