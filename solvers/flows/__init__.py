"""Minimum cuts and maximum flow in int64."""
