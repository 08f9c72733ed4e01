"""Networks of parallel branches: cells as in Inception and NASNet, or a few long towers as in CLIP."""

from __future__ import annotations

from collections.abc import Iterable
from math import isqrt

import numpy as np

from mtpp.datasets.roofline_network import RooflineNetwork
from mtpp.datasets.sizes import check_graph_size, check_least
from mtpp.errors import InputError
from mtpp.inference.graph import CostGraph
from mtpp.machine.presets import load_device

ROWS = 784
"""Places of the feature maps: 28 × 28."""

STEM_TAPS = 7 * 7 * 3
STEM_COLUMNS = 192
WIDTHS = (32, 64, 96, 128)
TAPS = (1, 9)


def multi_branch(branches: int, length: int, seed: int = 0, *, blocks: int = 1, cross_links: int = 0) -> CostGraph:
    """Draw a network of *blocks* in a row, each of equally long branches between a common input and their join.

    Parameters
    ----------
    branches, length
        Parallel branches of a block, and ops of each, both at least 1.
    seed
        Same arguments give the same network (for one version of NumPy).
    blocks
        At least 1; the join of one is the input of the next. Few blocks of long branches are towers, many of short
        ones are cells.
    cross_links
        Edges per block from an op of one branch to one farther along in another, all different.

    Raises
    ------
    InputError
        If a number is too small, or a block has fewer than *cross_links* pairs of such ops.

    Notes
    -----
    blocks · (branches · length + 1) + 1 ops and blocks · (branches · (length + 1) + cross_links) edges. Ops of a branch
    are convolutions, 1 × 1 or 3 × 3, to the width that the branch has drawn, or, but for the first, Relus (Add, where
    links come in); a convolution that links come in to reads the columns of all its inputs. The join is a Concat. Ops
    of a block are numbered depth by depth. Costs are those of
    :class:`~mtpp.datasets.roofline_network.RooflineNetwork` on the preset ``reference``, in picoseconds.
    O(ops + edges) time and memory.
    """
    check_least("branches", branches, 1)
    check_least("ops in a branch", length, 1)
    check_least("blocks", blocks, 1)
    check_least("cross links", cross_links, 0)
    check_graph_size(blocks * (branches * length + 1) + 1, blocks * (branches * (length + 1) + cross_links))
    possible = branches * (branches - 1) * (length * (length - 1) // 2)
    if cross_links > possible:
        raise InputError(
            f"{cross_links} cross links, where a block has room for {possible}",
            remedy="ask for fewer, or more branches",
        )
    random = np.random.default_rng([seed, branches, length, blocks, cross_links])
    net = RooflineNetwork(load_device())
    weights = STEM_TAPS * STEM_COLUMNS
    flow = net.add("Conv", [], rows=ROWS, columns=STEM_COLUMNS, flops=2 * ROWS * weights, params=weights)
    for _ in range(blocks):
        chosen = random.choice(possible, cross_links, replace=False).tolist() if cross_links else []
        flow = _block(net, flow, branches, length, _links(chosen, branches, length), random)
    linked = f"-links-{cross_links}" if cross_links else ""
    name = f"multi-branch-{branches}x{length}" + (f"-blocks-{blocks}" if blocks > 1 else "") + f"{linked}-{seed}"
    metadata = {
        "generator": "multi-branch", "seed": seed, "branches": branches, "length": length, "blocks": blocks,
        "cross_links": cross_links,
    }  # fmt: skip
    return net.to_graph(name, metadata)


Links = dict[tuple[int, int], list[tuple[int, int]]]
"""(depth, branch) of an op → those of the ops that links bring here, which are less deep."""


def _links(chosen: Iterable[int], branches: int, length: int) -> Links:
    """Return the links with the given numbers among all that a block has room for."""
    links: Links = {}
    depths = length * (length - 1) // 2
    for number in chosen:
        ends, pair = divmod(number, depths)
        target_branch, other = divmod(ends, branches - 1)
        # Pairs of depths, the deeper first: (1, 0), (2, 0), (2, 1), (3, 0), …
        deep = (1 + isqrt(8 * pair + 1)) // 2
        source = (pair - deep * (deep - 1) // 2, other + (other >= target_branch))
        links.setdefault((deep, target_branch), []).append(source)
    return links


def _block(
    net: RooflineNetwork, flow: int, branches: int, length: int, links: Links, random: np.random.Generator
) -> int:
    widths = random.choice(WIDTHS, branches).tolist()
    made: dict[tuple[int, int], int] = {}
    for depth in range(length):
        for branch, kind in enumerate(random.integers(len(TAPS) + 1, size=branches).tolist()):
            inputs = [made[depth - 1, branch] if depth else flow]
            inputs += sorted(made[place] for place in links.get((depth, branch), ()))
            if depth and kind == len(TAPS):
                op = net.elementwise("Add" if len(inputs) > 1 else "Relu", inputs)
            else:
                weights = sum(net.columns[u] for u in inputs) * widths[branch] * TAPS[kind % len(TAPS)]
                flops = 2 * ROWS * weights
                op = net.add("Conv", inputs, rows=ROWS, columns=widths[branch], flops=flops, params=weights)
            made[depth, branch] = op
    ends = [made[length - 1, branch] for branch in range(branches)]
    return net.add("Concat", ends, rows=ROWS, columns=sum(widths), flops=0)
