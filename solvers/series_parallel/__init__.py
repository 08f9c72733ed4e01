"""Series-parallel decomposition, and optimal cuts of decomposed graphs."""
