"""Scans of a graph: states, the arcs between them, and their fronts."""
