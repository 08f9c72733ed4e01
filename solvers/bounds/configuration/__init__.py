"""Weights of ops that no stage can hold more than its share of: the dual of the configuration LP, and its proof."""
