"""Compiled memory sums."""
