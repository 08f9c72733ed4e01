"""Exhaustive search over the intervals of a chain of layers, on devices that may run a stage in several ways.

A chain has a fixed order of ops; a stage is an interval of it, on one device, as one of the alternatives of the
device's class: a degree of tensor parallelism, with sizes and times of its own. Each alternative has an instance of its
own; what an interval costs there is f_j(S) of :mod:`mtpp.inference.stage_cost`, as it is for every other search.
"""
