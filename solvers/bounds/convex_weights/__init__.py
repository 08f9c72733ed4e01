"""Weights of ops that no convex set within a limit exceeds, priced over all of them: solver of ``convex-weights``."""
