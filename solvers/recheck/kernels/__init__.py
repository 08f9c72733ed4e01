"""Compiled searches of the re-checks."""
