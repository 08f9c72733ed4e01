"""Runs of layers in an order that stages can hold, where no one size and number of replicas has costs of all layers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.solvers.planners.graphpipe.kernels.pipeline_cost import AnnealedModel


def runnable_runs(model: AnnealedModel, order: Int64Array, first: int) -> tuple[Int64Array, list[int]]:
    """Cut an order of the layers into runs that can each be a stage of some option, on few devices.

    Parameters
    ----------
    first
        Option that is taken where it is as good as any.

    Returns
    -------
    Run of each layer, int64, and the option of each run. As few devices as cuts of this order need, then the longest
    runs are halved as long as devices are left.

    Notes
    -----
    O(layers · options). A layer that no option has costs of is a run by itself.
    """
    pair = np.asarray((model.forward + model.backward).min(axis=1))
    runnable = [(pair[:, layer] < model.forever).tolist() for layer in order]
    times = pair * model.options[:, 2:3]
    runs = _fewest_devices(runnable, [int(d) for d in model.options[:, 0]], first)
    left = int(model.limits[0]) - sum(int(model.options[option, 0]) for _, _, option in runs)
    while True:
        ticks = [int(times[option, order[begin:end]].sum()) for begin, end, option in runs]
        longest = sorted(range(len(runs)), key=lambda r: -ticks[r])
        halved = next(
            (r for r in longest if runs[r][1] - runs[r][0] > 1 and int(model.options[runs[r][2], 0]) <= left), None
        )
        if halved is None:
            break
        begin, end, option = runs[halved]
        sums = np.cumsum(times[option, order[begin:end]])
        middle = begin + min(max(1, int(np.searchsorted(sums, sums[-1] / 2))), end - begin - 1)
        runs[halved : halved + 1] = [(begin, middle, option), (middle, end, option)]
        left -= int(model.options[option, 0])
    stage = np.zeros(len(order), dtype=np.int64)
    for r, (begin, end, _) in enumerate(runs):
        stage[order[begin:end]] = r
    return stage, [option for _, _, option in runs]


def _fewest_devices(
    runnable: Sequence[Sequence[bool]], replicas: Sequence[int], first: int
) -> list[tuple[int, int, int]]:
    """Return begin, end and option of runs that all layers of an order can be in, on the fewest devices."""
    count, options = len(runnable), [first, *(o for o in range(len(replicas)) if o != first)]
    reach = dict.fromkeys(options, count)
    ends: list[list[int]] = [[] for _ in range(count)]
    for at in range(count - 1, -1, -1):
        for o in options:
            if not runnable[at][o]:
                reach[o] = at
        ends[at] = [reach[o] for o in options]
    used: dict[int, tuple[int, list[tuple[int, int, int]]]] = {0: (0, [])}
    for at in range(count):
        if at not in used:
            continue
        devices, runs = used.pop(at)
        for o, end in zip(options, ends[at], strict=True):
            end = max(end, at + 1)  # a layer that cannot be run makes a run that costs for ever
            found = devices + replicas[o], [*runs, (at, end, o)]
            if end not in used or found[0] < used[end][0]:
                used[end] = found
    return used[count][1]
