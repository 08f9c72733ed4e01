"""The verifier of plans whose stages are intervals of the graph's order, at degrees of tensor parallelism."""
