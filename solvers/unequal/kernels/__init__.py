"""Compiled loops of searches over devices that differ."""
