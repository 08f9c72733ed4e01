"""Multipliers of inequalities as integers, and what they prove: the statement of the checker, written a second time."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtpp.solvers.bounds.branch_and_bound.blocks import Blocks
from mtpp.solvers.bounds.branch_and_bound.known_prefixes import KnownPrefixes
from mtpp.solvers.bounds.branch_and_bound.program import Relaxed, StageProgram
from mtpp.solvers.bounds.mip.model import FloatArray

_BLOCK_BITS = 30
"""Binary digits of the largest multiplier of a block."""

_FACTOR_BITS = 60
"""Binary digits of the factor at most: proofs hold whole numbers below 2^62."""

_LARGEST = 1 << 61
"""Multipliers of shares at most."""

DIGITS = (22, 28, 36)
"""Binary digits of other multipliers that are as large as the most that a stage may cost; fewer make shorter proofs."""


@dataclass(frozen=True)
class Found:
    """What multipliers prove in one case.

    Attributes
    ----------
    refuted
        The most that stages may cost, with the weights' constant, so that there is no partition: −1 if none.
    inside, outside
        What else is known of partitions whose stages cost no more than asked.
    """

    refuted: int
    inside: list[int]
    outside: list[int]


@dataclass(frozen=True)
class Multipliers:
    """Of blocks, and of the other inequalities times *factor*, all integers; ops are called by number in the blocks.

    That of the heavy block's weight, 0 where there is none, is in units of those of the blocks, and so are those of the
    blocks' shares, of which there are none where there are no weights for them.
    """

    factor: int
    of_block: list[int]
    of_heavy: int
    of_share: list[int]
    cuts: list[tuple[int, int, int, int, int]]
    orders: list[tuple[int, int, int, int]]
    prefixes: list[tuple[int, int, int]]

    @classmethod
    def rounded(cls, program: StageProgram, relaxed: Relaxed, digits: int) -> Multipliers:
        """Round the multipliers of an optimum."""
        unit, most = 1 << _BLOCK_BITS, program.most
        factor = max(1, most * unit >> max(digits, most.bit_length() + _BLOCK_BITS - _FACTOR_BITS))
        of_block = np.rint(relaxed.of_block * unit).astype(np.int64).tolist()
        of_heavy = int(np.rint(relaxed.of_heavy.sum() * unit))
        of_share = [min(round(value * unit), _LARGEST) for value in relaxed.of_share.tolist()]

        def rows(of: FloatArray, names: Any) -> list[Any]:
            amount = np.rint(of * (unit / factor)).astype(np.int64)
            kept = np.flatnonzero(amount > 0)
            return [(*name, value) for name, value in zip(names[kept].tolist(), amount[kept].tolist(), strict=True)]

        return cls(
            factor,
            of_block,
            of_heavy,
            of_share,
            rows(relaxed.of_cut, program.cuts),
            rows(relaxed.of_order, program.orders),
            rows(relaxed.of_prefix, program.prefixes),
        )

    @classmethod
    def of_stages(cls, blocks: Blocks, known: KnownPrefixes) -> Multipliers:
        """Return those that prove the cost of the most expensive block where the block of every op is known.

        Or that a heavy block lacks weight.
        """
        inside, _ = known.arrays(blocks.op_count)
        block = (~inside).sum(axis=0)
        if blocks.heavy is not None and blocks.weights.weight[block == blocks.heavy - 1].sum() < blocks.least_weight:
            return cls(1, [0] * len(blocks.stages), 1, [0] * blocks.share_rows, [], [], [])
        u, v, t = blocks.producer, blocks.reader, blocks.tensor
        apart = block[u] != block[v]
        cut: dict[tuple[int, int], tuple[int, int]] = {}
        for op, other, tensor in zip(u[apart].tolist(), v[apart].tolist(), t[apart].tolist(), strict=True):
            cut[tensor, int(block[op])] = op, other
            cut[tensor, int(block[other])] = other, op
        cost = [int(blocks.weights.weight[block == b].sum()) for b in range(len(blocks.stages))]
        for tensor, b in cut:
            cost[b] += int(blocks.transfer[tensor])
        most = max(range(len(cost)), key=lambda b: cost[b] // blocks.stages[b])
        cuts = [(t, b, *ops, int(blocks.transfer[t])) for (t, b), ops in cut.items() if b == most]
        return cls(1, [int(b == most) for b in range(len(cost))], 0, [0] * blocks.share_rows, cuts, [], [])

    def prove(self, blocks: Blocks, known: KnownPrefixes, most: int) -> Found:
        """Return what they prove if stages cost *most*, with the weights' constant.

        Notes
        -----
        O(rows + unknown y + n).
        """
        count = len(blocks.stages)
        extra: list[defaultdict[int, int]] = [defaultdict(int) for _ in range(count)]
        surplus: dict[tuple[int, int], int] = {}
        of_weight, value = list(self.of_block), 0
        if blocks.heavy is not None:
            of_weight[blocks.heavy - 1] -= self.of_heavy
            value += self.of_heavy * blocks.least_weight
        value += of_weight[-1] * blocks.weights.total
        of_share = self.of_share or [0] * count
        value += of_share[-1] * int(blocks.share.sum())
        value -= blocks.capacity * sum(a * s for a, s in zip(of_share, blocks.stages, strict=True))
        for t, b, u, v, multiplier in self.cuts:
            amount = self.factor * multiplier
            surplus[t, b] = surplus.get((t, b), self.of_block[b] * int(blocks.transfer[t])) - amount
            extra[b][u] += amount
            extra[b][v] -= amount
            if b:
                extra[b - 1][u] -= amount
                extra[b - 1][v] += amount
        value += sum(extra.pop().values())
        value += sum(min(0, left) for (t, _), left in surplus.items() if blocks.transfer[t] <= most)
        for u, v, b, multiplier in self.orders:
            extra[b][u] -= self.factor * multiplier
            extra[b][v] += self.factor * multiplier
        for u, b, multiplier in self.prefixes:
            extra[b + 1][u] -= self.factor * multiplier
            extra[b][u] += self.factor * multiplier
        weight = blocks.weights.weight
        held, left = known.arrays(blocks.op_count)
        gains: list[tuple[int, int, int]] = []
        for b in range(count - 1):
            slope, share_slope = of_weight[b] - of_weight[b + 1], of_share[b] - of_share[b + 1]
            value += slope * int(weight[held[b]].sum()) + share_slope * int(blocks.share[held[b]].sum())
            value += sum(amount for u, amount in extra[b].items() if held[b, u])
            unknown = np.flatnonzero(~held[b] & ~left[b])
            figures = unknown.tolist(), weight[unknown].tolist(), blocks.share[unknown].tolist()
            for u, ticks, share in zip(*figures, strict=True):
                gain = slope * ticks + share_slope * share + extra[b].get(u, 0)
                if gain:
                    gains.append((b, u, gain))
                    value += min(0, gain)
        stages = sum(a * s for a, s in zip(self.of_block, blocks.stages, strict=True))
        missing = stages * most - value
        inside, outside = [0] * (count - 1), [0] * (count - 1)
        if missing >= 0:
            for b, u, gain in gains:
                if gain > missing:
                    outside[b] |= 1 << u
                elif -gain > missing:
                    inside[b] |= 1 << u
        refuted = most if missing < 0 else -1  # without multipliers of blocks, whatever stages cost
        if stages > 0:
            refuted = (value - 1) // stages
        return Found(max(-1, refuted), inside, outside)

    def document(self, blocks: Blocks) -> list[Any]:
        """Return them as a proof writes them."""
        names, places = blocks.names, blocks.places
        return [
            self.factor,
            [*self.of_block, *([] if blocks.heavy is None else [self.of_heavy]), *self.of_share],
            [[places[t], b + 1, names[u], names[v], amount] for t, b, u, v, amount in self.cuts],
            [[names[u], names[v], b + 1, amount] for u, v, b, amount in self.orders],
            [[names[u], b + 1, amount] for u, b, amount in self.prefixes],
        ]

    @property
    def size(self) -> int:
        """About how many bytes the document has."""
        return (
            24 * len(self.cuts)
            + 20 * len(self.orders)
            + 14 * len(self.prefixes)
            + 12 * (len(self.of_block) + len(self.of_share))
            + 20
        )
