"""Numbers that the kernels of a downset search run again share."""

NEXT, REACHED, PAIRS, PHASE, DEPTH, WINDOW = range(6)
"""Places of the state: downsets taken and reached, pairs accepted; of the current one, phase, depth and open ops."""

BEFORE, STAGE, UNDECIDED, LATER = range(4)
"""Status of an op: in the downset that is expanded, in the stage after it, or not; at most STAGE: in the next."""

OP, KIND, COST, PARAMS, PEAK, OPS, REST, REST_PARAMS, OPEN_WORK, OPEN_PARAMS = range(10)
READY, ENTRIES, TRAILED, COUNTED, PASSED = range(10, 15)
WEIGHT, REST_WEIGHT = range(15, 17)
COLUMNS = 17
"""Columns of the figures after each decision.

Which op it was about, and what was decided. Of the stage: ticks without overflow, bytes of parameters, the least that
its activations come to, number of ops. Work with transfers, and parameters, of what was left; and of what is undecided.
Top of the list of ready ops, and the length that it has had. Length of the trail, and of the part of it that has been
counted as left. Number of ready ops that were left. Weight of the stage, and of what was left.
"""
