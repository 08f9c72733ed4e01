"""The capacity bound: the most work that a convex set of ops within a time has on a device of each class."""
