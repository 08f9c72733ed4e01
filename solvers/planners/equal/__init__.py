"""Baselines with equal stages."""
