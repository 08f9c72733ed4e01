"""Passes and messages as nodes of a graph whose longest path is the iteration, or is never above it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from mtpp.array_types import Float64Array, Int32Array
from mtpp.inference.topological import first_come_order
from mtpp.solvers.planners.pfeife.kernels.longest_path import longest_load, path_heads, path_tails
from mtpp.solvers.planners.pfeife.schedule_arrays import ScheduleArrays
from mtpp.training.pfeife.looped import least_warm_up
from mtpp.training.pfeife.schedule import Pass, PassKind


class Loads(NamedTuple):
    """Sets of passes of a device, one at a time between a first forward pass and a last backward pass.

    Attributes
    ----------
    first, last, device
        Nodes of these two passes, and the device; int32, shape (loads,).
    counts
        Micro-batches of each loop whose both passes are in the set, int32, shape (loads, N_l).
    places
        Where the two passes stand among those of their kind on the device.
    """

    first: Int32Array
    last: Int32Array
    device: Int32Array
    counts: Int32Array
    places: Sequence[tuple[int, int]]


class NetworkPath(NamedTuple):
    """A path: nodes up to a load, or all of them; that load, or −1; nodes behind it."""

    before: tuple[int, ...]
    load: int
    behind: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class PathNetwork:
    """Nodes in topological order. Make one with :func:`schedule_network` or :func:`family_network`.

    Attributes
    ----------
    devices, stages
        D and S.
    passes
        The pass of each node, or the pass that sends the message that it is.
    message
        Whether a node is a message.
    before
        Nodes that each waits for, −1 for none, int32, shape (nodes, most).
    kind
        Place of each node's time: 2 · s the forward pass of stage s, 2 · s + 1 its backward pass, 2 · S + s the
        hand-over before it, 3 · S + s half a backward pass; int32.
    row_before
        Pass that comes before each in its row, −1 for the first ones and for messages, int32.
    loads
        None: the longest path is that through the nodes alone.
    """

    devices: int
    stages: int
    passes: Sequence[Pass]
    message: Sequence[bool]
    before: Int32Array
    kind: Int32Array
    row_before: Int32Array
    loads: Loads | None

    @cached_property
    def _room(self) -> tuple[Float64Array, Int32Array, Float64Array, Int32Array]:
        nodes = len(self.kind)
        return np.empty(nodes), np.empty(nodes, np.int32), np.empty(nodes), np.empty(nodes, np.int32)

    def longest(self, price: Float64Array) -> tuple[float, NetworkPath]:
        """Return the length of the longest path, and that path.

        Parameters
        ----------
        price
            Time of each forward pass, backward pass and hand-over, by stage as in *kind*, float64, shape (3 · S,).
        """
        weight = np.concatenate([price, price[1 : 2 * self.stages : 2] / 2])
        head, origin, tail, following = self._room
        path_heads(self.before, self.kind, weight, head, origin)
        end = int(np.argmax(head))
        length, path = float(head[end]), NetworkPath((), -1, ())
        if self.loads is not None:
            path_tails(self.before, self.kind, weight, tail, following)
            loads = self.loads
            load, through = longest_load(
                head, tail, self.kind, weight, loads.first, loads.last, loads.device, loads.counts, self.devices
            )
            if through > length:
                begin = int(origin[loads.first[load]])
                behind = int(following[loads.last[load]])
                return through, NetworkPath(tuple(_chain(origin, begin))[::-1], load, tuple(_chain(following, behind)))
        path = NetworkPath(tuple(_chain(origin, end))[::-1], -1, ())
        return length, path

    def prices(self, path: NetworkPath) -> Float64Array:
        """Return how often a path has each forward pass, backward pass and hand-over, float64, shape (3 · S,)."""
        counts = np.zeros(4 * self.stages)
        np.add.at(counts, self.kind[[*path.before, *path.behind]], 1.0)
        if path.load >= 0:
            assert self.loads is not None
            device = int(self.loads.device[path.load])
            for loop, count in enumerate(self.loads.counts[path.load].tolist()):
                stage = device + loop * self.devices
                counts[2 * stage] += count
                counts[2 * stage + 1] += count
        prices = counts[: 3 * self.stages]
        prices[1 : 2 * self.stages : 2] += counts[3 * self.stages :] / 2
        return prices


def _chain(origin: Int32Array, node: int) -> list[int]:
    nodes = []
    while node >= 0:
        nodes.append(node)
        node = int(origin[node])
    return nodes


def schedule_network(arrays: ScheduleArrays) -> PathNetwork:
    """Return the network of a schedule: its longest path is the iteration of any split."""
    passes: list[Pass] = []
    message: list[bool] = []
    before: list[list[int]] = []
    kind: list[int] = []
    row_before: list[int] = []
    arrived: dict[int, int] = {}
    on_channel: dict[int, int] = {}
    on_device: dict[int, int] = {}
    waits: dict[int, list[int]] = {}
    stages = arrays.stages
    for place, (row, at) in enumerate(zip(arrays.table.tolist(), arrays.order.tolist(), strict=True)):
        device, which, channel, crossed, target = row
        one = Pass(int(arrays.rows[at, 0]), PassKind(int(arrays.rows[at, 1])), int(arrays.rows[at, 2]))
        node = len(kind)
        passes.append(one)
        message.append(False)
        before.append([n for n in (on_device.get(device), arrived.get(place)) if n is not None] + waits.pop(place, []))
        kind.append(2 * (which // 4) + which % 4 if which % 4 < 2 else 3 * stages + which // 4)
        row_before.append(on_device.get(device, -1))
        on_device[device] = node
        if channel >= 0:
            passes.append(one)
            message.append(True)
            before.append([n for n in (node, on_channel.get(channel)) if n is not None])
            kind.append(2 * stages + crossed)
            row_before.append(-1)
            on_channel[channel] = arrived[target] = node + 1
        if len(arrays.after_start):
            for later in arrays.after[arrays.after_start[place] : arrays.after_start[place + 1]].tolist():
                waits.setdefault(later, []).append(node)
    return PathNetwork(
        arrays.devices,
        stages,
        passes,
        message,
        _padded(before),
        np.array(kind, dtype=np.int32),
        np.array(row_before, dtype=np.int32),
        None,
    )


def _padded(before: list[list[int]]) -> Int32Array:
    table = np.full((len(before), max(1, *map(len, before))), -1, dtype=np.int32)
    for row, nodes in zip(table, before, strict=True):
        row[: len(nodes)] = nodes
    return table


def family_network(devices: int, micro_batches: int, loops: int, loop_batch: int) -> PathNetwork:
    """Return a network whose longest path is never above the iteration, whatever is prefetched.

    Notes
    -----
    Every device runs its forward passes in their order, its backward passes in theirs, and before its backward pass j
    at least as many forward passes as without any prefetch. All passes of a load run on one device one at a time, the
    first forward pass of it before all others, the last backward pass behind them.
    """
    stages = loops * devices
    forward = [_in_order(d, devices, loops, loop_batch, micro_batches, PassKind.FORWARD) for d in range(devices)]
    backward = [_in_order(d, devices, loops, loop_batch, micro_batches, PassKind.BACKWARD) for d in range(devices)]
    warm_up = least_warm_up(devices, micro_batches, loops, loop_batch)
    nodes: dict[tuple[Pass, bool], int] = {}
    waits: dict[tuple[Pass, bool], list[tuple[Pass, bool]]] = {}
    for d in range(devices):
        for rows in (forward[d], backward[d]):
            sent: Pass | None = None
            for i, one in enumerate(rows):
                here = waits.setdefault((one, False), [])
                if i:
                    here.append((rows[i - 1], False))
                if one.kind == PassKind.BACKWARD:
                    here.append((forward[d][min(warm_up[d] + i, len(rows)) - 1], False))
                    if one.stage == stages - 1:
                        here.append((Pass(one.stage, PassKind.FORWARD, one.micro_batch), False))
                step = 1 if one.kind == PassKind.FORWARD else -1
                to = Pass(one.stage + step, one.kind, one.micro_batch)
                if 0 <= to.stage < stages:
                    there = waits.setdefault((one, True), [(one, False)])
                    if sent is not None:
                        there.append((sent, True))
                    sent = one
                    waits.setdefault((to, False), []).append((one, True))
    names = list(waits)
    number = {name: i for i, name in enumerate(names)}
    edges = [(number[a], number[b]) for b, others in waits.items() for a in others]
    order = first_come_order(len(names), edges)
    assert len(order) == len(names)
    nodes = {names[old]: new for new, old in enumerate(order)}
    ordered = [names[old] for old in order]
    kind = []
    row_before = [-1] * len(ordered)
    for rows in (*forward, *backward):
        for one, following in pairwise(rows):
            row_before[nodes[following, False]] = nodes[one, False]
    for one, is_message in ordered:
        if is_message:
            kind.append(2 * stages + (one.stage + 1 if one.kind == PassKind.FORWARD else one.stage))
        else:
            kind.append(2 * one.stage + (one.kind == PassKind.BACKWARD))
    return PathNetwork(
        devices,
        stages,
        [one for one, _ in ordered],
        [is_message for _, is_message in ordered],
        _padded([[nodes[other] for other in waits[name]] for name in ordered]),
        np.array(kind, dtype=np.int32),
        np.array(row_before, dtype=np.int32),
        _loads(forward, backward, nodes, devices, loops),
    )


def _in_order(device: int, devices: int, loops: int, loop_batch: int, micro_batches: int, kind: PassKind) -> list[Pass]:
    """Return the passes of one kind of a device: batch by batch, loop by loop."""
    turns = range(loops) if kind == PassKind.FORWARD else range(loops - 1, -1, -1)
    return [
        Pass(device + loop * devices, kind, m)
        for start in range(0, micro_batches, loop_batch)
        for loop in turns
        for m in range(start, min(start + loop_batch, micro_batches))
    ]


_MOST_LOADS = 20_000


def _loads(
    forward: list[list[Pass]], backward: list[list[Pass]], nodes: dict[tuple[Pass, bool], int], devices: int, loops: int
) -> Loads:
    """Return loads between any forward and any backward pass of a device, or between every few of them."""
    first, last, device, counts, places = [], [], [], [], []
    each = len(forward[0])
    step = 1
    while devices * (each // step) ** 2 > _MOST_LOADS:
        step += 1
    for d in range(devices):
        at = {(one.stage, one.micro_batch): j for j, one in enumerate(backward[d])}
        place = np.array([at[one.stage, one.micro_batch] for one in forward[d]])
        loop = np.array([one.stage // devices for one in forward[d]])
        for i in range(0, each, step):
            for k in range(each, 0, -step):
                inside = loop[i:][place[i:] < k]
                if not len(inside):
                    break
                first.append(nodes[forward[d][i], False])
                last.append(nodes[backward[d][k - 1], False])
                device.append(d)
                counts.append(np.bincount(inside, minlength=loops))
                places.append((i, k - 1))
    return Loads(
        np.array(first, dtype=np.int32),
        np.array(last, dtype=np.int32),
        np.array(device, dtype=np.int32),
        np.array(counts, dtype=np.int32).reshape(-1, loops),
        places,
    )
