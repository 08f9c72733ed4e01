"""Compiled Pareto fronts of series-parallel cuts."""
