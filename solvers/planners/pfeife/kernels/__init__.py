"""Kernels of the planner ``pfeife``: passes in order, iterations of splits, paths and splits against them."""
