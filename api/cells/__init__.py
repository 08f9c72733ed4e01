"""Cells of a table of certificates: each model for each number of stages, worked at until the ratio will do."""
