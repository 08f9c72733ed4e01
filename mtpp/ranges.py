"""Ranges of numbers that options take and documents hold, where several modules ask for them."""

from __future__ import annotations

MOST_STAGES = 1_000_000
"""A plan lists every stage, so their number has to have some limit."""

MOST_STAGE_COUNTS = 1_000
"""Numbers of stages of one run, each of which is searched."""

MOST_UNEQUAL = 20_000
"""Of devices that differ, each of which searches look at one by one."""

MOST_SEED = 2**63 - 1

MOST_CUTOFF = 2**62 - 1
"""In ticks."""

MOST_GRAPHS, MOST_OPS = 1_000_000, 2_000_000
"""Of a test bed: graphs, and ops or whatever else a graph has so many of."""

MOST_THREADS, MOST_CORES = 1024, 65536
"""Of a process, and of a machine."""

MOST_DEPTH = 1000
"""Names in the path of a module."""

MOST_DEVICES = 1_000_000
"""Of a plan for training."""

MOST_SEQUENCES = 10**9
"""Served at a time: bytes of states are multiplied by them."""

MOST_MTP = 64
"""Layers of a language model for further tokens."""
MOST_CONTEXT = 2**40
"""Tokens of a sequence that devices are asked to hold."""

MOST_SPLIT_DEVICES, MOST_SPLIT_MICRO_BATCHES = 10_000, 10**6
"""Of a plan with a schedule; all its passes together have a limit of their own."""

MOST_MICRO_BATCHES = 10**9
MOST_SAMPLES = 10**9
MOST_MICRO_BATCH = 10**6
"""Samples of a micro-batch of a model that is made."""

MOST_LOOPS = 1_000
MOST_INTERVALS = 64
"""The largest k of kFkB orders."""
