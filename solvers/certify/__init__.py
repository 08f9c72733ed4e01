"""Cells of certificate tables: partition, bounds, summary, comparison."""
