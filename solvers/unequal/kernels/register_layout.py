"""Layout of registers: numbers that name places in an array."""

from __future__ import annotations

# Registers after those of :mod:`mtpp.solvers.downsets.kernels.downset_layout`.
SIZE = 11
"""Ops of the downsets that are being expanded; smaller ones are done."""

CLASS = 12
"""Class of devices that the downset is being expanded with; those before it are done."""

LABELS = 13
"""Labels made, those that others made needless among them."""

DUE = 14
"""Work that the stage has to hold, less what crosses from it, for the rest to fit, in ticks of the class."""

SPENT = 15
"""Where latency counts: the most of it that is of interest, in ticks; else :data:`UNCOUNTED`."""

PAID = 16
"""Ticks that the stage being made may cost at most."""

THOROUGH = 17
"""1 if the least latency is looked for, 0 if any partition within the limits will do."""

BEST = 18
"""The label of all ops with the least latency so far, 0 if there is none."""

UNCOUNTED = -1

ROOM = 19
"""With replicas: most of the measure that fits after any label of the downset that is being expanded."""

PENDING = 20
"""With replicas: 1 if a stage has been listed whose labels did not fit into the pool."""

SCALE = 21
"""Where latency counts: units of prices in a tick."""

UNEQUAL_REGISTERS = 22
