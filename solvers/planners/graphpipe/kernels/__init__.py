"""Kernels of planning stage graphs."""
