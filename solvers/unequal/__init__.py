"""Exact searches for partitions over devices that differ, in the file's order or in any."""
