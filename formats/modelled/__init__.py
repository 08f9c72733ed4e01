"""Models whose costs are computed from their ops: costs, records of ops, names, and the graph that they make."""
