"""Compiled loops of reduction and clustering."""
