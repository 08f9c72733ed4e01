"""Instances from which ops are left out, so that the optimum can only fall: a lower bound that may be easier to find.

A partition of the whole instance, restricted to the other ops, costs no more: stages lose work, cut tensors and bytes.
What a stage pays for left-out ops in any case is charged on its other ops. What is left out, and what becomes of its
tensors, is told in a record that a proof can carry; :mod:`mtpp.checker.relaxed` has the rules and why they hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtpp.inference.charges import Charges, charges, no_charges
from mtpp.inference.contraction import merge
from mtpp.inference.graph import Int32Array
from mtpp.inference.instance import Instance

_NOTHING: Mapping[int, int] = MappingProxyType({})

_LEAST_LEFT = 2
"""Part of the transfer that is left, at least, where an op is bypassed and others read its input: one in so many."""

MOST_PATHS = 1_000_000
"""Pairs of ops that left-out ops may lead between: as many as the verifier looks at."""


@dataclass(frozen=True, eq=False)
class Relaxation:
    """An instance without some of its ops, and what was done to get there.

    Attributes
    ----------
    original
        The instance with all ops.
    instance
        The instance without those left out; its optimum is at most that of :attr:`original`.
    kept
        Op of :attr:`original` that each op of :attr:`instance` is, int32, ascending.
    left_out, bypassed
        The graph's ops, by number in file order, that are left out, and those of them whose input and output tensors
        became one, int32, ascending.
    charged
        Of each of the graph's ops, the op that reads from it and pays for it, −1 for none, int32.
    lowered
        Transfers in ticks by number of the graph's tensors.
    """

    original: Instance
    instance: Instance
    kept: Int32Array
    left_out: Int32Array
    bypassed: Int32Array
    charged: Int32Array
    lowered: Mapping[int, int]

    def record(self, tensor_names: Mapping[int, str] = MappingProxyType({})) -> dict[str, Any]:
        """Return what a proof on :attr:`instance` has to say of it: names of ops, and lowered transfers by tensor.

        Parameters
        ----------
        tensor_names
            Of the tensors in :attr:`lowered`.
        """
        names = (self.original if self.original.ground is None else self.original.ground.instance).op_names
        return {
            "left_out": [names[v] for v in self.left_out.tolist()],
            "bypassed": [names[v] for v in self.bypassed.tolist()],
            "charged": {names[u]: names[v] for u, v in enumerate(self.charged.tolist()) if v >= 0},
            "lowered": {tensor_names[t]: ticks for t, ticks in self.lowered.items()},
        }


def relax(instance: Instance, left_out: NDArray[np.bool_], lowered: Mapping[int, int] = _NOTHING) -> Relaxation:
    """Leave ops out of *instance*, with the tensors that they make.

    Their work, or the transfers in its place, is charged on ops that read from them where it can be; not with transport
    by neighbours. An op that reads
    one tensor and makes one is bypassed, if that loses nothing or less than leaving it out: those who read its output
    read its input. Ops that lead to others through left-out ops alone keep a tensor without cost.

    Parameters
    ----------
    left_out
        Of each op, bool, shape (n,); at least one op must stay. An op that stands for several of the graph's is left
        out with all of them.
    lowered
        Transfers in ticks by number of the graph's tensors, none above what the tensor has.

    Raises
    ------
    ValueError
        If no op would stay, or left-out ops lead between more than :data:`MOST_PATHS` pairs of others.

    Notes
    -----
    O(n + pins, and for each op that stays, the paths through left-out ops).
    """
    if left_out.all():
        raise ValueError("one op at least must stay")
    ground = instance if instance.ground is None else instance.ground.instance
    out = left_out if instance.ground is None else left_out[instance.ground.op_of]
    transfer = ground.transfer.copy()
    for t, ticks in lowered.items():
        transfer[t] = ticks
    charged = charges(ground, out, transfer)
    rows = [charged]
    if ground.cost.boundary is not None:
        rows = [no_charges(ground, ticks) for ticks in (*ground.cost.boundary.ticks, ground.transfer)]
    elif not ground.uniform:
        cost = ground.cost
        rows = [
            charged.on(ground, work, cost.transfer[link]) for work, link in zip(cost.work, cost.link_of, strict=True)
        ]
    tensors = _Tensors(ground, out, rows)
    bypassed = tensors.bypass()
    relaxed = _without(ground, out, tensors, rows)
    kept = np.flatnonzero(~left_out).astype(np.int32)
    if instance.ground is not None:
        place = np.zeros(instance.op_count, dtype=np.int32)
        place[kept] = np.arange(len(kept), dtype=np.int32)
        group_of = place[instance.ground.op_of[~out]]
        relaxed = merge(relaxed, group_of, len(kept)).instance
    return Relaxation(
        instance,
        relaxed,
        kept,
        np.flatnonzero(out).astype(np.int32),
        np.array(sorted(bypassed), dtype=np.int32),
        np.where(np.any([row.amount > 0 for row in rows], axis=0), rows[0].reader, -1).astype(np.int32),
        lowered,
    )


class _Tensors:
    """The tensors that left-out ops touch, by number, as they become others, with a row of transfers for each class."""

    def __init__(self, ground: Instance, out: NDArray[np.bool_], rows: Sequence[Charges]) -> None:
        self._ground = ground
        self.out = out
        self.transfers = [row.spare.copy() for row in rows]
        self.size = ground.tensor_bytes.copy()
        self.touched = np.zeros(ground.tensor_count, dtype=np.bool_)
        self.touched[ground.tensor_of_pin[out[ground.pins]]] = True
        offsets, pins = ground.pin_offsets.tolist(), ground.pins.tolist()
        self.readers: dict[int, set[int]] = {}
        self.maker: dict[int, int] = {}
        self.reads: dict[int, list[int]] = {}
        self.makes: dict[int, list[int]] = {}
        for t in np.flatnonzero(self.touched).tolist():
            maker, *readers = pins[offsets[t] : offsets[t + 1]]
            self.maker[t], self.readers[t] = maker, set(readers)
            if readers:
                self.makes.setdefault(maker, []).append(t)
            for v in readers:
                self.reads.setdefault(v, []).append(t)

    def bypass(self) -> list[int]:
        """Join input and output of left-out ops where that is better than leaving both out; return those ops."""
        root: dict[int, int] = {}
        done = []
        transfer, out = np.min(self.transfers, axis=0), self.out
        shared = {t for t, readers in self.readers.items() if not all(out[v] for v in readers)}
        order = self._ground.order
        for v in order[out[order]].tolist():
            reads, makes = self.reads.get(v, []), self.makes.get(v, [])
            if len(reads) != 1 or len(makes) != 1:
                continue
            first, second = reads[0], makes[0]
            while first in root:
                first = root[first]
            if out[self.maker[first]] or transfer[second] == 0:
                continue
            others_pay_less = transfer[second] < transfer[first] and len(self.readers[first]) > 1
            if others_pay_less and (first in shared or _LEAST_LEFT * transfer[second] < transfer[first]):
                continue
            root[second] = first
            for row in (transfer, *self.transfers):
                row[first] = min(row[first], row[second])
            self.size[first] = 0
            self.readers[first] |= self.readers.pop(second)
            self.readers[first].discard(v)
            done.append(v)
        return done


def _without(ground: Instance, out: NDArray[np.bool_], tensors: _Tensors, charged: Sequence[Charges]) -> Instance:
    """Return the instance of the ops that stay; ops and tensors are numbered as they come in the file, paths last."""
    stays = ~out
    place = np.full(ground.op_count, -1, dtype=np.int32)
    place[stays] = np.arange(np.count_nonzero(stays), dtype=np.int32)
    rows = [place[ground.pins[~tensors.touched[ground.tensor_of_pin]]]]
    lengths = [np.diff(ground.pin_offsets)[~tensors.touched]]
    sizes = [tensors.size[~tensors.touched]]

    changed: list[int] = []
    counts: list[int] = []
    numbers: list[int] = []
    for t, readers in tensors.readers.items():
        maker = tensors.maker[t]
        if not out[maker]:
            staying = [v for v in sorted(readers) if not out[v]]
            changed += [maker, *staying]
            counts.append(1 + len(staying))
            numbers.append(t)
    paths = _paths(ground, out)
    for u, reached in paths:
        changed += [u, *reached]
        counts.append(1 + len(reached))
    rows.append(place[np.array(changed, dtype=np.int64)])
    lengths.append(np.array(counts, dtype=np.int64))
    free = np.zeros(len(paths), dtype=np.int64)
    sizes += [tensors.size[numbers], free]

    known = np.concatenate([np.flatnonzero(~tensors.touched), np.array(numbers, dtype=np.int64)])
    order = np.concatenate([np.argsort(known), len(known) + np.arange(len(paths))])  # proofs number tensors so
    length = np.concatenate(lengths)
    pins = np.split(np.concatenate(rows).astype(np.int32), np.cumsum(length)[:-1])
    offsets = np.zeros(len(length) + 1, dtype=np.int64)
    np.cumsum(length[order], out=offsets[1:])
    names = ground.op_names
    tensor_place = np.full(ground.tensor_count, -1, dtype=np.int32)
    tensor_place[np.sort(known)] = np.arange(len(known), dtype=np.int32)
    costs = [np.concatenate([row[~tensors.touched], row[numbers], free])[order] for row in tensors.transfers]
    held = ground.param_bytes[stays]
    boundary = ground.cost.boundary
    if boundary is not None:
        cost = ground.cost.of_neighbours(ground.cost.work[:, stays], boundary.of_tensors(np.array(costs)[:-1]), held)
    elif ground.uniform:
        cost = ground.cost.of_envelope((ground.work + charged[0].on_op)[stays], costs[0], held)
    else:
        work = [(own + row.on_op)[stays] for own, row in zip(ground.cost.work, charged, strict=True)]
        cost = ground.cost.of_classes(np.array(work), np.array(costs), held)
    return replace(
        ground,
        op_names=[names[v] for v in np.flatnonzero(stays).tolist()],
        cost=cost,
        tensor_bytes=np.concatenate(sizes)[order],
        pin_offsets=offsets,
        pins=np.concatenate([pins[t] for t in order.tolist()]) if len(order) else np.zeros(0, dtype=np.int32),
        order=place[ground.order[stays[ground.order]]],
        interface=ground.interface.without(place, tensor_place),
    )


def _paths(ground: Instance, out: NDArray[np.bool_]) -> list[tuple[int, list[int]]]:
    """Return the ops that stay and lead to others through left-out ops alone, each with those others, ascending."""
    after = ground.successor_lists()
    gone = out.tolist()
    found = []
    count = 0
    for u in np.flatnonzero(~out).tolist():
        ahead = [v for v in after[u] if gone[v]]
        if not ahead:
            continue
        seen, reached = set(ahead), set()
        while ahead:
            for v in after[ahead.pop()]:
                if not gone[v]:
                    reached.add(v)
                elif v not in seen:
                    seen.add(v)
                    ahead.append(v)
        if reached:
            found.append((u, sorted(reached)))
            count += len(reached)
            if count > MOST_PATHS:
                raise ValueError("left-out ops lead between too many others")
    return found
