"""Compiled loops over families of stage sets."""
