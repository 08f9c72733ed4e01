"""Whole and split models run on the same inputs and compared."""
