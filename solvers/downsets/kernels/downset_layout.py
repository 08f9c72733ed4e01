"""Memory layout of the downset search: numbers that name places in arrays."""

from __future__ import annotations

UNDECIDED, INSIDE, OUTSIDE, BEFORE = 0, 1, 2, 3
"""Of an op, in view of the stage that is being made: open, in it, left for later, or in a stage before it."""

ENDED, FOUND, OUT_OF_STEPS, OUT_OF_ROOM = 0, 1, 2, 3
"""Why a search returned: nothing is left to try, a partition is found, or it needs more steps or more room to go on."""

GIVEN_UP = 4
"""Why a search returned that cannot go on: there is more to try than its arrays are made for."""

# Registers: what a search that was interrupted needs to go on.
DOWNSETS = 0
"""Downsets reached."""

NEXT = 1
"""The downset that is being expanded; those before it are done."""

DEPTH = 2
"""Decisions that stand, counted from 1; 0 if the downset has yet to be unpacked."""

TRAIL = 3
"""Changes that stand, to be undone one by one."""

STEPS = 4
"""Steps made: a measure of time that is the same on every machine."""

PAIRS = 5
"""Pairs of a downset and one that a stage leads to from there, under all rules; some lead to the same downset."""

LAST = 6
"""The downset after which the last stage can follow."""

OPEN_OPS = 7
"""Ops within reach of the stage that is being made."""

TOTAL_WORK, TOTAL_PARAMS = 8, 9
"""Ticks and bytes of all ops."""

LAST_BASE = 10
"""The downset with which to stop expanding for now; there may be others after it."""

REGISTERS = 11

# Columns of a frame: the state before one decision.
AT = 0
"""Index of the op that is decided, among those within reach."""

PHASE = 1
"""What was tried: nothing (0), the op inside (1), the op outside too (2); 3: nothing was left to decide."""

COST = 2
"""Ticks that the stage pays at least: all that is certain from the decisions so far, but its overflow."""

WORK, PARAMS = 3, 4
"""Ticks and bytes of the ops inside."""

OPEN_WORK = 5
"""Work of the open ops."""

CROSSING = 6
"""Ticks of the tensors that are certain to be read after the stage from it or from before it."""

MARK = 7
"""Length of the trail before the decision."""

OPEN_COST = 8
"""Ticks that the open ops can add to the cost at most."""

LEAST_COST = 9
"""The stage has to cost more than this, or an op that was left out would have fitted."""

STAGE_WEIGHT, LATER_WEIGHT = 10, 11
"""Weight of the ops inside, and of those certain to come later. Of the frame before the first, which stands for no
decision: the most that it may be; 0 for the former if there are no weights."""

FRAME = 12

# Kinds of changes on the trail.
TENSOR_READ, TENSOR_CROSSES, OP_DECIDED = 0, 1, 2
