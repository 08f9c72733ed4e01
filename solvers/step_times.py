"""Time of one step of each search: the estimates behind default budgets and the lengths of runs.

Measured on one core of a 2021 server. They need not be right, but they have to be the same on every machine: what a
search finds without a clock depends on them.
"""

from __future__ import annotations

from mtpp.inference.instance import Instance


def order_s(instance: Instance) -> float:
    """Return the seconds that making and cutting one order takes, about.

    n · (n / k + 100) ns, and a hundred times as long for each of the n² / k where peaks in order matter.
    """
    n, k = instance.op_count, instance.k
    return 1e-9 * n * (n / k * (100 if instance.peaks_in_order else 1) + 100)


def move_s(instance: Instance) -> float:
    """Return the seconds that proposing one move takes, about.

    100 ns; where peaks in order matter, 30 ns more for each op of the stages.
    """
    return 1e-7 + (3e-8 * instance.op_count / instance.k if instance.peaks_in_order else 0)
