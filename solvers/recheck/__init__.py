"""Exhaustive searches behind enumerated claims, run again from the documents alone."""
