"""Kernels of the simulation."""
