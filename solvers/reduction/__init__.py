"""Smaller instances with the same optimum, and coarser ones for large graphs."""
