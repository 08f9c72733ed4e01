"""All splits of sets of layers over the devices inside one device, by a dynamic programme over pairs of downsets.

Part of the searches for several levels of devices that are run again. Shares no code with the planners.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.jit import kernel, subroutine
from mtpp.solvers.recheck.kernels.levels import Pairs, Parts, longer


class SplitRules(NamedTuple):
    """Options of splits at a level.

    Attributes
    ----------
    devices
        How many there are.
    most_sum, most_slack
        The largest sum of degrees that comes up, and the largest slack that matters.
    exactly
        Whether sums of degrees have to be met, so that a smaller one is not as good.
    most_kept
        Where about so many splits or more were kept at once, the search ends.
    most_work
        By number of devices: the most that t · compute of all layers on them may come to. int64, (devices + 1,).
    least_work
        What the layers of a whole split come to at least, as those outside do not fit on the other devices.
    """

    devices: int
    most_sum: int
    most_slack: int
    exactly: bool
    most_kept: int
    most_work: Int64Array
    least_work: int


class KeptSplits(NamedTuple):
    """Devices, sum of degrees and slack of splits above one smaller downset, by the larger one. int32."""

    devices: Int32Array
    sums: Int32Array
    slack: Int32Array


class SplitRows(NamedTuple):
    """Outcome for some smaller downsets: see :class:`mtpp.solvers.recheck.kernels.levels.Tables`.

    Attributes
    ----------
    reached
        The smaller downset to go on with; -1 where too much would have had to be kept.
    counts
        Rows of each pair, in the order of ``above_pair``; int32.
    sums, slack
        The rows, int32.
    looked_at
        How often a part was put before a split.
    """

    reached: int
    counts: Int32Array
    sums: Int32Array
    slack: Int32Array
    looked_at: int


@kernel
def split_layers(
    first: int, effort: int, pairs: Pairs, parts: Parts, work: Int64Array, rules: SplitRules, wanted: Int64Array
) -> SplitRows:
    """Split the layers above downset *first*, and above those after it until so much was looked at.

    For a smaller downset i and a larger one o, and for each number of devices k and each sum of degrees x, all that
    matters of splits of what is between them is the largest slack. Its first part comes before a split of what is
    between i and some m: x' of its micro-batches are in flight behind the part, besides those behind the whole split.
    Of these there may be the less of the part's slack - x' and of the slack of the rest. Before each o, splits up to
    each earlier m are kept from begin[m] to end[m] - 1.

    Parameters
    ----------
    work
        By downset, Σ of the least t · compute of the layers inside; int64.
    wanted
        By smaller downset: where in ``above_pair`` the pairs end that are asked for; 0 if none is.
    """
    downsets = pairs.members.shape[0]
    begin, end = np.zeros(downsets, np.int64), np.zeros(downsets, np.int64)
    kept = KeptSplits(np.empty(1024, np.int32), np.empty(1024, np.int32), np.empty(1024, np.int32))
    rows, rows_room = 0, 1024
    sums, slack = np.empty(rows_room, np.int32), np.empty(rows_room, np.int32)
    counts = np.empty(1024, np.int32)
    best = np.empty((rules.devices + 1, rules.most_sum + 1), np.int32)
    for k in range(best.shape[0]):
        for x in range(best.shape[1]):
            best[k, x] = -1
    front = np.empty(rules.most_sum + 1, np.int32)
    counted, looked_at, spent = 0, 0, 0
    low = first
    while low < downsets and spent < effort:
        spent += 1 + pairs.above[low + 1] - pairs.above[low]
        while counted + pairs.above[low + 1] - pairs.above[low] > counts.shape[0]:
            counts = longer(counts)
        kept.devices[0], kept.sums[0], kept.slack[0] = 0, 0, rules.most_slack
        begin[low], end[low] = 0, 1
        states = 1
        for j in range(pairs.above[low], pairs.above[low + 1]):
            counts[counted] = 0
            counted += 1
            high = pairs.outer[pairs.above_pair[j]]
            begin[high], end[high] = states, states
            gained = work[high] - work[low]
            if j >= wanted[low] or gained > rules.most_work[rules.devices]:
                continue
            tried, updated = _put_before(low, high, pairs, parts, rules, begin, end, kept, best)
            looked_at += tried
            spent += tried + pairs.below[high + 1] - pairs.below[high]
            if not updated:
                continue
            spent += best.size // 2 + 2 * front.shape[0]
            if states + best.size > rules.most_kept or rows + front.shape[0] > rules.most_kept:
                return SplitRows(-1, counts, sums, slack, looked_at)
            while states + best.size > kept.slack.shape[0]:
                kept = KeptSplits(longer(kept.devices), longer(kept.sums), longer(kept.slack))
            states = _keep_best(gained, rules, best, front, states, kept)
            end[high] = states
            if gained < rules.least_work:
                continue
            while rows + front.shape[0] > rows_room:
                sums, slack = longer(sums), longer(slack)
                rows_room *= 2
            before = rows
            for x in range(rules.most_sum + 1):
                if front[x] >= 0 and (rules.exactly or x == 0 or front[x] > front[x - 1]):
                    sums[rows], slack[rows] = x, front[x]
                    rows += 1
            counts[counted - 1] = rows - before
        begin[low], end[low] = 0, 0
        for j in range(pairs.above[low], pairs.above[low + 1]):
            high = pairs.outer[pairs.above_pair[j]]
            begin[high], end[high] = 0, 0
        low += 1
    return SplitRows(low, counts[:counted], sums[:rows], slack[:rows], looked_at)


@subroutine
def _put_before(
    low: int,
    high: int,
    pairs: Pairs,
    parts: Parts,
    rules: SplitRules,
    begin: Int64Array,
    end: Int64Array,
    kept: KeptSplits,
    best: Int32Array,
) -> tuple[int, bool]:
    """Put every part that ends with *high* before every split above *low*; return how often, and if any is possible.

    *best* holds the most slack of all splits put together so far, by devices and sum of degrees.
    """
    of_devices, of_sum, of_slack = kept
    tried, updated = 0, False
    for q in range(_first_from(low, high, pairs), pairs.below[high + 1]):
        middle = pairs.inner[q]
        if begin[middle] == end[middle]:
            continue
        for p in range(parts.start[q], parts.start[q + 1]):
            left = rules.devices - parts.uses[p]
            if of_devices[begin[middle]] > left:
                break
            for i in range(begin[middle], end[middle]):
                if of_devices[i] > left:
                    break
                tried += 1
                total = parts.adds[p] + of_sum[i]
                remains = min(parts.slack[p] - of_sum[i], of_slack[i])
                if total > rules.most_sum or remains < 0:
                    continue
                k = parts.uses[p] + of_devices[i]
                if remains > best[k, total]:
                    best[k, total] = remains
                    updated = True
    return tried, updated


@subroutine
def _first_from(low: int, high: int, pairs: Pairs) -> int:
    """Return the first pair of *high* whose smaller downset is *low* or a later one."""
    left, right = int(pairs.below[high]), int(pairs.below[high + 1])
    while left < right:
        middle = (left + right) // 2
        if pairs.inner[middle] < low:
            left = middle + 1
        else:
            right = middle
    return left


@subroutine
def _keep_best(
    gained: int, rules: SplitRules, best: Int32Array, front: Int32Array, states: int, kept: KeptSplits
) -> int:
    """Store the splits in *best* that none with no more devices is as good as, and clear it; return where they end.

    Those are left out with which too little work is done for what the other devices can do. *front* comes to hold the
    most slack by sum of degrees; of all sums up to that one, unless they have to be met exactly.
    """
    for x in range(front.shape[0]):
        front[x] = -1
    for k in range(rules.devices + 1):
        enough = gained + rules.most_work[rules.devices - k] >= rules.least_work
        for x in range(rules.most_sum + 1):
            found = best[k, x]
            if found < 0:
                continue
            best[k, x] = -1
            if not enough or front[x] >= found:
                continue
            front[x] = found
            if not rules.exactly:
                for more in range(x + 1, rules.most_sum + 1):
                    if front[more] >= found:
                        break
                    front[more] = found
            kept.devices[states], kept.sums[states], kept.slack[states] = k, x, found
            states += 1
    return states
