"""Planner ``pfeife``: schedules and split points together (Jhoo et al. 2025), with bounds from mixtures of paths."""
