"""Compiled loops of the downset search."""
