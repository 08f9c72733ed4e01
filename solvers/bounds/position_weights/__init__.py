"""Weights of ops that depend on the stage, for all stages at once: solver of ``position-weights``."""
